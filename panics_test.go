package abate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/policy/throttle"
)

// lines is a log that is kept.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// panicsLogged is what slog.Default gets until the test ends.
func panicsLogged(t *testing.T) *lines {
	before, l := slog.Default(), new(lines)
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// everything is a policy with every part that hands something out. One failure opens its circuit; a probe may follow at
// once.
func everything() abate.Policy {
	return abate.Policy{
		Retry:    fixed(ms, 1),
		Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1, MaxWait: time.Second},
		CircuitBreaker: breaker.Config{FailureThreshold: 2, PermittedCallsInHalfOpen: 1, SuccessThreshold: 1,
			WaitDurationInOpenState: ms, HalfOpenPermitLease: time.Hour},
		Throttle:    throttle.Config{K: 2},
		RetryBudget: budget.Config{Ratio: 0.1, Reserve: 100},
		Hedge:       hedge.Config{Delay: 10 * ms},
		Pacing:      pacing.Config{PerSecond: 1000, Burst: 100, RampUp: ms},
	}
}

// free fails if g holds anything of a call: a permit, a lease of the half-open circuit, the throttle's attention.
func free(t *testing.T, g *abate.Guard, what string) {
	t.Helper()
	if st := g.State(); st.Bulkhead.InFlight != 0 || st.Bulkhead.Queued != 0 || st.Breaker.Probes != 0 ||
		st.Throttle.Waiting != 0 {
		t.Errorf("%s: %+v", what, st)
	}
	<-time.After(time.Second) // an open circuit lets a probe pass
	for range 2 {
		if v, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("%s: the next call: %d, %v", what, v, err)
		}
	}
}

// trip is something that goes wrong at one of the moments of a call.
type trip struct {
	left atomic.Int32
	how  func()
}

func (x *trip) pass() {
	if x.left.Add(-1) == 0 {
		x.how()
	}
}

// TestEveryPermitComesBackWhateverTheCallersCodeDoes has the nth piece of the caller's own code that a call runs panic,
// or end its goroutine: the function, Classify, Rand, the observer, the fallback, for every n and every driver.
func TestEveryPermitComesBackWhateverTheCallersCodeDoes(t *testing.T) {
	panicsLogged(t)
	type caller = func(context.Context, *abate.Guard, func(context.Context) (int, error))
	drivers := map[string]caller{
		"Do": func(ctx context.Context, g *abate.Guard, fn func(context.Context) (int, error)) { abate.Do(ctx, g, fn) },
		"DoHedged": func(ctx context.Context, g *abate.Guard, fn func(context.Context) (int, error)) {
			abate.DoHedged(ctx, g, fn)
		},
		"DoWithFallback": func(ctx context.Context, g *abate.Guard, fn func(context.Context) (int, error)) {
			abate.DoWithFallback(ctx, g, fn, func(ctx context.Context, _ error) (int, error) { return fn(ctx) })
		},
		"Run": func(ctx context.Context, g *abate.Guard, fn func(context.Context) (int, error)) {
			_, release, _ := core.Run[int](ctx, g, &operation{attempt: func(ctx context.Context, _ int) (int, error) {
				return fn(ctx)
			}})
			release.Done()
		},
		"AdmitOne": func(ctx context.Context, g *abate.Guard, fn func(context.Context) (int, error)) {
			if a, err := core.AdmitOne(ctx, g); err == nil {
				defer func() { a.Done(errDown) }()
				_, err = fn(a.Context())
				a.Done(err)
			}
		},
	}
	for name, drive := range drivers {
		for way, how := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
			for n := int32(1); n <= 24; n++ {
				synctest.Test(t, func(t *testing.T) {
					x := &trip{how: how}
					p := everything()
					p.Observer = abate.ObserverFunc(func(abate.Event) { x.pass() })
					p.Classify = func(err error) abate.Outcome { x.pass(); return abate.Outcome{Class: abate.Failure, Err: err} }
					var draws atomic.Uint64
					p.Rand = func() uint64 { x.pass(); return draws.Add(0x9e3779b97f4a7c15) }
					g := guard(t, p)
					calls := func(n int) {
						for range n {
							var both sync.WaitGroup
							for range 2 { // one of them waits in the queue
								both.Add(1)
								go func() {
									defer both.Done()
									defer func() { _ = recover() }()
									drive(t.Context(), g, func(context.Context) (int, error) {
										<-time.After(15 * ms)
										x.pass()
										return 0, errDown
									})
								}()
							}
							both.Wait()
							<-time.After(100 * ms)
						}
					}
					calls(1) // opens the circuit: the next ones probe
					x.left.Store(n)
					calls(2)
					x.left.Store(0)
					free(t, g, fmt.Sprintf("%s, %s at moment %d", name, way, n))
				})
			}
		}
	}
}

func TestAHedgeThatPanicsTooLateEndsNothing(t *testing.T) {
	logged := panicsLogged(t)
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, hedged(10*ms, 1))
		var n atomic.Int32
		v, err := abate.DoHedged(t.Context(), g, func(context.Context) (int, error) {
			if n.Add(1) == 1 {
				<-time.After(20 * ms)
				return 1, nil
			}
			<-time.After(time.Second)
			panic("too late")
		})
		if v != 1 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		<-time.After(2 * time.Second)
		if got := g.State().Panics; got != 1 || !strings.Contains(logged.String(), "too late") {
			t.Errorf("%d panics, log %s", got, logged)
		}
	})
}

