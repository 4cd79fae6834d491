package httpdrill // records are private

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// begun is the time of an act that begins.
func begun() time.Duration { return 0 }

// quiet is a recorder of the built-in guarded act, and who takes part in it.
func quiet() (Config, cast, *Recorder) {
	c := Default()
	v := c.Guarded()
	return c, c.cast(v), NewRecorder(c.Scenario, v, 1, begun)
}

// recorded makes an act of 100 requests/s: all are answered, but none during the outage and for a while, back, after
// it. Each request that fails has cost so many attempts.
func recorded(name string, back time.Duration, attempts int, failing engine.EndKind) ActResult {
	c := Default()
	by := c.cast(c.variant(name))
	r := NewRecorder(c.Scenario, by.variant, 1, begun)
	f := c.Scenario.Faults[0]
	for at := time.Duration(0); at < c.Scenario.Duration; at += 10 * time.Millisecond {
		r.Offered(at, at)
		if at < f.At || at >= f.At+f.For+back {
			r.Attempt(by.front, at, false)
			r.Ended(at, at+50*time.Millisecond, engine.Answered)
			continue
		}
		for n := range attempts {
			r.Attempt(by.front, at, n > 0)
		}
		r.Ended(at, at+4*time.Second, failing)
	}
	r.Waiting(by.front, f.At+time.Second, 80)
	r.Worked(by.front, f.At+time.Second, 3*time.Second, false, engine.Answered)
	r.Worked(by.front, f.At+time.Second, time.Second, true, engine.Answered)
	if failing == engine.CircuitOpen {
		r.breakerRefused = int(r.record.Fleets[0].Ends[engine.CircuitOpen])
	}
	return c.actResult(by, r, c.Scenario.Duration)
}

func TestActResultAddsUp(t *testing.T) {
	u, g := recorded("unguarded", time.Hour, 5, engine.TimedOut),
		recorded("guarded", 1500*time.Millisecond, 0, engine.CircuitOpen)
	if u.Offered != 2300 || u.Attempts != 400+5*1900 || u.PerOffered != 9900./2300 || u.PerSent != u.PerOffered {
		t.Errorf("unguarded: %d offered, %d attempts, amplification %v", u.Offered, u.Attempts, u.PerOffered)
	}
	if u.Recovered() || !u.Complete || !u.Collapsed || !u.ShowsStorm || !u.Expectations[0].Held {
		t.Errorf("unguarded: %+v", u)
	}
	if !g.Recovered() || *g.RecoverySeconds != 1.5 || g.Collapsed || g.ShowsStorm || !g.passed() {
		t.Errorf("guarded: %+v", g)
	}
	if g.PerSent != 1 || g.Refused != 650 || g.BreakerRefused != 650 || g.Endings["circuit-open"] != 650 ||
		g.Endings["answered"] != 1650 || len(g.Endings) != 2 {
		t.Errorf("guarded: %v attempts per request sent, endings %v", g.PerSent, g.Endings)
	}
	if b := g.Phases[engine.Before]; b.Goodput != 1 || b.GoodputPerSecond != 100 || b.FromSeconds != 0 ||
		b.ToSeconds != 4 {
		t.Errorf("guarded, before: %+v", b)
	}
	if d := g.Phases[engine.During]; d.GoodputPerSecond != 0 || d.OfferedPerSecond != 100 || d.Goodput != 0 {
		t.Errorf("guarded, outage: %+v", d)
	}
	if a := g.Phases[engine.After]; a.Goodput != 1250./1400 || a.FromSeconds != 9 || a.ToSeconds != 23 ||
		math.Abs(a.AnsweredP50-0.05) > 0.002 {
		t.Errorf("guarded, after: %+v", a)
	}
	if math.Abs(u.FailedP50-4) > 0.2 || math.Abs(u.AnsweredP99-0.05) > 0.002 ||
		u.Service != (ServiceCounts{Worked: 2, Wasted: 1, WastedShare: 0.25, LongestQueue: 80}) {
		t.Errorf("latencies: %v, %v; service %+v", u.FailedP50, u.AnsweredP99, u.Service)
	}
}

func TestALateRecoveryIsNotAsExpected(t *testing.T) {
	if a := recorded("guarded", 6*time.Second, 0, engine.CircuitOpen); !a.Recovered() || *a.RecoverySeconds != 6 ||
		a.passed() {
		t.Errorf("recovered after %v, passed %v", a.RecoverySeconds, a.passed())
	}
	if a := recorded("guarded", time.Hour, 0, engine.CircuitOpen); a.Recovered() || a.passed() ||
		a.Expectations[1].Value != nil {
		t.Errorf("recovered %v, passed %v, expected %+v", a.Recovered(), a.passed(), a.Expectations)
	}
}

