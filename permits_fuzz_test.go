package abate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/throttle"
)

// What the budgets of these programs allow: the same under every policy, so that the bound holds for the whole program.
const (
	extraRatio   = 0.5
	extraReserve = 3
	overloadCost = 2 // of the guard's own
)

// A permitted is one call of a program. It does what a driver may do, at any time and in any order that a driver can
// bring about.
type permitted struct {
	core.Call
	w        *bulkhead.Waiter
	counted  bool // there was a bulkhead when it began
	lets     bool // its permit go during back-off
	keeps    bool // its permit until the answer ends
	away     bool // it has let its permit go
	enqueue  bool // has been told to
	queued   bool
	woken    bool
	asleep   bool
	has      bool // a permit of the bulkhead, before it is sent
	circuit  bool // it is the circuit that it waits for
	over     bool
	flies    [core.MaxCopies]bool
	sends    bool                // the client of copy 0 is still sending
	begun    bool                // the answer of its attempt has, and how that ends is not known
	handed   [core.MaxCopies]int // extra attempts, to the callee
	repeat   repeated
	tree     bool        // it belongs to the program's
	backsOff bool        // it sleeps because of a retry's delay, and not for its turn
	turn     bool        // of its next attempt has been taken from the rate limit
	failed   abate.Class // what its last attempt that counts came to
	most     int         // attempts
}

// repeated reports who has made a call before.
type repeated int

const (
	firstTime repeated = iota
	repeatedHere
	repeatedBefore
)

// lent reports that somebody above answers for the first attempt of c, which may pass whatever the budget holds.
func (c *permitted) lent() bool { return c.repeat == repeatedBefore && c.tree }

func (c *permitted) inAir() (n int) {
	for _, f := range c.flies {
		if f {
			n++
		}
	}
	return n
}

// permits is a program: one guard, its calls, and the books that are kept beside them.
type permits struct {
	t     *testing.T
	dice  dice
	guard *abate.Guard
	rnd   *rand.Rand
	now   time.Duration
	tree  *core.CallTree
	given int // what the tree began with
	calls []*permitted
	live  []*permitted
	read  []*permitted   // answers that go on
	ours  *budget.Budget // shared with others, nil if there is none
	log   bytes.Buffer

	streams  bool // answers may begin before it is known how they end
	bulkhead bool // there is one, or was
	obeys    bool // allowances count
	budgeted bool // there is a retry budget of the guard's own
	unpaid   int  // attempts of callees that were not given to them, and that the tree had nothing left for
	plain    bool // the policy has never changed
	running  int  // calls, by the events
	flying   int  // attempts, by the events
	first    int  // attempts
	extra    int  // retries and hedges
	ofTree   int  // those that the tree has to know of
	trip     int  // draws until Rand panics; 0 for never
	others   int  // draws until others draw from the shared budget, in this step
	deaf     int  // events until the observer panics
	quit     int  // events until the observer ends the goroutine, in this step
	leaps    int  // of a minute that are left
	sent     int  // turns taken from the rate limit since then
	since    time.Duration
	lent     int  // first attempts of others
	watched  bool // somebody has waited for a sign of life
	ledger   ledger
}

