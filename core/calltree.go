package core

import (
	"context"
	"math"
	"sync/atomic"
)

// RetryOwner says which layer of a chain of services repeats a failed call. See CallTree.
type RetryOwner string

const (
	// OwnerNearest lets the layer nearest to the failure try again: what it does not use comes back up. The default.
	OwnerNearest RetryOwner = "nearest"
	// OwnerEdge has the outermost layer try again: the layers behind it are told that nothing is left for them.
	OwnerEdge RetryOwner = "edge"
	// OwnerNone has each layer decide for itself, as if there were no others: nothing is sent, and what came is not
	// obeyed.
	OwnerNone RetryOwner = "none"
)

// MaxAllowance is the most extra attempts that an allowance can name; more is read as this.
const MaxAllowance = 1000

// Allowance is how many extra attempts a call tree has left: what a caller tells a callee, over the network, in
// Abate-Retry-Allowance (docs/headers.md).
type Allowance struct {
	// Left is how many retries and hedges the callee may make for the request, with all that it calls. 0 to MaxAllowance.
	Left int
	// Owner names whose allowance it is: the guard of the tree's first call. It is for people who read headers.
	Owner string
}

// Below is what a callee said about the attempts that were made behind it: Abate-Retries-Made.
type Below struct {
	// Said reports that it said anything: it knows what an allowance is.
	Said bool
	// Made is how many extra attempts it made, with all that it called.
	Made int
	// Final asks not to be asked again: what could be tried was tried.
	Final bool
}

// CallTree is what a service knows of the call tree that an arriving request belongs to: how many extra attempts it has
// left, and what has become of them. All calls made for that request share it, through their context. With it a chain
// of three layers that may try three times each makes 3 calls to a failing service, and not 27: an extra attempt at any
// layer takes one from the same small number, which the first call of the tree set with its MaxRetries. (Its own hedges
// come on top.)
//
// It is safe for concurrent use, and can only lower what a guard's own policy allows, never raise it.
type CallTree struct {
	owner   string
	limited bool
	left    atomic.Int32
	made    atomic.Int32
	final   atomic.Bool
}

// NewCallTree is the tree of a request that came with an allowance.
func NewCallTree(a Allowance) *CallTree {
	t := new(CallTree)
	t.Reset(a)
	return t
}

// Reset makes t the tree of another request that came with an allowance, for drivers that keep the memory. No call may
// use t any more.
func (t *CallTree) Reset(a Allowance) {
	t.owner, t.limited = a.Owner, true
	t.left.Store(int32(min(max(a.Left, 0), MaxAllowance)))
	t.made.Store(0)
	t.final.Store(false)
}

// NewOpenCallTree is the tree of a request that came without an allowance, or from somebody who is not believed: the
// guards' own policies are all that limits its calls. It is there to tell the caller what became of them.
func NewOpenCallTree() *CallTree { return new(CallTree) }

type callTreeKey struct{}

// WithCallTree returns a context for the work that a request asks for: guarded calls made under it belong to the tree.
func WithCallTree(ctx context.Context, t *CallTree) context.Context {
	return context.WithValue(ctx, callTreeKey{}, t)
}

// CallTreeOf returns the tree that the work under ctx belongs to, nil if nobody has said.
func CallTreeOf(ctx context.Context) *CallTree {
	t, _ := ctx.Value(callTreeKey{}).(*CallTree)
	return t
}

// Allowance is what the tree has left now; false if it has no limit of its own.
func (t *CallTree) Allowance() (Allowance, bool) {
	return Allowance{Left: int(max(t.left.Load(), 0)), Owner: t.owner}, t.limited
}

// Lower makes an allowance smaller, if a is: two requests of one call tree may have met in one service.
func (t *CallTree) Lower(a Allowance) {
	for left := t.left.Load(); t.limited && int32(max(a.Left, 0)) < left; left = t.left.Load() {
		if t.left.CompareAndSwap(left, int32(max(a.Left, 0))) {
			return
		}
	}
}

// Close takes all that is left, and returns it: calls of the tree make no further extra attempts, except those that
// have been handed out. It is for services that have answered while calls may still be under way: what was used up to
// now is what the answer can tell, so what comes back later is lost.
func (t *CallTree) Close() (left int) { return int(max(t.left.Swap(closed), 0)) }

// closed is what is left of a closed tree: so little that nothing that is given back makes it an attempt.
const closed = math.MinInt32 / 2

// Report is what the caller is told: the extra attempts made for its request so far, here and behind, and whether it
// should not try again because what could be tried was tried.
func (t *CallTree) Report() Below {
	return Below{Said: true, Made: int(t.made.Load()), Final: t.final.Load()}
}

