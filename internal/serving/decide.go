package serving

import (
	"context"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/shed"
)

// Decide does what an arrival asks for until it is to be handled or refused: asks the fleet, reads the
// processor's load, waits in the queue. client is
// over when the client has left, which ends the wait. It blocks for no longer than the gate says.
func Decide(client context.Context, a *abate.Arrival, step abate.Step) abate.Step {
	for step.Action != abate.Handle && step.Action != abate.Refuse {
		step = wait(client, a, step)
	}
	return step
}

func wait(client context.Context, a *abate.Arrival, step abate.Step) abate.Step {
	switch step.Action {
	case abate.Ask:
		d := a.AskFleet(client)
		return a.Limited(abate.Now(), d)
	case abate.Measure:
		share := a.ReadCPU()
		return a.Measured(abate.Now(), share)
	}
	woken := make(chan struct{}, 1)
	w := &shed.Waiter{Wake: func() {
		select {
		case woken <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	if step = a.Enqueue(abate.Now(), w); step.Action != abate.Queued {
		return step
	}
	timer := time.NewTimer(step.Until - abate.Now())
	defer timer.Stop()
	select {
	case <-woken:
		if err := client.Err(); err != nil { // both at once: nothing is done for a client that has left
			return a.LeaveQueue(abate.Now(), w, left(err))
		}
		return a.Woken(abate.Now(), w)
	case <-timer.C:
		return a.LeaveQueue(abate.Now(), w, nil)
	case <-client.Done():
		return a.LeaveQueue(abate.Now(), w, left(client.Err()))
	}
}

// left names the end of a client's context.
func left(err error) error {
	if err == context.DeadlineExceeded {
		return abate.ErrDeadline
	}
	return err
}