// policy is any policy. Windows and leases are so long that nothing which is lost comes back by itself.
func (x *permits) policy() abate.Policy {
	d := &x.dice
	p := d.policy()
	// always or never: one that is switched off bounds nothing, not even calls that began under it
	if p.RetryBudget = (budget.Config{}); x.budgeted {
		p.RetryBudget = budget.Config{Ratio: extraRatio, Reserve: extraReserve, OverloadCost: overloadCost}
	}
	p.SharedBudget = x.ours
	if d.roll(4) == 1 {
		p.Delay = func(int, abate.Outcome, uint64) time.Duration { return time.Duration(x.draw()%5) * 20 * ms }
	}
	if p.CircuitBreaker.Enabled() {
		b := &p.CircuitBreaker
		b.PermittedCallsInHalfOpen, b.SuccessThreshold, b.HalfOpenPermitLease = 1+d.roll(2), 1+d.roll(2), time.Hour
		b.Mode = []breaker.Mode{"", "", "", breaker.Shadow, breaker.ForcedOpen}[d.roll(5)]
		if d.roll(3) == 1 {
			b.SlowCallRateThreshold, b.SlowCallDurationThreshold = 0.9, 20*ms
		}
		if d.roll(2) == 1 {
			*b = breaker.Config{Kind: breaker.Adaptive, Mode: b.Mode}
			b.WhileOpen = []breaker.WhileOpen{"", breaker.Hold, breaker.Hold, breaker.Refuse}[d.roll(4)]
		}
	}
	if p.Throttle.Enabled() {
		p.Throttle = throttle.Config{K: 1.5, MinimumNumberOfCalls: 3, Window: 10 * time.Minute, Shadow: d.roll(4) == 1}
	}
	if p.Hedge.Enabled() {
		p.Hedge = hedge.Config{Delay: ms, MaxHedges: 1 + d.roll(3)}
	}
	if p.Pacing.Enabled() {
		p.Pacing = pacing.Config{PerSecond: 10, Burst: 1 + d.roll(3), RampUp: time.Duration(d.roll(2)) * time.Second,
			MaxWait: time.Duration(1+d.roll(3)) * 100 * ms}
	}
	if x.obeys {
		p.RetryOwner = []core.RetryOwner{"", core.OwnerEdge}[d.roll(2)]
	} else {
		p.RetryOwner = core.OwnerNone
	}
	p.Rand, p.Observer = x.draw, abate.ObserverFunc(x.observe)
	x.bulkhead = x.bulkhead || p.Bulkhead.Enabled()
	if b := &p.Bulkhead; b.Enabled() {
		switch d.roll(4) {
		case 1:
			b.NoQueue, b.MaxQueue = true, 0
		case 2:
			b.Limit, b.MaxConcurrentCalls = bulkhead.AdaptiveLimit, d.roll(2)*3
		}
		b.HoldDuringBackoff, b.HoldDuringBody = d.roll(4) == 1, d.roll(3) == 1
	}
	return p
}

func (x *permits) draw() uint64 {
	if x.trip--; x.trip == 0 {
		panic("dice")
	}
	if x.others--; x.others == 0 && x.ours != nil {
		for x.ours.Withdraw(x.now, budget.Transient) {
			x.ledger.pay(0, 1)
		}
	}
	return x.rnd.Uint64()
}

func (x *permits) observe(e abate.Event) {
	switch e.Kind {
	case core.CallBegan:
		x.running++
	case core.CallEnded:
		x.running--
	case core.AttemptBegan, core.HedgeSent:
		x.flying++
		if c := x.ledger.acting; e.Kind == core.AttemptBegan && c.turn {
			c.turn = false
		} else {
			x.sent++
		}
	case core.RetryScheduled:
		x.ledger.acting.backsOff = e.Delay > 0
	case core.AttemptEnded:
		x.flying--
	}
	x.ledger.hear(&e)
	if x.deaf--; x.deaf == 0 {
		panic("observer")
	}
	if x.quit--; x.quit == 0 {
		if e.Kind == core.CallQueued {
			x.makeRoom()
		}
		runtime.Goexit()
	}
}

// makeRoom gives up a call that has a permit: another may be handed to one whose goroutine is about to end.
func (x *permits) makeRoom() {
	for _, c := range x.live {
		if c.inAir() > 0 && c != x.ledger.acting {
			x.abort(c)
			return
		}
	}
}

// playPermits plays the program that input stands for.
func playPermits(t *testing.T, input []byte) {
	x := &permits{t: t, dice: dice(input), rnd: rand.New(rand.NewPCG(3, 4)), now: time.Hour, plain: true, leaps: 4,
		since: time.Hour, streams: len(input)%3 == 1}
	x.obeys, x.budgeted = x.dice.roll(4) > 0, x.dice.roll(3) > 0
	if x.dice.roll(3) == 1 {
		x.ours = budget.New(budget.Config{Ratio: extraRatio, Reserve: extraReserve})
	}
	x.given = x.dice.roll(12)
	x.tree = core.NewCallTree(core.Allowance{Left: x.given, Owner: "edge"})
	x.guard = guard(t, x.policy())
	for step := 0; len(x.dice) > 0 && step < 400 && !t.Failed(); step++ {
		x.step()
		x.check()
	}
	for len(x.live) > 0 && !t.Failed() {
		x.end(x.live[0])
		x.check()
	}
	for len(x.read) > 0 && !t.Failed() {
		x.readOn(x.read[0])
		x.check()
	}
	if !t.Failed() {
		x.finally()
	}
	if t.Failed() {
		t.Logf("the program %x:\n%s", input, x.log.String())
	}
}