func TestWarmUpAndDrainAreNotMeasured(t *testing.T) {
	c, by, r := quiet()
	end := c.Scenario.Duration
	for _, at := range []time.Duration{-time.Second, -1, end, end + time.Second} {
		r.Offered(at, at)
		r.Attempt(by.front, at, true)
		r.Ended(at, at+time.Hour, engine.TimedOut)
		r.Rejected(by.front, at)
		r.Waiting(by.front, at, 7)
		r.Waited(by.front, at, time.Second)
		r.Worked(by.front, at, time.Second, true, engine.Answered)
	}
	a := c.actResult(by, r, end)
	if a.Offered != 0 || a.Attempts != 0 || len(a.Endings) != 0 || a.Service != (ServiceCounts{}) || a.FailedP50 != 0 {
		t.Errorf("measured: %+v", a)
	}
	r.Offered(end-1, end-1)
	r.Ended(end-1, end+time.Second/2, engine.Answered)
	if a := c.actResult(by, r, end); a.Offered != 1 || a.Phases[engine.After].Goodput != 1 || a.Endings["answered"] != 1 {
		t.Errorf("a request is answered after the end: %+v", a)
	}
}

func TestRecorderTellsTheLastSecond(t *testing.T) {
	_, by, r := quiet()
	r.Offered(100*time.Millisecond, 150*time.Millisecond)
	r.Offered(200*time.Millisecond, 900*time.Millisecond)
	r.Attempt(by.front, 150*time.Millisecond, false)
	r.Attempt(by.front, 1500*time.Millisecond, true)
	r.Ended(150*time.Millisecond, 999*time.Millisecond, engine.Answered)
	r.Ended(900*time.Millisecond, 999*time.Millisecond, engine.CircuitOpen)
	if got, want := r.Between(by.front, 0, time.Second),
		(drill.Second{Offered: 2, Attempts: 1, Answered: 1, Refused: 1}); got != want {
		t.Errorf("first second: %+v, want %+v", got, want)
	}
	if got, want := r.Between(by.front, time.Second, 2*time.Second), (drill.Second{Attempts: 1, Extra: 1}); got != want {
		t.Errorf("second: %+v, want %+v", got, want)
	}
	for _, at := range []time.Duration{-time.Second, 0, time.Hour} {
		if got := r.Between(by.front, at-time.Second, at); got != (drill.Second{}) {
			t.Errorf("the second before %v: %+v", at, got)
		}
	}
	if r.late != 700*time.Millisecond {
		t.Errorf("late by %v", r.late)
	}
	if s := r.record.Services[by.front]; s.Retries[15] != 1 || s.Retries[1] != 0 || s.Peak[engine.Before] != 1 {
		t.Errorf("retries %v, peak %v", s.Retries[:20], s.Peak)
	}
}

func TestRecorderCountsWhatGuardsSayNoTo(t *testing.T) {
	_, _, r := quiet()
	for _, e := range []abate.Event{
		{Kind: core.CallEnded},
		{Kind: core.CallEnded, Attempt: 4, Reason: abate.ErrAttemptsExhausted},
		{Kind: core.CallEnded, Attempt: 2, Reason: abate.ErrBudgetExhausted},
		{Kind: core.HedgeDenied, Attempt: 1, Reason: abate.ErrBudgetExhausted},
		{Kind: core.CallEnded, Attempt: 1, Reason: abate.ErrCircuitOpen}, // a retry
		{Kind: core.CallEnded, Reason: abate.ErrCircuitOpen},
		{Kind: core.CallEnded, Reason: abate.ErrCircuitOpen},
		{Kind: core.CallEnded, Reason: abate.ErrBulkheadFull},
	} {
		r.Observe(e)
	}
	if r.budgetRefused != 1 || r.breakerRefused != 2 {
		t.Errorf("the budget refused %d, the breaker %d; want 1 and 2", r.budgetRefused, r.breakerRefused)
	}
}

// What guards say no to is of the same time as all else: not of the warm-up, and not of the drain.
func TestWhatGuardsSayNoToIsCountedWhileItIsMeasured(t *testing.T) {
	c, _, r := quiet()
	for _, at := range []time.Duration{-1, 0, c.Scenario.Duration - 1, c.Scenario.Duration} {
		r.since = func() time.Duration { return at }
		r.Observe(abate.Event{Kind: core.CallEnded, Attempt: 2, Reason: abate.ErrBudgetExhausted})
		r.Observe(abate.Event{Kind: core.CallEnded, Reason: abate.ErrCircuitOpen})
	}
	if r.budgetRefused != 2 || r.breakerRefused != 2 {
		t.Errorf("the budget refused %d, the breaker %d; want 2 and 2", r.budgetRefused, r.breakerRefused)
	}
}