// The panic of the first copy is its caller's, also when a hedge has won; what the hedge brought must not be lost.
func TestTheWinnerOfACallThatPanicsIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &operation{attempt: func(ctx context.Context, n int) (int, error) {
			if n == 2 {
				return 2, nil
			}
			<-ctx.Done()
			panic("boom")
		}}
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			core.Run[int](t.Context(), guard(t, hedged(10*ms, 1)), op)
		}()
		if got := fmt.Sprint(op.discarded); got != "[2]" {
			t.Error("discarded", got)
		}
	})
}

func TestOneObserverThatPanicsDoesNotDeafenTheOthers(t *testing.T) {
	logged := panicsLogged(t)
	told := 0
	count := abate.ObserverFunc(func(abate.Event) { told++ })
	broken := abate.ObserverFunc(func(abate.Event) { panic("broken") })
	g := guard(t, abate.Policy{Observer: abate.Observers(count, broken, count)})
	for range 100 {
		if _, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
	}
	st := g.State().Panics
	if told != 800 || st != 400 {
		t.Errorf("told %d times, %d panics, want 800 and 400", told, st)
	}
	if n := strings.Count(logged.String(), "msg="); n != 9 { // 1, 2, 4 and so on to 256
		t.Errorf("%d lines in the log, want 9", n)
	}
}

func TestAGateKeepsNoPlaceForAnObserverThatFails(t *testing.T) {
	panicsLogged(t)
	for way, how := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for n := int32(1); n <= 12; n++ {
			x := &trip{how: how}
			p := inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, MaxQueue: 1, Shadow: n > 6},
				RateLimit: limited(perSecond(1000, 1000))}
			count := 0
			p.Observer = inbound.GateObservers(inbound.GateObserverFunc(func(inbound.GateEvent) {
				x.pass()
			}), inbound.GateObserverFunc(func(inbound.GateEvent) { count++ }))
			g := gate(t, p)
			x.left.Store((n-1)%6 + 1)
			for range 3 {
				done := make(chan struct{})
				go func() {
					defer close(done)
					var a, b inbound.Arrival
					if step := g.Arrive(&a, 0, inbound.Request{Deadline: core.NoDeadline}); step.Action != core.Handle {
						t.Errorf("%+v", step)
					}
					defer a.Done(0, abate.Success) // a driver can do that only now
					var w shed.Waiter
					if step := g.Arrive(&b, 0, inbound.Request{Deadline: core.NoDeadline}); step.Action == core.Queue &&
						b.Enqueue(0, &w).Action == core.Queued {
						b.LeaveQueue(0, &w, context.Canceled)
					} else if step.Action == core.Handle { // of a shadow
						b.Done(0, abate.Success)
					}
				}()
				<-done
			}
			if st := g.StateAt(0).Shed; st.InFlight != 0 || st.Queued != 0 {
				t.Errorf("%s at moment %d: %+v", way, n, st)
			}
			if way == "panic" && (g.State().Panics != 1 || count == 0) {
				t.Errorf("%d panics, %d events", g.State().Panics, count)
			}
		}
	}
}

func TestAPolicyCanBeChangedAfterItsRandomNumbersPanicked(t *testing.T) {
	p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}, Rand: func() uint64 { panic("dice") }}
	g := guard(t, p)
	for _, mode := range []breaker.Mode{breaker.ForcedOpen, breaker.Enforce} {
		p.CircuitBreaker.Mode = mode
		func() {
			defer func() { _ = recover() }()
			_ = g.Update(p)
		}()
	}
	if err := g.Update(abate.Policy{}); err != nil {
		t.Error(err)
	}
}

// A caller that writes into its error must not change what others get.
func TestNobodyChangesTheErrorOfAnother(t *testing.T) {
	p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}}
	g := guard(t, p)
	_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errDown })
	refused := func() (*abate.Error, error) {
		_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, nil })
		var e *abate.Error
		if !errors.As(err, &e) || !errors.Is(err, abate.ErrCircuitOpen) || e.Reason != abate.ErrCircuitOpen ||
			e.Opened == "" || abate.Reason(err) != abate.ErrCircuitOpen {
			t.Fatalf("%v: %+v", err, e)
		}
		return e, err
	}
	e, err := refused()
	before := err.Error()
	if e.Error() != before {
		t.Errorf("%q and %q", e, before)
	}
	*e = abate.Error{Guard: "mine", Reason: errFinal, Attempts: 9}
	own, second := refused()
	if second.Error() != before || err.Error() != before || own.Attempts != 0 || own.Guard != "payment-service" ||
		own.Reason != abate.ErrCircuitOpen {
		t.Errorf("%v, %+v; was %q", second, own, before)
	}
	if abate.Reason(errDown) != nil || abate.Reason(nil) != nil {
		t.Error("a reason where there is none")
	}
}
