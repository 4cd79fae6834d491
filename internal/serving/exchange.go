package serving

import (
	"context"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

// Exchange is a request that a gate decides about, from its arrival until the service is through with it. One that was
// admitted is settled exactly once. Until then its slot is lent while it waits for its client. It is not used again for
// another request.
type Exchange struct {
	Gate    *inbound.Gate
	Arrival inbound.Arrival
	Until   time.Duration // when the request has to be done
	Loan    Loan          // of its slot, while it waits for its client
	Lends   bool          // it has a slot to lend
	nearEnd time.Duration // from when on a client that leaves has waited as long as it could
	settled bool
}

// nearEnd is how much before its deadline a request that is given up counts as one whose time was up: client and server
// run the same time limit, and which of them notices first is a matter of luck.
const nearEnd = 10 * time.Millisecond

// Enter has the gate decide about a request of which s has heard all. It returns why the request is refused, nil if
// it is not. It blocks for no longer than the gate says, and no longer than client, which is over when the client has
// left.
func (x *Exchange) Enter(client context.Context, s *Sender) *Problem {
	if s.unknown() {
		return &Unauthenticated
	}
	step := Decide(client, &x.Arrival, x.Gate.Arrive(&x.Arrival, s.now, s.request()))
	if step.Action == core.Refuse {
		return ProblemOf(x.Arrival.Refusal())
	}
	x.Admit(s.now, step.Until)
	if x.Lends = x.Arrival.Holds(); x.Lends {
		x.Loan.Open(&x.Arrival)
	}
	return nil
}

// Decide does what an arrival asks for until it is to be handled or refused: asks the fleet, reads the
// processor's load, waits in the queue. client is
// over when the client has left, which ends the wait. It blocks for no longer than the gate says.
func Decide(client context.Context, a *inbound.Arrival, step core.Step) core.Step {
	for step.Action != core.Handle && step.Action != core.Refuse {
		step = wait(client, a, step)
	}
	return step
}

func wait(client context.Context, a *inbound.Arrival, step core.Step) core.Step {
	switch step.Action {
	case core.Ask:
		d := a.AskFleet(client)
		return a.Limited(core.Now(), d)
	case core.Measure:
		share := a.ReadCPU()
		return a.Measured(core.Now(), share)
	}
	woken := make(chan struct{}, 1)
	w := &shed.Waiter{Wake: func() {
		select {
		case woken <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	if step = a.Enqueue(core.Now(), w); step.Action != core.Queued {
		return step
	}
	timer := time.NewTimer(step.Until - core.Now())
	defer timer.Stop()
	select {
	case <-woken:
		if err := client.Err(); err != nil { // both at once: nothing is done for a client that has left
			return a.LeaveQueue(core.Now(), w, left(err))
		}
		return a.Woken(core.Now(), w)
	case <-timer.C:
		return a.LeaveQueue(core.Now(), w, nil)
	case <-client.Done():
		return a.LeaveQueue(core.Now(), w, left(client.Err()))
	}
}

// left names the end of a client's context.
func left(err error) error {
	if err == context.DeadlineExceeded {
		return abate.ErrDeadline
	}
	return err
}

// Admit notes that the gate admits the request, which arrived at now and has time until then. Enter does; drivers that
// drive the Arrival themselves call it.
func (x *Exchange) Admit(now, until time.Duration) {
	x.Until, x.nearEnd = until, until-min(nearEnd, (until-now)/10)
}

// Settle tells the gate that the service is through with the request, and what its answer says about the service. Later
// calls do nothing. One goroutine calls it.
func (x *Exchange) Settle(client context.Context, class abate.Class) {
	if x.settled {
		return
	}
	x.settled = true
	x.Loan.Close()
	now := core.Now()
	if class != abate.Ignored && client.Err() == context.Canceled {
		class = abate.Ignored
		if now-x.Arrival.Away(now) >= x.nearEnd {
			class = abate.Overload // too slow for its callers
		}
	}
	x.Arrival.Done(now, class)
}

// RefuseKey notes that an admitted request is refused for its key. It never came to the service, so the gate learns
// nothing from it.
func (x *Exchange) RefuseKey(client context.Context, p *Problem) {
	x.Settle(client, abate.Ignored)
	if p == &KeyMissing || p == &KeyInvalid {
		x.Gate.KeyDecided("missing")
	}
}

// ComeBack is how long a client should stay away whose admitted request is refused so; 0 when there is nothing to say.
// Those who are refused come back one after the other.
func (x *Exchange) ComeBack(p *Problem) time.Duration {
	if p == &KeyRunning || p == &KeyUnavailable || p == &KeyUnrecorded {
		return x.Gate.ComeBack()
	}
	return 0
}

// Tree is the call tree of a request, and what its caller is told of it.
type Tree struct {
	core.CallTree
	given, used int32 // of the allowance, if one was believed; used is known when the tree is closed
	open        bool  // there is one, and the tree is not closed
}

// Believe makes the tree that of a request that came with an allowance, if the values of the header are one. What
// cannot be read limits nothing.
func (t *Tree) Believe(values []string) {
	if a, ok := hops.LeastAllowance(values); ok {
		t.Reset(a)
		t.given, t.open = int32(a.Left), true
	}
}

// Report returns what the caller is told when the answer is written. What is left goes back to the caller with that, so
// nothing more is made of it here. What calls in flight were given counts: they have not said yet what they used.
func (t *Tree) Report() core.Below {
	if t.open {
		t.used, t.open = t.given-int32(t.Close()), false
	}
	b := t.CallTree.Report()
	b.Made = max(b.Made, int(t.used))
	return b
}
