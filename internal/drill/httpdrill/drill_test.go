package httpdrill_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/sim/engine"
)

// eventually waits until ok, for half a minute at most: as long as a busy machine needs, and no longer than it takes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !ok(); <-tick.C {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("half a minute on, still not: %s", what)
		}
	}
}

// nothingLeft checks that as many goroutines run as before.
func nothingLeft(t *testing.T, before int) {
	t.Helper()
	eventually(t, "all goroutines of the drill are gone", func() bool { return runtime.NumGoroutine() <= before })
}

// TestDrillPlaysOverRealSockets checks what holds however slow the machine is: that the numbers fit together, and that
// retries without a bound multiply while retries with a budget do not.
func TestDrillPlaysOverRealSockets(t *testing.T) {
	needs.Whole(t)
	before := runtime.NumGoroutine()
	results := make(map[string]httpdrill.Result)
	var (
		mu      sync.Mutex
		both    sync.WaitGroup
		reports atomic.Int32
	)
	for _, name := range []string{"storm", "guarded"} {
		c := drillOf(t, read(t, small), name)
		c.Progress = func(p httpdrill.Progress) {
			if p.Act != name || p.Elapsed%time.Second != 0 || p.Elapsed > c.Scenario.Duration ||
				p.Trouble != (p.Elapsed == 2*time.Second) {
				t.Errorf("progress of %s: %+v", name, p)
			}
			reports.Add(1)
		}
		both.Go(func() {
			result, err := httpdrill.Run(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			results[name] = result
		})
	}
	var hasty, patient httpdrill.Result
	both.Go(func() {
		c := drillOf(t, read(t, small, "outage: db", "outage: pay",
			"defaults: {attemptTimeout: 300ms, maxRetries: 3, retryBudget", "defaults: {maxRetries: 3, retryBudget"), "guarded")
		var err error
		if patient, err = httpdrill.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		c := drillOf(t, read(t, small, "instances: 10,", "instances: 10, patience: 20ms,"), "guarded")
		var err error
		if hasty, err = httpdrill.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
	both.Wait()
	nothingLeft(t, before)
	if reports.Load() == 0 {
		t.Error("no progress was reported")
	}
	if t.Failed() {
		return
	}
	for name, r := range results {
		if r.Interrupted || len(r.Acts) != 1 || r.Acts[0].Act != name || !r.Acts[0].Complete {
			t.Fatalf("%s: not run to the end: %+v", name, r)
		}
		consistent(t, &r.Acts[0])
	}
	if a := hasty.Acts[0]; a.Endings["answered"] > 0 || a.Endings["timed-out"] == 0 { // the work takes 50 ms
		t.Errorf("endings for clients that wait for 20 ms: %v", a.Endings)
	}
	// the drain ends the act for them
	if a := patient.Acts[0]; a.Endings["unanswered"] == 0 || a.Endings["timed-out"] > 0 {
		t.Errorf("endings for clients that wait for ever: %v", a.Endings)
	}
	u, g := &results["storm"].Acts[0], &results["guarded"].Acts[0]
	if d := u.Phases[engine.During]; d.AttemptsPerSecond <= d.OfferedPerSecond {
		t.Errorf("unguarded clients sent %v attempts/s for %v requests/s in the outage", d.AttemptsPerSecond,
			d.OfferedPerSecond)
	}
	// What was sent in the warm-up earns retries too: of 8 requests not one.
	if sent := float64(g.Offered - g.Refused); float64(g.Attempts) > 1.1*sent+1+standstill(g) {
		t.Errorf("guarded clients sent %v attempts per request, with a budget of 10 %% and no reserve", g.PerSent)
	}
	// A machine that cannot answer in time while all is well, or stands still for as long as an attempt may take, has
	// nothing to say about recovery.
	if g.LateSeconds < 0.25 && g.Phases[engine.Before].Goodput > 0.9 && g.Phases[engine.After].GoodputPerSecond == 0 {
		t.Error("no guarded request was answered after the outage")
	}
	if g.Refused == 0 || g.Refused > g.BreakerRefused || u.BreakerRefused+u.BudgetRefused+u.Refused != 0 {
		t.Errorf("guarded, %d requests were refused early, %d by the breakers; in the storm, guards refused %d and %d",
			g.Refused, g.BreakerRefused, u.BreakerRefused, u.BudgetRefused)
	}
	if len(u.Expectations) != 1 || len(g.Expectations) != 1 || !g.Expectations[0].Held || !u.ShowsStorm || g.ShowsStorm {
		t.Errorf("expected: %+v, %+v", u.Expectations, g.Expectations)
	}
}

// calm is how many seconds late a drill is at most on a machine that answers in time. Another one has nothing to say
// about answers.
const calm = 0.02

// standstill is how many requests were due while the machine stood still, at most: those are sent together, and may
// begin in one bin or phase and be sent in the next.
func standstill(a *httpdrill.ActResult) float64 { return 40 * a.LateSeconds }

// consistent checks that the numbers of an act fit together.
func consistent(t *testing.T, a *httpdrill.ActResult) {
	t.Helper()
	if want := 40 * 4.5; float64(a.Offered) < want*0.8-standstill(a) || float64(a.Offered) > want*1.2 {
		t.Errorf("%s: %d requests offered, want about %v", a.Act, a.Offered, want)
	}
	ended := 0
	for _, n := range a.Endings {
		ended += n
	}
	if ended != a.Offered {
		t.Errorf("%s: %d requests offered, %d ended: %v", a.Act, a.Offered, ended, a.Endings)
	}
	if s := a.Service; s.Worked > a.Attempts+40 || s.Wasted > s.Worked || s.WastedShare > 1 || s.LongestQueue > 150 ||
		s.Refused > 0 && s.LongestQueue != 150 {
		t.Errorf("%s: the service saw %+v of %d attempts", a.Act, s, a.Attempts)
	}
	if len(a.Phases) != 3 || len(a.Series) != 9 {
		t.Errorf("%s: %d phases, %d columns; want 3 and 9", a.Act, len(a.Phases), len(a.Series))
	}
	if a.Phases[engine.Before].GoodputPerSecond == 0 && a.LateSeconds < calm {
		t.Errorf("%s: nothing was answered before the outage", a.Act)
	}
	// A request may begin in one bin and be sent in the next, or be refused by a breaker that timeouts of a busy
	// machine have opened.
	if b := a.Phases[engine.Before]; b.AttemptsPerSecond <
		0.95*b.OfferedPerSecond-float64(a.Series[0].Refused+a.Series[1].Refused)-standstill(a) {
		t.Errorf("%s: before the outage %v attempts/s for %v requests/s: some clients call another service", a.Act,
			b.AttemptsPerSecond, b.OfferedPerSecond)
	}
	if a.Service.Wasted == 0 || a.Endings["answered"] > 0 && a.AnsweredP50 < 0.05 {
		t.Errorf("%s: %d wasted, half of the answers within %v s", a.Act, a.Service.Wasted, a.AnsweredP50)
	}
}

func TestInterruptedDrillStopsAtOnceAndTellsWhatItKnows(t *testing.T) {
	before := runtime.NumGoroutine()
	var both sync.WaitGroup
	for _, name := range []string{"storm", "guarded"} {
		both.Go(func() {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			c := drillOf(t, read(t, small, "duration: 4500ms", "duration: 9m", "for: 1500ms", "for: 5m"), name, "guarded")
			c.Progress = func(p httpdrill.Progress) {
				if p.Trouble {
					interrupt()
				}
			}
			result, err := httpdrill.Run(ctx, c)
			if err != nil || !result.Interrupted || result.Passed || len(result.Acts) != 1 {
				t.Errorf("%v, interrupted %v, passed %v, %d acts", err, result.Interrupted, result.Passed, len(result.Acts))
				return
			}
			if a := result.Acts[0]; a.Complete || a.Recovered() || a.Endings["answered"] == 0 && a.LateSeconds < calm ||
				len(a.Phases) != 2 || len(a.Expectations) > 0 {
				t.Errorf("known of the act: complete %v, endings %v, %d phases, %d expectations", a.Complete, a.Endings,
					len(a.Phases), len(a.Expectations))
			} else if a.Endings["reset"] > 0 {
				t.Errorf("calls that were cut short count as failures: %v", a.Endings)
			}
		})
	}
	both.Wait()
	nothingLeft(t, before)
}