func (x *permits) note(format string, args ...any) {
	fmt.Fprintf(&x.log, "%v "+format+"\n", append([]any{x.now - time.Hour}, args...)...)
}

// step does one thing.
func (x *permits) step() {
	d := &x.dice
	switch n := d.roll(16); {
	case n < 3 && len(x.live) < 9:
		x.begin()
	case n == 3:
		x.now += time.Duration(d.roll(60)) * 3 * ms
		if d.roll(8) == 1 && x.leaps > 0 { // less than makes anything come back by itself, but first attempts of repeats
			x.now += time.Minute
			x.leaps--
			x.sent, x.since = 0, x.now
		}
	case n == 4 && d.roll(4) == 1:
		x.update()
	case n == 5 && d.roll(6) == 1:
		x.deaf = 1 + d.roll(6)
	case n == 7 && x.ours != nil && d.roll(3) == 1: // others
		if d.roll(3) == 1 {
			x.ours.Deposit(x.now)
			if !x.budgeted {
				x.lent++
			}
		} else if x.ours.Withdraw(x.now, budget.Transient) {
			x.note("others draw from the shared budget")
		}
	case n == 8 && d.roll(3) == 1:
		x.outage()
	case n == 6 && len(x.read) > 0:
		x.tripSoon()
		x.readOn(x.read[d.roll(len(x.read))])
	case len(x.live) > 0:
		x.tripSoon()
		c := x.live[d.roll(len(x.live))]
		x.do(c, func() { x.move(c) })
	}
}

// tripSoon has the random numbers of this step end in a panic, perhaps, or its goroutine, or others empty the shared
// budget meanwhile.
func (x *permits) tripSoon() {
	switch x.dice.roll(12) {
	case 1:
		x.trip = 1 + x.dice.roll(4)
	case 2:
		x.quit = 1 + x.dice.roll(4)
	case 3:
		x.others = 1 + x.dice.roll(4)
	}
}

