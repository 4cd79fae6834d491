package abate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/shed"
)

// watching is the default policy with the time limit that whoever uses it sets.
func watching() abate.Policy {
	p := abate.DefaultPolicy()
	p.AttemptTimeout = time.Second
	return p
}

// failing has the circuit of g learn that all is well, and then nothing but failures, which come at once.
func failing(t *testing.T, g *abate.Guard, s *sick) {
	t.Helper()
	for range 200 {
		if _, err := abate.Do(context.Background(), g, s.call); err != nil {
			t.Fatal(err)
		}
	}
	refuses(t, g, s)
}

// refuses has the circuit of g learn that nothing is known any more but failures, which come at once.
func refuses(t *testing.T, g *abate.Guard, s *sick) {
	t.Helper()
	s.state.Store(refusing)
	for range 4 {
		if _, err := abate.Do(context.Background(), g, func(ctx context.Context) (int, error) {
			v, err := s.call(ctx)
			return v, abate.Permanent(err)
		}); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
	}
}

// A tally counts events by their kind.
type tally struct {
	mu     sync.Mutex
	counts map[core.EventKind]int
}

func (l *tally) Observe(e abate.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[core.EventKind]int{}
	}
	l.counts[e.Kind]++
}

func (l *tally) count(k core.EventKind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[k]
}

// watchers has n calls fail that may each take so long, and returns where each sends how it ended, and when.
func watchers(g *abate.Guard, n int, patience time.Duration, fn func(context.Context) (int, error)) <-chan ended {
	ends, began := make(chan ended, n), time.Now()
	for range n {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err := abate.Do(ctx, g, fn)
			ends <- ended{err, time.Since(began)}
		}()
	}
	synctest.Wait()
	return ends
}

type ended struct {
	err   error
	after time.Duration
}

func TestACallThatFailedAtOnceIsTriedAgainAtTheFirstSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		p := watching()
		var log tally
		p.Observer = &log
		g := guard(t, p)
		failing(t, g, &s)
		ends := watchers(g, 10, 2*time.Second, s.call)
		if st := g.State(); st.Breaker.Learned.Waiting != 10 || st.Breaker.State != breaker.Closed {
			t.Fatalf("%+v", st.Breaker)
		}
		time.Sleep(500 * ms)
		before := log.count(core.AttemptBegan)
		if s.state.Store(well); log.count(core.RetryScheduled) != 0 {
			t.Error("there was a retry while nothing was known but failures")
		}
		if _, err := abate.Do(context.Background(), g, s.call); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if e := <-ends; e.err != nil || e.after > 700*ms {
				t.Errorf("%v after %v", e.err, e.after)
			}
		}
		if sent, retries := log.count(core.AttemptBegan)-before, log.count(core.RetryScheduled); sent != 11 || retries != 10 {
			t.Errorf("%d attempts, %d retries", sent, retries)
		}
		nothingLeft(t, g)
	})
}

func TestACallForWhichNoSignComesEndsWithItsOwnLastError(t *testing.T) {
	for _, row := range []struct {
		name                string
		patience, from, to  time.Duration
		timeout, maxElapsed time.Duration
	}{
		{"an attempt's time is over", time.Minute, time.Second, time.Second, time.Second, 0},
		{"its deadline, less what an answer takes", 500 * ms, 470 * ms, 490 * ms, time.Second, 0},
		{"the time for retries is over", time.Minute, 100 * ms, 100 * ms, time.Second, 100 * ms},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s sick
				p := watching()
				p.AttemptTimeout, p.MaxElapsed = row.timeout, row.maxElapsed
				g := guard(t, p)
				failing(t, g, &s)
				e := <-watchers(g, 1, row.patience, s.call)
				var why *abate.Error
				if !errors.As(e.err, &why) || why.Reason != abate.ErrSilent || why.Err != errDown || why.Attempts != 1 {
					t.Errorf("%#v", e.err)
				}
				if e.after < row.from || e.after > row.to {
					t.Errorf("after %v, want between %v and %v", e.after, row.from, row.to)
				}
				nothingLeft(t, g)
			})
		})
	}
}

// A worker with an hour, and nobody beside him who could give a sign: he does not wait for that hour.
func TestWhoCallsAloneFindsOutHimself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		p := watching()
		p.AttemptTimeout = 0
		g := guard(t, p)
		failing(t, g, &s)
		ends := watchers(g, 1, time.Hour, s.call)
		time.Sleep(100 * ms)
		s.state.Store(well)
		if e := <-ends; e.err != nil || e.after > 5*time.Second {
			t.Errorf("%v after %v", e.err, e.after)
		}
		nothingLeft(t, g)
	})
}

