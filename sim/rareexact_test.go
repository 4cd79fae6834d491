//go:build !race

package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/abate-go/abate/sim"
)

func TestSplittingFindsTheExactProbabilityOfALongQueue(t *testing.T) {
	if testing.Short() {
		return // the coverage of intervals needs many of them
	}
	for _, c := range []struct {
		queue birthAndDeath
		runs  int
		seeds int
	}{
		{birthAndDeath{rate: 5, mean: 0.1, workers: 1, length: 5, queue: 14}, 50, 12},
		{birthAndDeath{rate: 4, mean: 0.1, workers: 1, length: 5, queue: 18}, 100, 4},
		{birthAndDeath{rate: 10, mean: 0.2, workers: 4, warm: 1, length: 2, queue: 18}, 50, 4},
	} {
		exact, s := c.queue.probability(), c.queue.scenario(t)
		text := fmt.Sprintf("queue(a) < %d", c.queue.queue)
		inside := 0
		var sum, cost float64
		for seed := range c.seeds {
			r, err := rare(t, s, text, sim.Options{Seed: uint64(seed) + 1, Runs: c.runs})
			if err != nil {
				t.Fatal(err)
			}
			sum += r.Probability
			cost += r.PlainEvents / float64(r.Events)
			if r.Low <= exact && exact <= r.High {
				inside++
			}
		}
		n := float64(c.seeds)
		t.Logf("%+v: exactly %.3g, in the mean %.3g, inside %d of %d, %.0f times cheaper", c.queue, exact, sum/n, inside,
			c.seeds, cost/n)
		if expected := 0.95 * n; float64(inside) < expected-3*math.Sqrt(expected*0.05) {
			t.Errorf("%+v: %d of %d intervals of 95 %% have %v in them", c.queue, inside, c.seeds, exact)
		}
		if math.Abs(sum/n/exact-1) > 1/math.Sqrt(n) {
			t.Errorf("%+v: %v in the mean of %d estimates, exactly it is %v", c.queue, sum/n, c.seeds, exact)
		}
	}
}

func TestSplittingJudgesTheShareOfRunsThatIsAskedFor(t *testing.T) {
	if testing.Short() {
		return // rare events need many runs
	}
	q := birthAndDeath{rate: 5, mean: 0.1, workers: 1, length: 5, queue: 14}
	s := q.scenario(t)
	for text, want := range map[string]string{
		"queue(a) < 14":                   sim.None,
		"queue(a) < 14 in 99% of runs":    sim.Pass,
		"queue(a) < 14 in 99.99% of runs": sim.Fail,
	} {
		r, err := rare(t, s, text, sim.Options{})
		if err != nil || r.Verdict != want {
			t.Errorf("%s: %+v, %v; want verdict %q (exactly, %v miss it)", text, r, err, want, q.probability())
		}
	}
}
