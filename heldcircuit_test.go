package abate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
)

// holding is a policy whose circuit learns and holds calls, without retries.
func holding() abate.Policy {
	return abate.Policy{AttemptTimeout: time.Second, CircuitBreaker: breaker.Config{Kind: breaker.Adaptive}}
}

// soon is how long its answers take where a dependency of these tests is well.
const soon = 20 * ms

// A sick dependency answers in 20 ms, or hangs, or fails at once.
type sick struct{ state atomic.Int32 }

const (
	well = iota
	hanging
	refusing
)

func (s *sick) call(ctx context.Context) (int, error) {
	switch s.state.Load() {
	case hanging:
		<-ctx.Done()
		return 0, ctx.Err()
	case refusing:
		return 0, errDown
	}
	select {
	case <-time.After(soon):
		return 1, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// opened has the circuit of g learn and then open, by a hang. Its goroutines have ended when it returns, the circuit is
// open, and the next probe is not due.
func opened(t *testing.T, g *abate.Guard, s *sick) {
	t.Helper()
	for range 200 {
		if _, err := abate.Do(context.Background(), g, s.call); err != nil {
			t.Fatal(err)
		}
	}
	s.state.Store(hanging)
	for now := time.Now(); time.Since(now) < 3*time.Second; time.Sleep(20 * ms) {
		go abate.Do(context.Background(), g, s.call)
	}
	time.Sleep(3 * time.Second)
	if st := g.State().Breaker; st.State != breaker.Open || st.Learned.Held > 0 || st.Learned.InFlight > 0 {
		t.Fatalf("%+v", st)
	}
	for g.State().Breaker.OpenUntil <= core.Now() {
		p, ok := g.Breaker().Allow(core.Now())
		if ok {
			defer g.Breaker().Record(core.Now(), p, breaker.Abandoned)
		}
	}
}

// nothingLeft fails the test if a guard has calls or permits out that nobody has.
func nothingLeft(t *testing.T, g *abate.Guard) {
	t.Helper()
	st := g.State()
	if l := st.Breaker.Learned; l.Held != 0 || l.InFlight != 0 || st.Bulkhead.InFlight != 0 || st.Bulkhead.Queued != 0 {
		t.Errorf("left: %+v, %+v", st.Breaker, st.Bulkhead)
	}
}

// hold has n calls wait for the circuit of g, and returns where each sends how it ended.
func hold(g *abate.Guard, s *sick, n int) <-chan error {
	ends := make(chan error, n)
	for range n {
		go func() {
			_, err := abate.Do(context.Background(), g, s.call)
			ends <- err
		}()
	}
	synctest.Wait()
	return ends
}

func TestWhoeverIsHeldWhenThePolicyChangesGoesOnAtOnce(t *testing.T) {
	thresholds := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 3}}
	shadow, refuse := holding(), holding()
	shadow.CircuitBreaker.Mode, refuse.CircuitBreaker.WhileOpen = breaker.Shadow, breaker.Refuse
	for _, row := range []struct {
		name   string
		change func(g *abate.Guard) error
		passes bool
	}{
		{"numbers", func(g *abate.Guard) error { return g.Update(alone(thresholds)) }, true},
		{"no circuit breaker", func(g *abate.Guard) error { return g.Update(alone(abate.Policy{})) }, true},
		{"shadow", func(g *abate.Guard) error { return g.Update(alone(shadow)) }, true},
		{"refuse", func(g *abate.Guard) error { return g.Update(alone(refuse)) }, false},
		{"override disabled", func(g *abate.Guard) error { return g.Override(abate.OverrideDisabled) }, true},
		{"override shadow", func(g *abate.Guard) error { return g.Override(abate.OverrideShadow) }, true},
		{"override forced open", func(g *abate.Guard) error { return g.Override(abate.OverrideForcedOpen) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s sick
				g := guard(t, holding())
				opened(t, g, &s)
				ends := hold(g, &s, 5)
				if held := g.State().Breaker.Learned.Held; held != 5 {
					t.Fatal(held, "are held")
				}
				s.state.Store(well)
				began := time.Now()
				if err := row.change(g); err != nil {
					t.Fatal(err)
				}
				for range 5 {
					if err := <-ends; (err == nil) != row.passes {
						t.Error(err)
					}
				}
				if took := time.Since(began); took > soon {
					t.Errorf("it took %v, an answer %v", took, soon)
				}
				nothingLeft(t, g)
			})
		})
	}
}

func TestAReloadIsNoNewsOfTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		var changes []string
		p := holding()
		p.Observer = abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.BreakerChanged {
				changes = append(changes, e.From.String()+" to "+e.To.String())
			}
		})
		g := guard(t, p)
		opened(t, g, &s)
		changes = nil
		p.CircuitBreaker.WhileOpen = breaker.Refuse
		if err := g.Update(alone(p)); err != nil || len(changes) > 0 {
			t.Error(err, changes)
		}
	})
}

