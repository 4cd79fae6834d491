package serving_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/shed"
)

func TestARequestWaitsForAPlaceForAsLongAsItsGateAndItsClientDo(t *testing.T) {
	for name, c := range map[string]struct {
		free   time.Duration // when the place is free
		client time.Duration // when the client's own time is up
		leaves time.Duration // when it goes away by itself
		action core.Action
		reason error
		after  time.Duration
	}{
		"a place comes free":     {time.Second, time.Hour, time.Hour, core.Handle, nil, time.Second},
		"the queue is too slow":  {time.Hour, time.Hour, time.Hour, core.Refuse, abate.ErrOverloaded, 10 * time.Second},
		"the client's time ends": {time.Hour, 2 * time.Second, time.Hour, core.Refuse, abate.ErrDeadline, 2 * time.Second},
		"the client leaves":      {time.Hour, time.Hour, 3 * time.Second, core.Refuse, context.Canceled, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := inbound.Protection{
					Shed: shed.Config{
						Concurrency: shed.Fixed, MaxConcurrency: 1, QueueTarget: 5 * time.Second, QueueInterval: 10 * time.Second,
					},
				}
				g, err := inbound.NewGate("shop", p)
				if err != nil {
					t.Fatal(err)
				}
				request := inbound.Request{Deadline: core.NoDeadline}
				var first, second inbound.Arrival
				if step := g.Arrive(&first, core.Now(), request); step.Action != core.Handle {
					t.Fatalf("the first one: %v", step.Action)
				}
				free := time.AfterFunc(c.free, func() { first.Done(core.Now(), abate.Success) })
				defer free.Stop()
				client, leave := context.WithTimeout(t.Context(), c.client)
				defer time.AfterFunc(c.leaves, leave).Stop()
				defer leave()
				began := time.Now()
				step := serving.Decide(client, &second, g.Arrive(&second, core.Now(), request))
				if step.Action != c.action || time.Since(began) != c.after {
					t.Errorf("%v after %v, want %v after %v", step.Action, time.Since(began), c.action, c.after)
				}
				if step.Action == core.Refuse && !errors.Is(second.Refusal().Reason, c.reason) {
					t.Errorf("refused for %v, want %v", second.Refusal().Reason, c.reason)
				}
			})
		})
	}
}

func TestTheLoadOfTheProcessorIsReadForAGateThatNeedsIt(t *testing.T) {
	reads := 0
	p := inbound.Protection{Shed: shed.Config{CPU: 0.5}, CPU: func() float64 { reads++; return 0.7 }}
	g, err := inbound.NewGate("shop", p)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // in a quarter of a second
		var a inbound.Arrival
		arrived := g.Arrive(&a, 0, inbound.Request{Deadline: core.NoDeadline})
		if step := serving.Decide(t.Context(), &a, arrived); step.Action != core.Handle {
			t.Fatalf("%+v", step)
		}
	}
	if share := g.StateAt(0).Shed.CPU; reads != 1 || share != 0.7 {
		t.Errorf("read %d times; the gate takes it for %v", reads, share)
	}
}
