package drill // the arithmetic of the measurement is private

import (
	"testing"
	"time"

	"github.com/abate-go/abate"
)

// series makes fine bins from stretches of constant goodput.
func series(stretches ...struct {
	length    time.Duration
	perSecond int
}) []Bin {
	var bins []Bin
	for _, s := range stretches {
		for range s.length / fineBin {
			bins = append(bins, Bin{Answered: s.perSecond * int(fineBin) / int(time.Second)})
		}
	}
	return bins
}

type stretch = struct {
	length    time.Duration
	perSecond int
}

func TestRecoveryIsTheMomentFromWhichGoodputStaysBack(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	down := []stretch{{2 * s, 100}, {3 * s, 0}} // before and outage
	tests := []struct {
		name  string
		after []stretch
		want  time.Duration
		never bool
	}{
		{name: "at once", after: []stretch{{5 * s, 100}}, want: 0},
		{name: "later", after: []stretch{{1500 * ms, 20}, {5 * s, 100}}, want: 1500 * ms},
		{name: "95 % is enough", after: []stretch{{s, 0}, {100 * ms, 0}, {2 * s, 100}, {3 * s, 110}}, want: 1100 * ms},
		{name: "never", after: []stretch{{10 * s, 0}}, never: true},
		{name: "90 % is not enough", after: []stretch{{10 * s, 90}}, never: true},
		{name: "half a second is not long enough", after: []stretch{{500 * ms, 100}, {5 * s, 0}}, never: true},
		{name: "a lull in the storm is no recovery", after: []stretch{{s, 0}, {1500 * ms, 100}, {8 * s, 10}}, never: true},
		{name: "a relapse counts from its end", after: []stretch{{2 * s, 100}, {4 * s, 0}, {4 * s, 100}}, want: 6 * s},
		{name: "back too near the end to be sure", after: []stretch{{5 * s, 0}, {900 * ms, 100}}, never: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bins := series(append(append([]stretch{}, down...), tt.after...)...)
			got, ok := recovery(bins, steadily, 5*s, 1)
			if ok == tt.never || got != tt.want {
				t.Errorf("recovery = %v, %v; want %v, %v", got, ok, tt.want, !tt.never)
			}
		})
	}
}

// steadily offers 100 requests per second.
func steadily(from, to time.Duration) int { return int(100 * (to - from) / time.Second) }

func TestFewArrivalsAreNoRelapse(t *testing.T) {
	const s = time.Second
	bins := series(stretch{2 * s, 100}, stretch{3 * s, 0}, stretch{2 * s, 100}, stretch{3 * s, 50})
	thinning := func(from, to time.Duration) int {
		return steadily(min(from, 7*s), min(to, 7*s)) + steadily(max(from, 7*s), max(to, 7*s))/2
	}
	if got, ok := recovery(bins, thinning, 5*s, 1); !ok || got != 0 {
		t.Errorf("recovery = %v, %v; want at once: all that arrived was answered", got, ok)
	}
}

func TestNothingRecoversToNothing(t *testing.T) {
	if d, ok := recovery(series(stretch{10 * time.Second, 0}), steadily, time.Second, 0); ok {
		t.Errorf("an act without any goodput recovered after %v", d)
	}
}

func TestQuantileIsAMemberOfTheSample(t *testing.T) {
	tests := []struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		{nil, 0.5, 0},
		{[]time.Duration{7}, 0.5, 7},
		{[]time.Duration{7}, 0.99, 7},
		{[]time.Duration{1, 2}, 0.5, 1},
		{[]time.Duration{1, 2, 3}, 0.5, 2},
		{[]time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.99, 10},
		{[]time.Duration{1, 2, 3, 4}, 0, 1},
		{[]time.Duration{1, 2, 3, 4}, 1, 4},
	}
	for _, tt := range tests {
		if got := quantile(tt.sorted, tt.q); got != tt.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", tt.sorted, tt.q, got, tt.want)
		}
	}
}

func TestCoarseBinsLoseNothing(t *testing.T) {
	bins := make([]Bin, 23)
	for i := range bins {
		bins[i] = Bin{Offered: 1, Attempts: 2, Answered: 3, Late: 6, Refused: 4, Failed: 5}
	}
	merged := coarse(bins, 500*time.Millisecond)
	if len(merged) != 5 {
		t.Fatalf("%d coarse bins, want 5", len(merged))
	}
	if want := (Bin{Offered: 5, Attempts: 10, Answered: 15, Late: 30, Refused: 20, Failed: 25}); merged[0] != want {
		t.Errorf("first bin %v, want %v", merged[0], want)
	}
	if want := (Bin{Offered: 3, Attempts: 6, Answered: 9, Late: 18, Refused: 12, Failed: 15}); merged[4] != want {
		t.Errorf("last bin %v, want %v", merged[4], want)
	}
}

