package abateredis_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
)

// A Redis that stops and comes back, again and again, without its data: what the fleet admits in any window stays
// within the bound that Limiter documents.
func TestTheFleetsBoundHoldsWhileRedisComesAndGoes(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	fleets := []*abateredis.Fleet{open(t, s.Addr()), open(t, s.Addr()), open(t, s.Addr())}
	ready(t, len(fleets), fleets...)
	const perSecond, burst = 200, 300
	limiters := make([]*abateredis.Limiter, len(fleets))
	for i, f := range fleets {
		limiters[i] = f.Limiter("api", per(perSecond, time.Second, burst))
	}
	var admitted []time.Duration
	began := time.Now()
	load := func(d time.Duration) {
		paced := time.NewTicker(time.Millisecond)
		defer paced.Stop()
		for end := time.Now().Add(d); time.Now().Before(end); <-paced.C {
			for _, l := range limiters {
				if take(l, "k", 1).Allowed {
					admitted = append(admitted, time.Since(began))
				}
			}
		}
	}
	for cycle := range 4 { // back for less and for more than instances keep to their shares
		load(500 * time.Millisecond)
		s.Crash()
		load(1200 * time.Millisecond)
		s.run()
		load(time.Duration(cycle+1) * time.Second)
	}
	worst, lowest := 0.0, 0.0 // of the count without what the rate allows
	for k, at := range admitted {
		level := float64(k) - perSecond*at.Seconds()
		lowest = min(lowest, level)
		worst = max(worst, level+1-lowest)
	}
	if most := 1.01 * 1.25 * burst; worst > most {
		t.Errorf("%.0f above what the rate allows in some window, want %.0f at most", worst, most)
	}
	if least := perSecond * int(time.Since(began).Seconds()) / 3; len(admitted) < least {
		t.Errorf("%d admitted, want %d at least: it must not hold because nothing passes", len(admitted), least)
	}
}

// More keys than there is room for make the table forget buckets, but none that has something to pay back.
func TestABucketThatOwesIsNotForgotten(t *testing.T) {
	if owing, paid := abateredis.KeepDebts(100); !owing || paid {
		t.Errorf("the bucket that owes is there: %v; the one that does not: %v", owing, paid)
	}
}
