package drill_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

// small is the drill on a twentieth of the load, in a fifth of the time.
func small(t *testing.T, act string) drill.Config {
	t.Helper()
	c := drill.Default()
	c.Clients, c.Rate = 10, 40
	c.Service = drill.ServiceConfig{Workers: 3, ServiceTime: 50 * time.Millisecond, Queue: 150, DatabaseTimeout: 200 * time.Millisecond}
	c.AttemptTimeout, c.RetryDelay = 300*time.Millisecond, 200*time.Millisecond
	c.Before, c.Outage, c.After, c.Within = 1200*time.Millisecond, 1500*time.Millisecond, 2*time.Second, 2*time.Second
	c.Acts = []string{act}
	p, err := drill.ParsePolicy("test", []byte(`services: {payment-service: {
		attemptTimeout: 300ms, maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 0}, circuitBreaker: {failureThreshold: 3, waitDurationInOpenState: 200ms, waitDurationMultiplier: 1, rampUp: 200ms}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.Policy = p
	return c
}

// nothingLeft checks that as many goroutines run as before.
func nothingLeft(t *testing.T, before int) {
	t.Helper()
	eventually(t, "all goroutines of the drill are gone", func() bool { return runtime.NumGoroutine() <= before })
}

// TestDrillPlaysOverRealSockets checks what holds however slow the machine is: that the numbers fit together, and that
// retries without a bound multiply while retries with a budget do not, and that answers which a patient policy waits for
// come too late to count.
func TestDrillPlaysOverRealSockets(t *testing.T) {
	before := runtime.NumGoroutine()
	results := make(map[string]drill.Result)
	var (
		mu   sync.Mutex
		both sync.WaitGroup

		reports atomic.Int32
	)
	for _, name := range []string{drill.Unguarded, drill.Guarded} {
		c := small(t, name)
		c.Progress = func(p drill.Progress) {
			if p.Act != name || p.Elapsed%time.Second != 0 || p.Elapsed > c.Length() || p.Phase != c.PhaseAt(p.Elapsed-1) {
				t.Errorf("progress of %s: %+v", name, p)
			}
			reports.Add(1)
		}
		both.Go(func() {
			result, err := drill.Run(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			results[name] = result
		})
	}
	var patient drill.Result
	both.Go(func() {
		c := small(t, drill.Guarded)
		var err error
		if c.Policy, err = drill.ParsePolicy("patient", []byte("services: {payment-service: {maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}")); err != nil {
			t.Error(err)
		}
		if patient, err = drill.Run(t.Context(), c); err != nil {
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
			t.Fatalf("%s: not played to the end: %+v", name, r)
		}
		consistent(t, &r.Acts[0])
	}
	u, g := &results[drill.Unguarded].Acts[0], &results[drill.Guarded].Acts[0]
	if p := patient.Acts[0]; p.Endings["answeredTooLate"] == 0 {
		t.Errorf("no answer came too late for clients that wait for ever: %v", p.Endings)
	}
	if d := u.Phases[drill.DuringOutage]; d.AttemptsPerSecond <= d.OfferedPerSecond {
		t.Errorf("unguarded clients sent %v attempts/s for %v requests/s in the outage", d.AttemptsPerSecond, d.OfferedPerSecond)
	}
	if g.PerSent > 1.1 {
		t.Errorf("guarded clients sent %v attempts per request, with a budget of 10 %% and no reserve", g.PerSent)
	}
	// A machine that cannot answer in time while all is well has nothing to say about recovery.
	healthy := g.Phases[drill.BeforeOutage].GoodputPerSecond > 0.9*g.Phases[drill.BeforeOutage].OfferedPerSecond
	if healthy && g.Phases[drill.AfterOutage].GoodputPerSecond == 0 {
		t.Error("no guarded request was answered after the outage")
	}
	if g.BreakerRefused != g.Endings["refusedEarly"] || u.BreakerRefused+u.BudgetRefused != 0 {
		t.Errorf("guarded, %d requests were refused early, %d of them by the breakers; unguarded, guards refused %d and %d",
			g.Endings["refusedEarly"], g.BreakerRefused, u.BreakerRefused, u.BudgetRefused)
	}
	if g.Endings["refusedEarly"] == 0 {
		t.Error("no guarded request was refused early in an outage")
	}
}

// consistent checks that the numbers of an act fit together.
func consistent(t *testing.T, a *drill.ActResult) {
	t.Helper()
	if want := 40 * 4.7; float64(a.Offered) < want*0.9 || float64(a.Offered) > want*1.1 {
		t.Errorf("%s: %d requests offered, want about %v", a.Act, a.Offered, want)
	}
	ended := 0
	for _, n := range a.Endings {
		ended += n
	}
	if ended != a.Offered {
		t.Errorf("%s: %d requests offered, %d ended: %v", a.Act, a.Offered, ended, a.Endings)
	}
	if s := a.Service; s.Arrived > int64(a.Attempts) || s.Worked+s.Refused > s.Arrived || s.Abandoned > s.Worked || s.LongestQueue > 150 || s.Refused > 0 && s.LongestQueue != 150 {
		t.Errorf("%s: the service saw %+v of %d attempts", a.Act, s, a.Attempts)
	}
	if len(a.Phases) != 3 || len(a.Series) != 10 {
		t.Errorf("%s: %d phases, %d columns; want 3 and 10", a.Act, len(a.Phases), len(a.Series))
	}
	if a.Phases[drill.BeforeOutage].GoodputPerSecond == 0 {
		t.Errorf("%s: nothing was answered before the outage", a.Act)
	}
}

func TestInterruptedDrillStopsAtOnceAndTellsWhatItKnows(t *testing.T) {
	for _, name := range []string{drill.Unguarded, drill.Guarded} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			c := small(t, name)
			c.Acts = append(c.Acts, drill.Guarded)
			c.After = 10 * time.Minute
			c.Progress = func(p drill.Progress) {
				if p.Phase == drill.DuringOutage {
					interrupt()
				}
			}
			result, err := drill.Run(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, before)
			if !result.Interrupted || result.Passed || len(result.Acts) != 1 {
				t.Fatalf("interrupted %v, passed %v, %d acts", result.Interrupted, result.Passed, len(result.Acts))
			}
			if a := result.Acts[0]; a.Complete || a.Recovered() || a.Endings["answered"] == 0 || len(a.Phases) != 2 {
				t.Errorf("known of the act: complete %v, endings %v, %d phases", a.Complete, a.Endings, len(a.Phases))
			} else if a.Endings["noConnection"] > 0 {
				t.Errorf("calls that were cut short count as failures: %v", a.Endings)
			}
		})
	}
}