// do has f take a step of c, or of nobody's. If it does not come to its end, drivers give c up.
func (x *permits) do(c *permitted, f func()) {
	x.ledger.open(x, c)
	ended := false
	play := func() {
		defer func() {
			if v := recover(); v != nil && v != "dice" {
				x.t.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		f()
		ended = true
	}
	if x.quit > 0 {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			play()
		}()
		<-gone
	} else {
		play()
	}
	x.trip, x.quit, x.others = 0, 0, 0
	if !ended && !x.t.Failed() {
		x.note("which ended in the middle")
		if c != nil && !c.over {
			x.abort(c)
		}
	}
	x.ledger.close(ended)
}

// outage has attempts of others, which are not in the books, teach the circuit that answers come at once, and then hang
// until it opens.
func (x *permits) outage() {
	b := x.guard.Breaker()
	if b == nil || x.guard.Describe().CircuitBreaker.Kind != breaker.Adaptive {
		return
	}
	x.note("an outage")
	deaf := x.deaf
	x.deaf = 0
	var hang []breaker.Permit
	for n := range 40 {
		p, ok := b.AllowFor(x.now, 100*ms)
		switch {
		case ok && n < 30:
			b.Record(x.now, p, breaker.Success)
		case ok:
			hang = append(hang, p)
		}
	}
	x.now += 60 * ms
	for _, p := range hang {
		b.Record(x.now, p, breaker.Failure)
	}
	x.deaf = deaf
}

// readOn brings an answer that goes on to its end, good or bad.
func (x *permits) readOn(c *permitted) {
	for i, other := range x.read {
		if other == c {
			x.read = append(x.read[:i:i], x.read[i+1:]...)
		}
	}
	err := []error{nil, errDown}[x.dice.roll(2)]
	x.note("its answer has ended: %v", err)
	x.do(nil, func() {
		c.AnswerEnded(x.now, err)
		c.AnswerEnded(x.now, err) // which does nothing
	})
}

func (x *permits) update() {
	x.plain = false
	if x.dice.roll(3) == 1 {
		o := []abate.Override{
			abate.NoOverride, abate.OverrideForcedOpen, abate.OverrideDisabled, abate.OverrideShadow,
		}[x.dice.roll(4)]
		x.note("override %q", o)
		x.do(nil, func() { x.must(x.guard.OverrideAt(x.now, o)) })
		return
	}
	p := x.policy()
	x.note("update")
	x.do(nil, func() { x.must(x.guard.UpdateAt(x.now, p)) })
}

func (x *permits) must(err error) {
	if err != nil {
		x.t.Error(err)
	}
}

func (x *permits) begin() {
	d := &x.dice
	deadline := core.NoDeadline
	if n := d.roll(4); n > 0 {
		deadline = x.now + time.Duration(n)*80*ms
	}
	p := x.guard.Describe()
	c := &permitted{counted: x.bulkhead, lets: p.Bulkhead.Enabled() && !p.Bulkhead.HoldDuringBackoff,
		keeps: x.bulkhead && p.Bulkhead.HoldDuringBody, most: (1 + p.MaxRetries) * (1 + p.Hedge.MaxHedges)}
	x.calls, x.live = append(x.calls, c), append(x.live, c)
	if c.tree = d.roll(2) == 1; c.tree {
		c.Under(x.tree)
	}
	switch d.roll(8) {
	case 1:
		c.repeat = repeatedHere
		c.Repeated()
	case 2:
		c.repeat = repeatedBefore
		c.RepeatedBefore()
	}
	x.tripSoon()
	x.note("call %d begins, of the tree %t, a repeat %d", len(x.calls), c.tree, c.repeat)
	x.do(c, func() {
		before := x.guard.StateAt(x.now).Bulkhead.InFlight
		step := x.guard.Begin(&c.Call, x.now, deadline)
		x.ledger.drawn(step)
		c.has = x.guard.StateAt(x.now).Bulkhead.InFlight > before
		x.take(c, step)
	})
}

// take notes what a step asks for.
func (x *permits) take(c *permitted, step core.Step) {
	switch step.Action {
	case core.Attempt:
		c.queued, c.woken, c.asleep, c.away, c.has = false, false, false, false, true
		x.fly(c, 0)
	case core.Sleep:
		c.queued, c.woken, c.asleep, c.away = false, false, true, c.backsOff && c.lets && c.counted
		c.has = !c.away
		if !c.backsOff { // its turn has been taken
			c.turn = true
			x.sent++
		}
	case core.Queue:
		c.enqueue, c.queued, c.woken, c.asleep = true, false, false, false
		c.circuit = !c.counted || c.has
	case core.Queued:
		c.queued = true
	case core.Await:
	case core.Finish:
		x.ended(c)
	}
}

// fly notes a copy that is sent, and hands it a part of the tree's allowance if its driver can.
func (x *permits) fly(c *permitted, n int) {
	if c.flies[n] {
		x.t.Errorf("copy %d is sent twice", n)
	}
	c.flies[n], c.sends = true, c.sends && n > 0
	switch first := c.Attempts() == 1; {
	case first && (c.repeat == firstTime || c.lent()):
	default:
		x.extra++
		if c.tree {
			x.ofTree++
		}
	}
	if c.handed[n] = 0; x.dice.roll(2) == 1 {
		a, _ := c.Delegate(n)
		c.handed[n] = a.Left
	}
}

func (x *permits) ended(c *permitted) {
	c.over, c.enqueue, c.queued, c.woken, c.asleep, c.away = true, false, false, false, false, false
	c.flies = [core.MaxCopies]bool{}
	for i, other := range x.live {
		if other == c {
			x.live = append(x.live[:i:i], x.live[i+1:]...)
		}
	}
}

func (x *permits) abort(c *permitted) {
	x.note("aborted")
	if c.queued && (!c.circuit || x.dice.roll(2) == 1) { // a driver that waits for a place leaves the queue first
		x.take(c, c.LeaveQueue(x.now, c.w, context.Canceled))
	}
	c.Abort(x.now)
	x.ended(c)
}

// move does something of what the driver of c may do next, or what it should not do and may.
func (x *permits) move(c *permitted) {
	d := &x.dice
	if d.roll(24) == 1 {
		x.abort(c)
		return
	}
	switch {
	case c.enqueue:
		c.enqueue = false
		c.w = &bulkhead.Waiter{Wake: func() { c.woken = true }}
		x.note("enqueued")
		c.queued = true // it may be woken before Enqueue has returned
		x.enqueue(c)
	case c.queued:
		x.leaveOrGo(c)
	case c.asleep:
		if d.roll(4) == 1 {
			x.note("cancelled")
			x.take(c, c.Cancel(x.now, context.Canceled))
			return
		}
		turn := !c.backsOff
		c.asleep, c.backsOff = false, false
		before := x.guard.StateAt(x.now).Bulkhead.InFlight
		step := c.Resume(x.now)
		if x.guard.StateAt(x.now).Bulkhead.InFlight > before { // it is back, if only to wait for the circuit
			c.away, c.has = false, true
		}
		if turn && step.Action == core.Sleep {
			x.t.Errorf("a call that has waited for its turn waits for another: %+v", step)
		}
		x.take(c, step)
	default:
		x.land(c)
	}
}

// enqueue puts c into the queue. If it does not come back its driver has not begun to wait.
func (x *permits) enqueue(c *permitted) {
	waits := false
	defer func() {
		if !waits {
			c.queued, c.woken = false, false
		}
	}()
	step := c.Enqueue(x.now, c.w)
	waits = true
	if step.Action == core.Queue { // there was a place
		c.away, c.has = false, true
	}
	x.take(c, step)
}

func (x *permits) leaveOrGo(c *permitted) {
	switch n := x.dice.roll(4); {
	case n < 2 && c.woken:
		c.queued, c.woken = false, false
		c.enqueue, c.has, c.away = false, true, false
		x.note("admitted")
		x.take(c, c.Admitted(x.now))
	case n == 2:
		x.note("its time in the queue is up, woken %t", c.woken)
		c.queued, c.has, c.away = false, c.has || c.woken, c.away && !c.woken
		c.woken = false
		x.take(c, c.LeaveQueue(x.now, c.w, nil))
	case n == 3:
		x.note("it leaves the queue, woken %t", c.woken)
		c.queued, c.woken = false, false
		x.take(c, c.LeaveQueue(x.now, c.w, context.Canceled))
	}
}

// land has a copy come back, or sends another.
func (x *permits) land(c *permitted) {
	d := &x.dice
	n := d.roll(core.MaxCopies)
	if d.roll(3) == 1 {
		if d.roll(4) == 1 {
			x.others = 1 + d.roll(2)
		}
		if n, _, ok := c.Hedge(x.now); ok {
			x.note("hedged")
			if c.begun {
				x.t.Error("a caller has the beginning of the answer, and a copy is sent")
			}
			x.fly(c, n)
		}
		return
	}
	for k := 0; k < core.MaxCopies && !c.flies[n]; k++ { // what is not in the air may be reported, too: that is ignored
		if n = (n + 1) % core.MaxCopies; d.roll(8) == 1 {
			break
		}
	}
	if x.streams && d.roll(3) == 1 {
		x.note("the answer of copy 0 begins")
		if c.flies[0] && c.inAir() == 1 {
			c.begun, c.sends = true, false
		}
		core.AnswerBegan(&c.Call, x.now)
		return
	}
	if x.streams && d.roll(3) == 1 {
		at := x.now + time.Duration(d.roll(3)-1)*20*ms
		x.note("handed over at %v", at)
		if c.flies[0] && c.inAir() == 1 && !c.begun {
			c.sends = at > x.now
		}
		core.HandedOver(&c.Call, x.now, at)
		return
	}
	o := x.outcome(c.handed[n])
	x.note("copy %d: %v", n, o.Class)
	flew, final := c.flies[n], c.begun && n == 0 && c.flies[0]
	c.flies[n] = false
	if flew && o.Class != abate.Ignored {
		c.failed = o.Class
	}
	if flew && c.tree {
		x.unpaid += x.lacks(o, c.handed[n])
	}
	step := c.AttemptDone(x.now, n, o)
	if !flew && step.Action != core.Await {
		x.t.Errorf("a copy that was not in the air decided: %+v", step)
	}
	if final && step.Action != core.Finish {
		x.t.Errorf("a caller has the beginning of the answer, and the call goes on: %+v", step)
	}
	if step.Action == core.Attempt || step.Action == core.Sleep {
		c.flies = [core.MaxCopies]bool{}
	}
	if x.take(c, step); c.over && o.Unfinished && o.Class == abate.Success {
		x.read = append(x.read, c)
	}
}

// outcome is any outcome of an attempt whose callee was told that it may use so many extra ones.
func (x *permits) outcome(handed int) abate.Outcome {
	d := &x.dice
	o := abate.Outcome{
		Class: abate.Class(d.roll(4)), NoRetry: d.roll(5) == 1, Neutral: d.roll(6) == 1, Unsent: d.roll(5) == 1,
	}
	switch {
	case o.Class == abate.Success:
		o.Unfinished, o.Begun = d.roll(3) > 0, d.roll(4) == 1
	case d.roll(4) == 1:
		o.Err = syscall.EMFILE // our own
	default:
		o.Err = errDown
	}
	if d.roll(3) == 1 {
		o.Below = core.Below{Said: true, Made: d.roll(handed + 1), Final: d.roll(6) == 1}
	}
	if d.roll(16) == 1 {
		o.Resent = 1
	}
	if o.Class == abate.Overload {
		o.RetryAfter = time.Duration(d.roll(3)) * 30 * ms
	}
	return o
}

// lacks is how many attempts made behind a callee the tree cannot pay for.
func (x *permits) lacks(o abate.Outcome, handed int) int {
	used := handed
	if o.Below.Said {
		used = o.Below.Made
	} else if o.Unsent {
		used = 0
	}
	a, _ := x.tree.Allowance()
	return max(used+o.Resent-handed-a.Left, 0)
}

// end brings c to its end as drivers do, or gives it up.
func (x *permits) end(c *permitted) {
	x.do(c, func() {
		switch {
		case c.queued:
			c.queued, c.woken = false, false
			x.take(c, c.LeaveQueue(x.now, c.w, context.Canceled))
		case c.asleep:
			x.take(c, c.Cancel(x.now, context.Canceled))
		}
		if !c.over {
			x.abort(c)
		}
	})
	for n := range core.MaxCopies { // what comes too late is ignored
		if step := c.AttemptDone(x.now, n, abate.Outcome{}); step.Action != core.Await {
			x.t.Errorf("after the end: %+v", step)
		}
	}
	c.Abort(x.now)
}

// check compares the guard with the books.
func (x *permits) check() {
	holding, waiting, first, away, calls, copies, begun, sending, counted := 0, 0, 0, 0, 0, 0, 0, 0, 0
	for _, c := range x.read {
		if c.keeps {
			holding++
		}
	}
	for _, c := range x.live {
		if c.away {
			away++
		}
		calls++
		if copies += c.inAir(); c.begun {
			begun++
		}
		if c.sends && c.flies[0] {
			if sending++; c.counted {
				counted++
			}
		}
		switch {
		case !c.counted || c.begun && !c.keeps || c.enqueue && !c.circuit:
		case c.queued && !c.woken && !c.circuit:
			if waiting++; !c.away {
				first++
			}
		case c.away && !c.woken:
		default:
			holding++
		}
		if c.Attempts() > c.most {
			x.t.Errorf("%d attempts, at most %d allowed", c.Attempts(), c.most)
		}
	}
	st := x.guard.StateAt(x.now)
	adapts := x.guard.Describe().Bulkhead.Adapts()
	if b := st.Bulkhead; b.InFlight != holding || b.Queued != waiting || b.Away != away {
		x.t.Errorf("%d calls hold a permit, %d wait and %d are away, by the books; %+v", holding, waiting, away, b)
	} else if b.Queued > 0 && b.InFlight < b.Limit || x.plain && b.Limit > 0 &&
		(b.InFlight > b.Limit && !adapts || b.MaxQueue > 0 && first > b.MaxQueue) {
		x.t.Errorf("%d of first attempts wait: %+v", first, b)
	}
	if n := st.Throttle.Waiting; n > copies || n < 0 {
		x.t.Errorf("the throttle waits for %d attempts, %d are in the air", n, copies)
	} else if p := x.guard.Describe(); x.plain && p.Throttle.Enabled() && !p.Throttle.Shadow && n != copies-begun-sending {
		x.t.Errorf("the throttle waits for %d attempts, %d are in the air", n, copies-begun-sending)
	}
	if n := st.Bulkhead.Sending; n != counted {
		x.t.Errorf("the bulkhead knows of %d calls whose clients are still sending, there are %d", n, counted)
	}
	x.checkCircuit(&st, copies-begun, begun)
	if l := x.guard.Describe().RateLimit; x.plain && l.Enabled() && !l.Shadow {
		if most := float64(l.Burst) + l.Limit.Tokens*(x.now-x.since+l.MaxWait).Seconds(); float64(x.sent) > most {
			x.t.Errorf("%d turns were taken, the rate limit has %v", x.sent, most)
		}
	}
	if x.running != calls || x.flying != copies {
		x.t.Errorf("the observer knows of %d calls and %d attempts, there are %d and %d", x.running, x.flying, calls, copies)
	}
	// repeats that count as first attempts, and earn, see budget.Repeat
	lone := (1 + extraRatio) * float64((x.now-time.Hour)/time.Minute)
	if st.Budget < 0 || (x.budgeted || x.ours != nil) &&
		float64(x.extra) > extraRatio*float64(x.first+x.lent)+extraReserve+lone {
		x.t.Errorf("%d extra attempts for %d first ones, %v left", x.extra, x.first, st.Budget)
	}
}

// checkCircuit compares the circuit breaker with the books. Attempts whose answers have begun are not among the copies.
func (x *permits) checkCircuit(st *abate.State, copies, begun int) {
	b, held, woken := st.Breaker, 0, 0
	for _, c := range x.live {
		if c.queued && c.circuit {
			held++
			if c.woken { // if it waits for a sign of life, its place may be another's by now
				woken++
			}
		}
	}
	if b.Probes > copies+held+begun+len(x.read) || b.Hanging > copies+held {
		x.t.Errorf("%d probes are out, %d attempts hang, %d are in the air", b.Probes, b.Hanging, copies)
	}
	p := x.guard.Describe().CircuitBreaker
	adaptive := p.Kind == breaker.Adaptive && p.Mode == breaker.Enforce
	l := b.Learned
	waits := l.Held + l.Waiting
	x.watched = x.watched || l.Waiting > 0
	switch {
	case x.plain && p.Kind != breaker.Adaptive && b.Probes > 2:
		x.t.Errorf("%d probes are out", b.Probes)
	case waits > held || waits+l.InFlight > copies+held, x.plain && adaptive && waits+l.InFlight < copies+held-woken,
		x.plain && adaptive && l.Waiting == 0 && !x.watched && waits+l.InFlight != copies+held:
		x.t.Errorf("%d calls wait and %d attempts are in the air; the circuit knows of %d, %d and %d", held, copies, l.Held,
			l.Waiting, l.InFlight)
	}
}

// finally checks what holds when all calls have ended.
func (x *permits) finally() {
	a, _ := x.tree.Allowance()
	if all := a.Left + x.tree.Report().Made; x.obeys && all != x.given+x.unpaid || x.tree.Report().Made < x.ofTree {
		x.t.Errorf("the tree began with %d, has %d left and made %d, %d of them here", x.given, a.Left,
			x.tree.Report().Made, x.ofTree)
	}
	// Whatever was, a circuit that is closed by hand and a bulkhead of one let one call after the other pass.
	p := abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}, Rand: x.rnd.Uint64,
		CircuitBreaker: breaker.Config{FailureThreshold: 1}}
	err := errors.Join(x.guard.OverrideAt(x.now, abate.OverrideDisabled), x.guard.UpdateAt(x.now, p))
	for range 3 {
		var c core.Call
		if step := x.guard.Begin(&c, x.now, core.NoDeadline); err != nil || step.Action != core.Attempt {
			x.t.Errorf("at last: %+v, %v", step, err)
		}
		c.AttemptDone(x.now, 0, abate.Outcome{})
	}
}

// FuzzPermits plays calls under any policy, which changes meanwhile, in any order of events: what was handed out, what
// waits and what was given back add up after each of them.
func FuzzPermits(f *testing.F) {
	for _, program := range append(programs(11, 20, 300), programs(12, 20, 301)...) {
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		panicsLogged(t)
		playPermits(t, input)
	})
}

// programs are n random ones of that many bytes.
func programs(seed uint64, n, size int) [][]byte {
	rnd, all := rand.New(rand.NewPCG(seed, 7)), make([][]byte, n)
	for i := range all {
		all[i] = make([]byte, size)
		for k := range all[i] {
			all[i][k] = byte(rnd.Uint32())
		}
	}
	return all
}

// rounds is how many random programs a test plays. The race detector makes each of them seven times slower and finds
// nothing in them, since one goroutine at a time acts: under it a test plays the first tenth (make rest plays all).
func rounds() int {
	if raceDetector {
		return 300
	}
	return 3000
}

func TestPermitsAddUpAfterEveryEventOfAnyProgram(t *testing.T) {
	panicsLogged(t)
	for i, program := range programs(13, rounds(), 600) {
		if playPermits(t, program[i%2*2:]); t.Failed() { // every second one has streams
			return
		}
	}
}