// Where calls are rare, and their callers have time, nearly all of them are answered after a long outage: whoever finds
// out himself leaves enough retries for when there is a sign.
func TestRareCallsOutlastALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		p := watching()
		p.AttemptTimeout = 0
		g := guard(t, p)
		failing(t, g, &s)
		const calls = 8 // fewer than the budget pays for
		ends, failed := make(chan ended, calls), 0
		for range calls {
			go func() { ends <- <-watchers(g, 1, 2*time.Minute, s.call) }()
			time.Sleep(4 * time.Second)
		}
		s.state.Store(well)
		for range calls {
			if e := <-ends; e.err != nil {
				failed++
			}
		}
		if failed > 0 {
			t.Errorf("%d of %d calls fail", failed, calls)
		}
		nothingLeft(t, g)
	})
}

func TestTheLastRetryIsSpentLateWhereCallsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		p := watching()
		p.AttemptTimeout, p.MaxRetries = 0, 1
		g := guard(t, p)
		for range 50 { // others may call any second
			time.Sleep(time.Second)
			if _, err := abate.Do(context.Background(), g, s.call); err != nil {
				t.Fatal(err)
			}
		}
		refuses(t, g, &s)
		ends := watchers(g, 1, time.Minute, s.call)
		time.Sleep(10 * time.Second)
		s.state.Store(well)
		if e := <-ends; e.err != nil || e.after > 20*time.Second {
			t.Errorf("%v after %v", e.err, e.after)
		}
		nothingLeft(t, g)
	})
}

func TestNoMoreCallsWaitForASignThanTheBudgetPaysFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		p := watching()
		p.RetryBudget = budget.Config{Ratio: 0.0001, Reserve: 5}
		g := guard(t, p)
		failing(t, g, &s)
		ends := watchers(g, 9, 2*time.Second, s.call)
		if n := g.State().Breaker.Learned.Waiting; n != 5 {
			t.Errorf("%d wait where there is a budget for five", n)
		}
		for range 4 { // the oldest
			if e := <-ends; !errors.Is(e.err, abate.ErrSilent) || e.after != 0 {
				t.Errorf("%v after %v", e.err, e.after)
			}
		}
		s.state.Store(well)
		if _, err := abate.Do(context.Background(), g, s.call); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if e := <-ends; e.err != nil {
				t.Error(e.err)
			}
		}
		if left := g.Budget().Balance(core.Now()); left >= 1 {
			t.Errorf("%v are left of a budget for five retries", left)
		}
		nothingLeft(t, g)
	})
}

// A call that waits must be free to: it may not hold what others need, and its caller has to be waiting for it.
func TestWhoMayNotWaitForASignEndsAtOnce(t *testing.T) {
	overloaded := func(context.Context) (int, error) { return 0, abate.RetryAfter(errDown, 0) }
	later := func(context.Context) (int, error) { return 0, abate.RetryAfter(errDown, 5*time.Second) }
	for _, row := range []struct {
		name     string
		change   func(p *abate.Policy)
		patience time.Duration
		fn       func(context.Context) (int, error)
		after    time.Duration
	}{
		{"the last permit of the bulkhead", func(p *abate.Policy) { p.Bulkhead.MaxConcurrentCalls = 1 }, s2, nil, 0},
		{"one permit of many", func(p *abate.Policy) { p.Bulkhead.MaxConcurrentCalls = 10 }, s2, nil, time.Second},
		{"the last slot of its caller's gate", func(p *abate.Policy) { p.Places = filled(t, 4, 4) }, s2, nil, 0},
		{"one slot of many", func(p *abate.Policy) { p.Places = filled(t, 4, 3) }, s2, nil, time.Second},
		{"a slot of a gate that has no limit", func(p *abate.Policy) { p.Places = filled(t, 0, 9) }, s2, nil, time.Second},
		{"the file says so", func(p *abate.Policy) { p.CircuitBreaker.WhileOpen = breaker.Refuse }, s2, nil, 0},
		{"no budget", func(p *abate.Policy) { p.RetryBudget = budget.Config{Ratio: 0.0001, Reserve: 0.5} }, s2, nil, 0},
		{"no time", func(*abate.Policy) {}, 15 * ms, nil, 0},
		{"told to come later", func(*abate.Policy) {}, s2, later, 0},
		{"an overload, and it knows how long it is waited for", func(*abate.Policy) {}, s2, overloaded, time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s sick
				p := watching()
				row.change(&p)
				g := guard(t, p)
				failing(t, g, &s)
				if row.fn == nil {
					row.fn = s.call
				}
				if e := <-watchers(g, 1, row.patience, row.fn); e.after != row.after || !errors.Is(e.err, errDown) {
					t.Errorf("%v after %v, want %v", e.err, e.after, row.after)
				}
			})
		})
	}
}

