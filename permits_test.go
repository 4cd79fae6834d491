package abate_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/throttle"
)

// What FuzzPermits has found, each in a program of its own.

// quitsAt is an observer that ends the goroutine at the first event of a kind, once it is armed.
func quitsAt(kind core.EventKind, armed *bool) abate.Observer {
	return abate.ObserverFunc(func(e abate.Event) {
		if *armed && e.Kind == kind {
			*armed = false
			runtime.Goexit()
		}
	})
}

// inGoroutine waits for a driver that gives its call up when it does not come to its end.
func inGoroutine(c *core.Call, now time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { c.Abort(now) }()
		f()
	}()
	<-done
}

func TestAnObserverThatEndsTheGoroutineOfAProbesCallKeepsNoProbe(t *testing.T) {
	armed := false
	g := guard(t, abate.Policy{
		CircuitBreaker: breaker.Config{
			FailureThreshold: 1, WaitDurationInOpenState: ms, HalfOpenPermitLease: time.Hour, SuccessThreshold: 2,
		},
		Observer: quitsAt(core.CallEnded, &armed),
	})
	var first, probe core.Call
	g.Begin(&first, 0, core.NoDeadline)
	first.AttemptDone(0, 0, abate.Outcome{Class: abate.Failure, Err: errDown})
	armed = true
	inGoroutine(&probe, time.Second, func() {
		g.Begin(&probe, time.Second, core.NoDeadline)
		probe.AttemptDone(time.Second, 0, abate.Outcome{Unfinished: true}) // nobody is left who could read the rest
	})
	if st := g.StateAt(time.Second).Breaker; armed || st.State != breaker.HalfOpen || st.Probes != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAnObserverThatEndsTheGoroutineOfAnAttemptKeepsNoPlaceInTheThrottle(t *testing.T) {
	armed := true
	g := guard(t, abate.Policy{
		Throttle: throttle.Config{K: 1.5, MinimumNumberOfCalls: 3, Window: 10 * time.Minute},
		Observer: quitsAt(core.AttemptEnded, &armed),
	})
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	now := 2 * time.Minute // the attempt stands in an earlier step of the window
	inGoroutine(&c, now, func() { c.Abort(now) })
	if st := g.StateAt(now).Throttle; armed || st.Waiting != 0 || st.Requests != 0 {
		t.Errorf("%+v", st)
	}
}

// The own budget lets one repeat in a minute pass as a first attempt. If the shared one refuses it, it has not been
// made.
func TestARepeatThatTheSharedBudgetRefusesLeavesTheOwnAsItWas(t *testing.T) {
	shared := budget.New(budget.Config{Ratio: 0.5})
	g := guard(t, abate.Policy{
		Retry: abate.Retry{MaxRetries: 1}, RetryBudget: budget.Config{Ratio: 0.5}, SharedBudget: shared,
		CircuitBreaker: breaker.Config{Disabled: true},
	})
	for now := time.Duration(0); now < 10*time.Minute; now += time.Second {
		shared.Deposit(now) // by others, who use it up
		shared.Withdraw(now, budget.Transient)
		before, held := g.Budget().Balance(now), shared.Balance(now)
		var c core.Call
		c.Repeated()
		step := g.Begin(&c, now, core.NoDeadline)
		c.Abort(now)
		if after := g.Budget().Balance(now); held < 1 && (step.Action != core.Finish || after != before) {
			t.Fatalf("after %v: %+v, the own budget held %v and holds %v", now, step, before, after)
		}
	}
}
