package abate_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
)

// unmade are the guards that nobody has made.
func unmade() map[string]*abate.Guard {
	return map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)}
}

func TestWithoutAGuardEveryCallPasses(t *testing.T) {
	fn := func(context.Context) (int, error) { return 7, errDown }
	for entry, call := range map[string]func(context.Context, *abate.Guard) (int, error){
		"Do":       func(ctx context.Context, g *abate.Guard) (int, error) { return abate.Do(ctx, g, fn) },
		"DoHedged": func(ctx context.Context, g *abate.Guard) (int, error) { return abate.DoHedged(ctx, g, fn) },
		"DoWithFallback": func(ctx context.Context, g *abate.Guard) (int, error) {
			return abate.DoWithFallback(ctx, g, fn, func(_ context.Context, err error) (int, error) { return 7, err })
		},
		"DoErr": func(ctx context.Context, g *abate.Guard) (int, error) {
			return 7, abate.DoErr(ctx, g, func(context.Context) error { return errDown })
		},
		"DoHedgedWithFallback": func(ctx context.Context, g *abate.Guard) (int, error) {
			return abate.DoHedgedWithFallback(ctx, g, fn, func(_ context.Context, err error) (int, error) { return 7, err })
		},
		"Run": func(ctx context.Context, g *abate.Guard) (int, error) {
			v, release, err := core.Run[int](ctx, g, &operation{attempt: func(context.Context, int) (int, error) {
				return 7, errDown
			}})
			release.Done()
			return v, err
		},
		"AdmitOne": func(ctx context.Context, g *abate.Guard) (int, error) {
			a, err := core.AdmitOne(ctx, g)
			if err != nil || a.Context() != ctx {
				t.Errorf("%v, context %v", err, a.Context())
			}
			return 7, a.Done(errDown)
		},
		"Begin": func(_ context.Context, g *abate.Guard) (int, error) {
			var c core.Call
			if step := g.Begin(&c, 0, core.NoDeadline); step.Action != core.Attempt {
				t.Errorf("%+v", step)
			}
			return 7, c.AttemptDone(0, 0, failure()).Err
		},
		"Startup": func(_ context.Context, g *abate.Guard) (int, error) {
			var s core.Startup
			if step := s.Begin(g, 0, core.NoDeadline); step.Action != core.Attempt {
				t.Errorf("%+v", step)
			}
			return 7, s.AttemptDone(0, abate.Outcome{Class: abate.Failure, NoRetry: true, Err: errDown}).Err
		},
	} {
		for name, g := range unmade() {
			for range 100 { // nothing is counted, and nothing is refused for it
				if v, err := call(t.Context(), g); v != 7 || !errors.Is(err, errDown) {
					t.Fatalf("%s of a %s guard: %d, %v", entry, name, v, err)
				}
			}
		}
	}
}

func TestAGuardThatNobodyMadeCanBeLookedAtAndNotChanged(t *testing.T) {
	for name, g := range unmade() {
		if !g.Idle() {
			t.Errorf("a %s guard is in use", name)
		}
		g.UsedFallback(errDown)
		g.CountHiddenRetries(1)
		if !g.Idle() || g.ComeBack(abate.ErrCircuitOpen) < 0 {
			t.Errorf("%s is not idle", name)
		}
		if g.Name() != "unguarded" || g.Budget() != nil || g.Breaker() != nil || g.State() != (abate.State{}) ||
			g.StateAt(time.Hour) != (abate.State{}) {
			t.Errorf("%s: %q, %+v", name, g.Name(), g.State())
		}
		if p := g.Describe(); p.MaxRetries != 0 || p.CircuitBreaker.Enabled() || p.RetryBudget.Enabled() ||
			p.Bulkhead.Enabled() {
			t.Errorf("%s: %+v", name, p)
		}
		if o := g.Judge(errDown); o.Class != abate.Failure || !g.Retryable(0, errDown, true) || g.RetryableCode(14, false) {
			t.Errorf("%s: %+v", name, o)
		}
		p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}}
		for what, err := range map[string]error{
			"Update": g.Update(p), "UpdateAt": g.UpdateAt(0, p), "Override": g.Override(abate.OverrideForcedOpen),
		} {
			if err == nil {
				t.Errorf("%s: %s is no error", name, what)
			}
		}
		if _, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 7, nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a guard that nobody made is told in one place must not be known in another: all of them share their settings.
func TestGuardsThatNobodyMadeShareNothing(t *testing.T) {
	ctx := abate.WithObserver(t.Context(), abate.ObserverFunc(func(abate.Event) {}))
	ctx = core.WithCallTree(ctx, core.NewCallTree(core.Allowance{Left: 3, Owner: "edge"}))
	for range 10 {
		_, _ = abate.Do(ctx, nil, func(context.Context) (int, error) { return 7, nil })
	}
	if st := new(abate.Guard).State(); st != (abate.State{}) {
		t.Errorf("%+v", st)
	}
}

func TestWithoutAGateEveryRequestPasses(t *testing.T) {
	for name, g := range map[string]*inbound.Gate{"nil": nil, "zero": new(inbound.Gate)} {
		for range 100 {
			var a inbound.Arrival
			if step := g.Arrive(&a, 0, inbound.Request{Deadline: core.NoDeadline}); step.Action != core.Handle {
				t.Fatalf("%s: %+v", name, step)
			}
			if _, limited := a.Limit(); limited || a.NoRetry(0) {
				t.Errorf("%s: limited %t", name, limited)
			}
			a.Done(0, abate.Overload)
		}
		g.KeyDecided("run")
		if _, _, on := g.Idempotency(); on || g.Name() != "unguarded" || g.State() != (inbound.GateState{}) ||
			g.Trusts(netip.Addr{}) || g.Describe().Shed.Enabled() {
			t.Errorf("%s: %q, %+v", name, g.Name(), g.State())
		}
		if g.Update(inbound.Protection{}) == nil || g.UpdateAt(0, inbound.Protection{}) == nil {
			t.Errorf("%s: an update is no error", name)
		}
	}
}
