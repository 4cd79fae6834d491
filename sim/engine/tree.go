package engine

import (
	"math"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// A service takes part in what callers and callees tell each other about extra attempts if Abate is in it: behind a
// gate, or because it calls others and is not naive. Then a request that comes with an allowance has a call tree, the
// calls made for it belong to it, and the answer says what became of it. Every decision is core.CallTree's and
// core.Call's; here is only what the network carries.

// trees are the call trees of requests, by their index. Like a slab's entities they never move.
type trees struct{ chunks []*[chunkSize]core.CallTree }

func (t *trees) at(ti uint32) *core.CallTree { return &t.chunks[ti>>chunkBits][ti&(chunkSize-1)] }

// plant gives a request the call tree of an allowance. Whose it is only people who read headers want to know.
func (t *trees) plant(ti uint32, left int) {
	for int(ti>>chunkBits) >= len(t.chunks) {
		t.chunks = append(t.chunks, nil)
	}
	if chunk := &t.chunks[ti>>chunkBits]; *chunk == nil {
		*chunk = new([chunkSize]core.CallTree)
	}
	t.at(ti).Reset(core.Allowance{Left: left})
}

// delegate writes on an attempt what its callee may use of its call's extra attempts.
func (a *attempt) delegate(c *core.Call) {
	if allowance, tell := c.Delegate(int(a.copy)); tell {
		a.told = uint16(allowance.Left) + 1
	}
}

// report writes on an answer what became of the request's call tree. It has to be called while the request is still
// there, and before its gate hears of the end, for what the gate then says of failures is about this hop alone.
func (tr *traffic) report(ti uint32, t *task, end EndKind) {
	if !t.tree || !says[end] || !tr.awaited(t) {
		return
	}
	below := tr.trees.at(ti).Report()
	a := tr.attempts.at(t.attempt)
	a.said, a.made = true, uint16(min(below.Made, math.MaxUint16))
	a.final = (below.Final || a.noRetry) && final[end]
}

// says are the answers that the service itself gives, so that it can say something in them.
var says = [EndKinds]bool{Answered: true, QueueFull: true, ServerError: true, Conflict: true, BadGateway: true,
	Overloaded: true, RateLimited: true, Expired: true}

// final are those of them that may ask the caller not to try again: failures, but no conflicts.
var final = [EndKinds]bool{QueueFull: true, ServerError: true, BadGateway: true, Overloaded: true, RateLimited: true,
	Expired: true}

// heed puts what an answer says, or that there could be none, into the outcome that the call gets.
func (a *attempt) heed(o *abate.Outcome, end EndKind) {
	switch {
	case end == TimedOut: // no answer came, whatever is on its way
		o.Unsent = a.pooled == waitsForConnection || a.pooled == connecting
		return
	case a.said:
		o.Below = core.Below{Said: true, Made: int(a.made), Final: a.final}
	}
	if end != Answered {
		o.RetryAfter = max(o.RetryAfter, a.retryAfter)
		o.NoRetry = o.NoRetry || a.noRetry
	}
}
