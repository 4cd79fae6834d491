package drill // the arithmetic of the measurement is private

import (
	"testing"
	"time"
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
			got, ok := recovery(bins, 5*s, 100)
			if ok == tt.never || got != tt.want {
				t.Errorf("recovery = %v, %v; want %v, %v", got, ok, tt.want, !tt.never)
			}
		})
	}
}

func TestNothingRecoversToNothing(t *testing.T) {
	if d, ok := recovery(series(stretch{10 * time.Second, 0}), time.Second, 0); ok {
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
		bins[i] = Bin{Offered: 1, Attempts: 2, Answered: 3, Refused: 4, Failed: 5}
	}
	merged := coarse(bins, 500*time.Millisecond)
	if len(merged) != 5 {
		t.Fatalf("%d coarse bins, want 5", len(merged))
	}
	if want := (Bin{5, 10, 15, 20, 25}); merged[0] != want {
		t.Errorf("first bin %v, want %v", merged[0], want)
	}
	if want := (Bin{3, 6, 9, 12, 15}); merged[4] != want {
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
	if r.offered != 2 || r.attempts != 2 || len(r.calls) != 2 || r.late != 700*time.Millisecond {
		t.Errorf("offered %d, attempts %d, calls %d, late %v", r.offered, r.attempts, len(r.calls), r.late)
	}
	if got, want := r.Sum(0, time.Second), (Bin{Offered: 2, Attempts: 1, Answered: 1}); got != want {
		t.Errorf("in the bins: %+v, want %+v", got, want)
	}
	if got, want := r.Sum(time.Second/2, time.Second), (Bin{Offered: 1, Answered: 1}); got != want {
		t.Errorf("in the second half: %+v, want %+v", got, want)
	}
}