func TestPlotsOfAnyLengthFitTheTerminal(t *testing.T) {
	for _, length := range []time.Duration{3 * time.Second, 23 * time.Second, 32 * time.Second, 33 * time.Second, 2 * time.Minute, 30 * time.Minute} {
		width := coarseWidth(length)
		if columns := (length + width - 1) / width; columns > plotWidth {
			t.Errorf("%v: %d columns of %v, want at most %d", length, columns, width, plotWidth)
		}
		if width%fineBin != 0 {
			t.Errorf("%v: columns of %v do not consist of whole fine bins", length, width)
		}
	}
	if w := coarseWidth(23 * time.Second); w != 500*time.Millisecond {
		t.Errorf("the default drill has columns of %v, want 500ms", w)
	}
}

func TestRecorderKeepsTotalsBeyondTheLastBin(t *testing.T) {
	r := NewRecorder(time.Second)
	r.Offered(100*time.Millisecond, 150*time.Millisecond)
	r.Offered(200*time.Millisecond, 900*time.Millisecond)
	r.Attempt(150 * time.Millisecond)
	r.Attempt(1500 * time.Millisecond)
	r.Ended(999*time.Millisecond, 800*time.Millisecond, Answered)
	r.Ended(1500*time.Millisecond, 600*time.Millisecond, TimedOut)
	if len(r.begins) != 2 || r.attempts != 2 || len(r.calls) != 2 || r.late != 700*time.Millisecond {
		t.Errorf("offered %d, attempts %d, calls %d, late %v", len(r.begins), r.attempts, len(r.calls), r.late)
	}
	if got, want := r.Sum(0, time.Second), (Bin{Offered: 2, Attempts: 1, Answered: 1}); got != want {
		t.Errorf("in the bins: %+v, want %+v", got, want)
	}
	if got, want := r.Sum(time.Second/2, time.Second), (Bin{Offered: 1, Answered: 1}); got != want {
		t.Errorf("in the second half: %+v, want %+v", got, want)
	}
}

// TestHonestRunsAreBackAtOnceAtAnyLoad plays clients whose every request is answered, after the service time and a
// little: whatever the load, all was well before, and is well again within one step of the record.
func TestHonestRunsAreBackAtOnceAtAnyLoad(t *testing.T) {
	tests := []struct {
		name        string
		rate        float64
		clients     int
		before      time.Duration
		serviceTime time.Duration
	}{
		{"the default", 250, 50, 4 * time.Second, 50 * time.Millisecond},
		{"the lowest rate", 20, 1, 2 * time.Second, 50 * time.Millisecond},
		{"the lowest rate, by many", 20, 1000, 2 * time.Second, 50 * time.Millisecond},
		{"little time before", 50, 50, time.Second, 50 * time.Millisecond},
		{"slow service", 40, 10, 2 * time.Second, 900 * time.Millisecond},
		{"slow service, little time", 250, 50, 1800 * time.Millisecond, 900 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(30) {
				c := Default()
				c.Rate, c.Clients, c.Before, c.Service.ServiceTime, c.Service.Workers = tt.rate, tt.clients, tt.before, tt.serviceTime, 1000
				if found := c.Problems(); len(found) > 0 {
					t.Fatal(found)
				}
				a := c.actResult(Guarded, served(c, seed), c.Length())
				if b := a.Phases[BeforeOutage]; !a.healthy() || !a.Recovered() || *a.RecoverySeconds > 0.1 {
					t.Fatalf("seed %d: before the outage %+v; recovered: %v", seed, b, a.Recovered())
				}
			}
		})
	}
}

// served is the record of an act in which all goes well.
func served(c Config, seed uint64) *Recorder {
	r := NewRecorder(c.Length())
	for n := range c.Clients {
		s := newSchedule(seed, n, time.Duration(float64(c.Clients)/c.Rate*float64(time.Second)))
		for at := s.next(); at < c.Length(); at = s.next() {
			took := c.Service.ServiceTime + time.Millisecond
			r.Offered(at, at)
			r.Attempt(at)
			r.Ended(at+took, took, Answered)
		}
	}
	return r
}

func TestRecorderCountsWhatGuardsSayNoTo(t *testing.T) {
	r := NewRecorder(time.Second)
	for _, e := range []abate.Event{
		{Kind: abate.CallEnded},
		{Kind: abate.CallEnded, Attempt: 4, Reason: abate.ErrAttemptsExhausted},
		{Kind: abate.CallEnded, Attempt: 2, Reason: abate.ErrBudgetExhausted},
		{Kind: abate.HedgeDenied, Attempt: 1, Reason: abate.ErrBudgetExhausted},
		{Kind: abate.CallEnded, Attempt: 1, Reason: abate.ErrCircuitOpen}, // a retry
		{Kind: abate.CallEnded, Reason: abate.ErrCircuitOpen},
		{Kind: abate.CallEnded, Reason: abate.ErrCircuitOpen},
		{Kind: abate.CallEnded, Reason: abate.ErrBulkheadFull},
	} {
		r.Observe(e)
	}
	c := Default()
	if a := c.actResult(Guarded, r, 0); a.BudgetRefused != 1 || a.BreakerRefused != 2 {
		t.Errorf("the budget refused %d, the breaker %d; want 1 and 2", a.BudgetRefused, a.BreakerRefused)
	}
}