// A machine that stood still has looked at no gate meanwhile: the limit was not 0.
func TestALimitIsThatOfTheNextLookWhereThereWasNone(t *testing.T) {
	_, by, r := quiet()
	bin, limits := r.record.Bin, r.record.Services[by.front].Limit
	for at, limit := range []int{0: 3, 4: 5} {
		if limit > 0 {
			r.Sample(by.front, time.Duration(at)*bin, limit, 0)
		}
	}
	if got := limits[:6]; !slices.Equal(got, []uint32{3, 5, 5, 5, 5, 0}) {
		t.Errorf("limits %v", got)
	}
	r.Sample(by.front, r.record.Duration+time.Second, 7, 0)
	if limits[5] != 7 || limits[len(limits)-1] != 7 || limits[4] != 5 {
		t.Errorf("after the last look: %v", limits)
	}
}

func TestEndOfACallIsThatOfItsLastAttempt(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want engine.EndKind
	}{
		{"success", nil, engine.Answered},
		{"the breaker is open", &abate.Error{Reason: abate.ErrCircuitOpen}, engine.CircuitOpen},
		{"the bulkhead is full", &abate.Error{Reason: abate.ErrBulkheadFull}, engine.BulkheadFull},
		{"no time left for the first attempt", &abate.Error{Reason: abate.ErrDeadline}, engine.TimedOut},
		{"the breaker opened meanwhile", &abate.Error{
			Reason: abate.ErrCircuitOpen, Attempts: 1, Err: context.DeadlineExceeded,
		}, engine.TimedOut},
		{"503", statusError(503), engine.QueueFull},
		{"502", statusError(502), engine.BadGateway},
		{"500", statusError(500), engine.ServerError},
		{"another", statusError(418), engine.ServerError},
		{"nobody listens", syscall.ECONNREFUSED, engine.RefusedConnection},
		{"hung up", io.ErrUnexpectedEOF, engine.Reset},
		{"something", errors.New("x"), engine.Reset},
	}
	for _, tt := range tests {
		if got := endOf(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAttemptsAreCountedBelowTheGuard(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	_, by, r := quiet()
	p := by.clientPolicy().Policy
	p.InitialDelay, p.RetryBudget.Disabled, p.CircuitBreaker.Disabled = time.Millisecond, true, true
	one, err := newCaller("x", server.URL, p, r, nil, edge{record: r, service: by.front, since: func() time.Duration {
		return time.Second
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer one.close()
	if err := one.send(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if s := r.record.Services[by.front]; s.Arrived[10] != 3 || s.Retries[10] != 2 {
		t.Errorf("%d attempts, %d of them retries; want 3 and 2", s.Arrived[10], s.Retries[10])
	}
}

func TestSchedulesOfferTheRateInTheirWay(t *testing.T) {
	const period = float64(100 * time.Millisecond)
	for _, arrivals := range []string{scenario.Even, scenario.Jittered, scenario.Poisson} {
		var gaps, squares float64
		s := newSchedule(1, 7, arrivals, period)
		last, slots := s.next(), map[time.Duration]bool{}
		const n = 10_000
		for range n {
			at := s.next()
			if at < last {
				t.Fatalf("%s: %v comes after %v", arrivals, at, last)
			}
			gap := float64(at-last) / period
			gaps, squares = gaps+gap, squares+gap*gap
			slots[time.Duration(float64(at)/period)], last = true, at
		}
		mean := gaps / n
		deviation := math.Sqrt(squares/n - mean*mean)
		want := map[string]float64{scenario.Even: 0, scenario.Jittered: math.Sqrt(1. / 6), scenario.Poisson: 1}[arrivals]
		if math.Abs(mean-1) > 0.04 || math.Abs(deviation-want) > 0.04 {
			t.Errorf("%s: gaps of %v ± %v periods, want 1 ± %v", arrivals, mean, deviation, want)
		}
		if arrivals != scenario.Poisson && len(slots) < n {
			t.Errorf("%s: only %d of %d periods have a request", arrivals, len(slots), n)
		}
	}
}

func TestPlotsOfAnyLengthFitTheTerminal(t *testing.T) {
	for _, length := range []time.Duration{
		3 * time.Second, 23 * time.Second, 32 * time.Second, 33 * time.Second, 2 * time.Minute, 10 * time.Minute,
	} {
		width := columnWidth(length)
		if columns := (length + width - 1) / width; columns > plotWidth {
			t.Errorf("%v: %d columns of %v, want at most %d", length, columns, width, plotWidth)
		}
		if bin := engine.BinOf(length); width%bin != 0 {
			t.Errorf("%v: columns of %v do not consist of whole bins of %v", length, width, bin)
		}
	}
	if w := columnWidth(23 * time.Second); w != 500*time.Millisecond {
		t.Errorf("the default drill has columns of %v, want 500ms", w)
	}
}