// filled is a gate with so many slots, 0 for no limit, of which some are taken.
func filled(t *testing.T, slots, taken int) *inbound.Gate {
	t.Helper()
	p := inbound.Protection{}
	if slots > 0 {
		p.Shed = shed.Config{Concurrency: shed.Fixed, MaxConcurrency: slots}
	}
	g := gate(t, p)
	for range taken {
		if step := g.Arrive(new(inbound.Arrival), core.Now(), inbound.Request{Deadline: core.NoDeadline,
			Priority: shed.CriticalPlus}); step.Action != core.Handle {
			t.Fatalf("%v", step)
		}
	}
	return g
}

const s2 = 2 * time.Second

func TestWithoutADeadlineNobodyWaitsForAnOverloadToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sick
		g := guard(t, watching())
		failing(t, g, &s)
		for _, row := range []struct {
			err    error
			atMost time.Duration
		}{
			{abate.RetryAfter(errDown, 0), 0},
			{errDown, 200 * ms}, // as long as it takes to find a false alarm out
		} {
			began := time.Now()
			_, err := abate.Do(context.Background(), g, func(context.Context) (int, error) { return 0, row.err })
			if after := time.Since(began); !errors.Is(err, abate.ErrSilent) || after > row.atMost {
				t.Errorf("%v after %v, want at most %v", err, after, row.atMost)
			}
		}
	})
}

// An op's attempts bring values, which are kept for the end while their call waits.
type keptOp struct {
	s               *sick
	hedges, panics  bool
	kept, discarded []int
	sent            int
}

func (o *keptOp) Attempt(ctx context.Context, s core.Sending) (int, error) {
	o.sent++
	_, err := o.s.call(ctx)
	return s.Number, err
}

func (o *keptOp) Classify(_ int, err error) abate.Outcome {
	if err == nil {
		return abate.Outcome{}
	}
	return abate.Outcome{Class: abate.Failure, Err: err}
}

func (o *keptOp) Discard(v int)  { o.discarded = append(o.discarded, v) }
func (o *keptOp) MayHedge() bool { return o.hedges }

func (o *keptOp) Keep(v int) {
	if o.panics {
		panic("it cannot be kept")
	}
	o.kept = append(o.kept, v)
}

func TestTheLastAnswerIsKeptUntilTheRetryBegins(t *testing.T) {
	for _, hedges := range []bool{false, true} {
		for _, comes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var s sick
				p := watching()
				if hedges {
					p.Hedge = hedge.Config{Delay: 900 * ms}
				}
				g := guard(t, p)
				failing(t, g, &s)
				op := &keptOp{s: &s, hedges: hedges}
				if comes {
					go func() {
						time.Sleep(300 * ms)
						s.state.Store(well)
						abate.Do(context.Background(), g, s.call)
					}()
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				v, release, err := core.Run(ctx, g, core.Operation[int](op))
				release.Done()
				switch {
				case comes && (err != nil || v != 2 || len(op.discarded) != 1 || op.discarded[0] != 1):
					t.Errorf("a sign has come: %d, %v; discarded: %v", v, err, op.discarded)
				case !comes && (!errors.Is(err, abate.ErrSilent) || v != 1 || len(op.discarded) != 0):
					t.Errorf("no sign has come: %d, %v; discarded: %v", v, err, op.discarded)
				}
				if len(op.kept) != 1 || op.kept[0] != 1 {
					t.Errorf("kept: %v", op.kept)
				}
				nothingLeft(t, g)
			})
		}
	}
}

func TestAWaitThatPanicsDiscardsTheAnswerThatWasKept(t *testing.T) {
	for n := range 4 {
		hedges, panics := n%2 == 1, n > 1
		synctest.Test(t, func(t *testing.T) {
			var s sick
			p := watching()
			if hedges {
				p.Hedge = hedge.Config{Delay: 900 * ms}
			}
			g := guard(t, p)
			failing(t, g, &s)
			op := &keptOp{s: &s, hedges: hedges, panics: panics}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			func() {
				defer func() { recover() }()
				if panics {
					core.Run(ctx, g, core.Operation[int](op))
				}
				core.Run(panicky{ctx}, g, core.Operation[int](op))
			}()
			if len(op.discarded) != 1 || op.discarded[0] != 1 {
				t.Errorf("discarded: %v", op.discarded)
			}
			nothingLeft(t, g)
		})
	}
}

// A panicky context panics when somebody waits for its end.
type panicky struct{ context.Context }

func (panicky) Done() <-chan struct{} { panic("nobody waits here") }