// take takes up to n extra attempts, and all or none if whole. It returns how many.
func (t *CallTree) take(n int, whole bool) int {
	if t == nil || !t.limited {
		return n
	}
	for {
		left := t.left.Load()
		got := min(int32(n), left)
		if got <= 0 || whole && int(got) < n {
			return 0
		}
		if t.left.CompareAndSwap(left, left-got) {
			return int(got)
		}
	}
}

// giveBack returns attempts that were taken and not made.
func (t *CallTree) giveBack(n int) {
	if t != nil && t.limited {
		t.left.Add(int32(n))
	}
}

// count notes extra attempts that were made, or must be taken for made.
func (t *CallTree) count(n int) {
	if t != nil && n > 0 {
		t.made.Add(int32(n))
	}
}

func (t *CallTree) empty() bool { return t != nil && t.limited && t.left.Load() <= 0 }

// Under makes the call part of a tree. It is called before Begin; a nil tree changes nothing.
func (c *Call) Under(t *CallTree) { c.tree = t }

// Delegate reports what to tell the callee of copy n, 0 unless Hedge gave another number, and sets that aside. With
// OwnerNearest it is what is left but one, of the tree and of MaxRetries, once the callee has shown that it knows what
// an allowance is; else 0. Drivers that can tell the callee ask once for each copy; false means that nothing is told.
// What came of it comes back in Outcome.Below.
//
// A call that somebody above repeats was given its allowance the first time: outside of a limited tree its callee gets
// nothing more.
//
// A callee that has never said a word is told all the same: it may pass on what it does not understand, to one that
// does.
func (c *Call) Delegate(n int) (Allowance, bool) {
	p := &c.s.policy
	if p.RetryOwner == OwnerNone {
		return Allowance{}, false
	}
	a := Allowance{Owner: c.s.name}
	limited := c.tree != nil && c.tree.limited
	switch {
	case limited:
		a.Owner = c.tree.owner
	case p.MaxRetries == 0: // a root that repeats nothing owns nothing: whoever comes next may
		return Allowance{}, false
	}
	if p.RetryOwner == OwnerEdge || c.repeat != firstTime && !limited || !c.s.peer.speaks() {
		return a, true
	}
	left := p.MaxRetries - int(c.retries) - int(c.below) - c.handedOut()
	switch {
	case !limited:
	case p.MaxRetries == 0: // it only passes on
		left = int(c.tree.left.Load())
	default: // what this layer's own policy allows a call holds for what is behind it, too
		left = min(left, int(c.tree.left.Load()))
	}
	if p.MaxRetries > 0 || c.s.hedge != nil {
		left-- // for when the callee does not answer at all, or not soon, which only this layer can fix
	}
	a.Left = c.tree.take(max(left, 0), false)
	copyOf(c, n).handed = int16(a.Left)
	return a, true
}

// handedOut is what the copies in the air were told they may use.
func (c *Call) handedOut() (sum int) {
	for n := range copiesOf(c) {
		sum += int(copyOf(c, n).handed)
	}
	return sum
}

// settle takes back what copy n's callee has not used. One that has said nothing is taken to have used it all, unless
// the request has not reached it.
func (c *Call) settle(n int, o *Outcome) {
	a := copyOf(c, n)
	handed, used := int(a.handed), int(a.handed)
	a.handed = 0
	switch {
	case o.Below.Said:
		used = min(max(o.Below.Made, 0), MaxAllowance)
		c.s.peer.note(true)
	case o.Unsent:
		used = 0
	case handed > 0 && o.Class == Success && !o.Begun:
		c.s.peer.note(false)
	}
	used = min(used+max(o.Resent, 0), MaxAllowance)
	if o.Below.Final {
		o.NoRetry, c.told = true, true
	}
	if used < handed {
		c.tree.giveBack(handed - used)
	} else if used > handed {
		c.tree.take(used-handed, false)
	}
	c.below = int16(min(int(c.below)+used, MaxAllowance))
	c.tree.count(used)
}

// conclude tells the tree how the call ended: what was repeated here or behind, or refused, must not be repeated by the
// caller. That nothing was left of the allowance is no reason for that, nor that there was no time: the caller may have
// more.
func (c *Call) conclude(reason error) {
	if c.tree == nil || !c.s.obeys { // who decides for itself leaves that to its caller, too
		return
	}
	switch reason {
	case nil, ErrTreeExhausted, ErrDeadline, context.Canceled, context.DeadlineExceeded:
		if !c.told || c.attempts > 0 && c.lastClass == Success {
			return
		}
	}
	c.tree.final.Store(true)
}

// returnToken gives an extra attempt back that is not made after all.
func (c *Call) returnToken() {
	if c.s.obeys {
		c.tree.giveBack(1)
	}
}

// peer is what a guard has learned about its dependency: whether it knows what an allowance is.
type peer struct{ known atomic.Bool }

func (p *peer) speaks() bool { return p.known.Load() }

// note writes only what changes.
func (p *peer) note(speaks bool) {
	if p.known.Load() != speaks {
		p.known.Store(speaks)
	}
}