// An observer, or random numbers, that panic or end the goroutine at any moment of a held call.
func TestNoPermitIsLostWhereAnObserverFailsWhileACallIsHeld(t *testing.T) {
	panicsLogged(t)
	for _, fail := range []func(){func() { panic("observer") }, runtime.Goexit} {
		for at := range 6 {
			synctest.Test(t, func(t *testing.T) {
				var s sick
				var countdown atomic.Int32
				p := holding()
				p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 20}
				p.CircuitBreaker.WhileOpen = breaker.Hold
				p.Observer = abate.ObserverFunc(func(abate.Event) {
					if countdown.Add(-1) == 0 {
						fail()
					}
				})
				g := guard(t, p)
				opened(t, g, &s)
				countdown.Store(int32(at + 1))
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						defer func() { recover() }()
						abate.Do(context.Background(), g, s.call)
					})
				}
				synctest.Wait()
				s.state.Store(well)
				all.Wait()
				nothingLeft(t, g)
			})
		}
	}
}

func TestWhoLeavesWhileHeldLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		g := guard(t, holding())
		opened(t, g, &s)
		ctx, cancel := context.WithCancelCause(context.Background())
		ends := make(chan error)
		go func() {
			_, err := abate.Do(ctx, g, s.call)
			ends <- err
		}()
		synctest.Wait()
		why := errors.New("he has left")
		began := time.Now()
		cancel(why)
		if err := <-ends; !errors.Is(err, context.Canceled) || !errors.Is(err, why) || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		nothingLeft(t, g)
	})
}

// Many callers of all kinds, over hours: a dependency that hangs, comes back, refuses and hangs again, callers that
// leave, and a policy that changes meanwhile. Every call ends in its time, and nothing is left.
func TestHeldCallsOfAllKindsEnd(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { storm(t, seed) })
	}
}

func storm(t *testing.T, seed uint64) {
	var s sick
	p := holding()
	p.Retry = fixed(10*ms, 2)
	p.Hedge = hedge.Config{Delay: 30 * ms, MaxHedges: 1}
	g := guard(t, p)
	other := alone(p)
	other.CircuitBreaker = breaker.Config{FailureThreshold: 5, WaitDurationInOpenState: 100 * ms}
	rnd := rand.New(rand.NewPCG(seed, 1))
	var all sync.WaitGroup
	var passed atomic.Int64
	for step := range 3000 {
		kind, patience := rnd.IntN(4), time.Duration(rnd.IntN(2000))*ms
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			if patience%2 == 0 {
				ctx, cancel = context.WithCancel(context.Background())
				defer time.AfterFunc(patience, cancel).Stop()
			}
			defer cancel()
			began := time.Now()
			oneCall(ctx, g, &s, kind)
			if took := time.Since(began); took > patience {
				t.Errorf("a call of kind %d took %v, its caller had %v", kind, took, patience)
			}
			passed.Add(1)
		})
		time.Sleep(10 * ms)
		switch rnd.IntN(400) {
		case 0, 1:
			s.state.Store(hanging)
		case 2, 3, 4, 5:
			s.state.Store(well)
		case 6:
			s.state.Store(refusing)
		case 7:
			g.Update(other)
		case 8, 9, 10:
			g.Update(alone(p))
		case 11:
			g.Override(abate.OverrideDisabled)
		case 12:
			g.Override(abate.OverrideForcedOpen)
		case 13, 14, 15:
			g.Override(abate.NoOverride)
		}
		if step%50 == 0 && g.State().Breaker.Learned.Held > 3000 {
			t.Error("too many are held")
		}
	}
	all.Wait()
	g.Override(abate.NoOverride)
	g.Update(alone(p))
	nothingLeft(t, g)
	s.state.Store(well)
	for range 100 {
		abate.Do(context.Background(), g, s.call)
	}
	if st := g.State().Breaker; st.State != breaker.Closed {
		t.Errorf("all is well: %+v", st)
	}
}

func oneCall(ctx context.Context, g *abate.Guard, s *sick, kind int) {
	switch kind {
	case 0:
		abate.Do(ctx, g, s.call)
	case 1:
		abate.DoHedged(ctx, g, s.call)
	case 2:
		abate.DoWithFallback(ctx, g, s.call, func(context.Context, error) (int, error) { return 0, nil })
	default:
		a, err := core.AdmitOne(ctx, g)
		if err != nil {
			return
		}
		_, err = s.call(ctx)
		a.Done(err)
	}
}
