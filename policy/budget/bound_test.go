package budget_test

import (
	"container/heap"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

const retries = 3 // what every failed call would like

// event is the next thing a caller does, in virtual time.
type event struct {
	at      time.Duration
	caller  int
	attempt int // 0 is the first
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].caller < e[j].caller
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

// weather is what happens in turn, over and over.
type weather struct {
	healthy, idle, outage time.Duration
}

// at reports whether calls fail at t and whether the callers are idle, and until when.
func (w weather) at(t time.Duration) (fails, idle bool, end time.Duration) {
	cycle := w.healthy + w.idle + w.outage
	begin := t / cycle * cycle
	switch t -= begin; {
	case t < w.healthy:
		return false, false, begin + w.healthy
	case t < w.healthy+w.idle:
		return false, true, begin + w.healthy + w.idle
	}
	return true, false, begin + cycle
}

// storm lets callers call a dependency through this weather: an attempt takes between 1
// and 8 ms, a retry follows at once, the next call after pause.
func storm(b *budget.Budget, w weather, callers int, pause, length time.Duration) *trace {
	tr, q, seed := &trace{}, &events{}, uint64(1)
	rnd := func(n int64) time.Duration {
		seed = seed*6364136223846793005 + 1442695040888963407
		return time.Duration(int64(seed>>33) % n)
	}
	for c := range callers {
		heap.Push(q, event{at: rnd(int64(pause) + 1), caller: c})
	}
	for q.Len() > 0 {
		e := heap.Pop(q).(event)
		if e.at >= length {
			break
		}
		fails, idle, end := w.at(e.at)
		if idle {
			heap.Push(q, event{at: end, caller: e.caller})
			continue
		}
		sent := true
		if e.attempt == 0 {
			b.Deposit(e.at)
			tr.add(e.at, 1, 0)
		} else if sent = b.Withdraw(e.at, budget.Transient); sent {
			tr.add(e.at, 0, 1)
		}
		end = e.at + time.Millisecond + rnd(7e6)
		if sent {
			b.Result(end, !fails)
		}
		if sent && fails && e.attempt < retries {
			heap.Push(q, event{end, e.caller, e.attempt + 1})
		} else {
			heap.Push(q, event{end + pause, e.caller, 0})
		}
	}
	return tr
}

func TestExtraLoadIsBoundedOverEveryWindow(t *testing.T) {
	tests := []struct {
		callers       int
		pause, length time.Duration
	}{
		{1, time.Minute, 24 * time.Hour}, // one call a minute
		{1, 0, time.Minute},
		{10, 90 * time.Millisecond, 2 * time.Minute},
		{1000, 2 * time.Second, time.Minute},
	}
	configs := []budget.Config{
		{Ratio: 0.1, Reserve: 10},
		{Ratio: 0.1},
		{Ratio: 0.15, Reserve: 3, Window: 2 * time.Second},
		{Ratio: 0.6, Reserve: 50, Window: 30 * time.Second},
		{Ratio: 0.1, Reserve: 10, Clients: 40},
		{Ratio: 1},
		{Kind: budget.Adaptive, Reserve: 10},
	}
	for _, tt := range tests {
		for _, c := range configs {
			full := c.WithDefaults()
			reserve := full.Reserve / float64(full.Clients)
			for name, w := range map[string]weather{
				"all calls fail":         {outage: 1000 * time.Hour},
				"outages":                {healthy: 13 * time.Second, outage: 17 * time.Second},
				"outages after idleness": {healthy: 3 * time.Second, idle: full.Window * 103 / 100, outage: 5 * time.Second},
			} {
				name = fmt.Sprintf("%s, %d callers pausing %v, %s %v+%v of %d", name, tt.callers, tt.pause, c.Kind, c.Ratio,
					c.Reserve, c.Clients)
				t.Run(name, func(t *testing.T) {
					tr := storm(budget.New(c), w, tt.callers, tt.pause, tt.length)
					tr.check(t, max(full.Ratio, full.MaxRatio), reserve, full.Window, max(reserve, 1))

					// It must not hold because nothing is allowed: while all calls fail
					// nothing expires unused, so what they earn is handed out.
					first, extra := tr.totals()
					earns := max(full.Ratio, full.MinRatio)*float64(first) + reserve
					if w.healthy == 0 && float64(extra) < 0.9*min(earns, float64(retries*first))-1 {
						t.Errorf("%d extra for %d first attempts, want about %.0f", extra, first, earns)
					}
				})
			}
		}
	}
}

// Real goroutines. They share a clock that stands still while all of them work, so that
// the trace knows when each attempt happened; every other step crosses into a new slot,
// which all of them discover at once. Health and outage take turns.
func TestExtraLoadIsBoundedWithConcurrentCallers(t *testing.T) {
	for _, callers := range []int{1, 10, 1000} {
		for _, c := range []budget.Config{
			{Ratio: 0.1, Reserve: 10, Window: time.Second},
			{Ratio: 0.15, Window: time.Second},
			{Kind: budget.Adaptive, MinRatio: 0.1, MaxRatio: 0.3, Reserve: 10, Window: time.Second},
		} {
			t.Run(fmt.Sprintf("%d callers, %s %v", callers, c.Kind, c.Ratio), func(t *testing.T) {
				b, tr := budget.New(c), &trace{}
				steps := max(80, 2000/callers)
				for step := range steps {
					now := time.Duration(step) * 53 * time.Millisecond
					now += time.Duration(step/40) * 1020 * time.Millisecond // idle before each turn
					var extra atomic.Int64
					var wg sync.WaitGroup
					for range callers {
						wg.Go(func() {
							b.Deposit(now)
							b.Result(now, step%2 == 0)
							if step/40%2 == 0 {
								return // this one succeeds
							}
							for range retries {
								if !b.Withdraw(now, budget.Transient) {
									break
								}
								extra.Add(1)
								b.Result(now, false)
							}
						})
					}
					wg.Wait()
					tr.add(now, int64(callers), extra.Load())
				}
				full := c.WithDefaults()
				tr.check(t, max(full.Ratio, full.MaxRatio), full.Reserve, full.Window, max(full.Reserve, 1))
				first, extra := tr.totals()
				if want := 0.4*max(full.Ratio, full.MinRatio)*float64(first) - 1; float64(extra) < want {
					t.Errorf("%d extra for %d first attempts, want at least %.0f", extra, first, want)
				}
			})
		}
	}
}

// A check followed by an addition would let several callers take the same last token.
func TestConcurrentCallersNeverShareAToken(t *testing.T) {
	const reserve, callers = 20_000, 4
	for range 100 {
		b := budget.New(budget.Config{Ratio: 0.1, Reserve: reserve})
		var ready, wg sync.WaitGroup
		var got atomic.Int64
		ready.Add(callers)
		for range callers {
			wg.Go(func() {
				ready.Done()
				ready.Wait()
				got.Add(int64(take(b, 0, budget.Transient, reserve+1)))
			})
		}
		wg.Wait()
		if got.Load() != reserve {
			t.Fatalf("%d callers took %d tokens out of %d", callers, got.Load(), reserve)
		}
	}
}

// Everything at once: callers, a clock that runs, reloads between all kinds. Over its
// life no order of events may create tokens.
func TestReloadsAmongConcurrentCallersCreateNothing(t *testing.T) {
	configs := []budget.Config{
		{Ratio: 0.1, Reserve: 10, Window: time.Second},
		{Kind: budget.Tokens, MaxTokens: 20},
		{Ratio: 0.05, Reserve: 1000, Window: 3 * time.Second},
		{Kind: budget.Adaptive, MaxRatio: 0.1, Reserve: 10},
	}
	b := budget.New(configs[0])
	var clock, first, extra, successes atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 4000 {
				now := time.Duration(clock.Add(int64(time.Millisecond)))
				first.Add(1)
				b.Deposit(now)
				if i%5 == 0 {
					successes.Add(1)
				}
				b.Result(now, i%5 == 0)
				if b.Withdraw(now, budget.Cost(i%3)) {
					extra.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 400 {
			b.Reconfigure(time.Duration(clock.Load()), configs[i%len(configs)])
			if bal := b.Balance(time.Duration(clock.Load())); bal < 0 {
				t.Errorf("balance %v", bal)
			}
		}
	})
	wg.Wait()
	if most := 0.1*float64(first.Load()+successes.Load()) + 10; float64(extra.Load()) > most {
		t.Errorf("%d extra attempts for %d first ones and %d successes, at most %v were earned", extra.Load(), first.Load(),
			successes.Load(), most)
	}
	if extra.Load() < 100 {
		t.Errorf("only %d extra attempts: the test tests nothing", extra.Load())
	}
}
