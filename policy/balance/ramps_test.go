package balance_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

func weighed(c balance.Config, weights ...int) *balance.Balancer {
	b := balance.New(c, len(weights))
	b.Weigh(weights)
	return b
}

func TestIdleEndpointsAreChosenByWeight(t *testing.T) {
	wantShares(t, "1, 2, 5", shares(weighed(three, 1, 2, 5), 3, 0, -1, 1), []float64{1. / 8, 2. / 8, 5. / 8})
	wantShares(t, "without the second", shares(weighed(three, 1, 2, 5), 3, 0, 1, 2), []float64{1. / 6, 0, 5. / 6})
	wantShares(t, "without the last", shares(weighed(three, 1, 2, 5), 3, 0, 2, 3), []float64{1. / 3, 2. / 3, 0})
	wantShares(t, "out of range", shares(weighed(three, -7, 2000), 2, 0, -1, 4), []float64{1. / 1001, 1000. / 1001})
	b := balance.New(three, 4)
	b.Weigh([]int{3, 1})
	wantShares(t, "two weights for four", shares(b, 4, 0, -1, 5), []float64{3. / 8, 1. / 8, 3. / 8, 1. / 8})
}

func TestEqualWeightsChooseAsNoWeights(t *testing.T) {
	plain, same := balance.New(three, 5), weighed(three, 7, 7, 7, 7, 7)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		r, avoid := rnd.Uint64(), rnd.IntN(6)-1
		if i, k := plain.Pick(0, r, avoid), same.Pick(0, r, avoid); i != k {
			t.Fatalf("Pick(%x, avoid %d) = %d with equal weights, %d without", r, avoid, k, i)
		}
	}
}

// With twice the weight an endpoint is as busy with twice as many attempts.
func TestHeavyEndpointsMayBeBusier(t *testing.T) {
	b, rnd := weighed(three, 1, 4), rand.New(rand.NewPCG(3, 1))
	for range 1000 {
		b.Pick(0, rnd.Uint64(), -1)
	}
	if light, heavy := b.Endpoint(0, 0).Pending, b.Endpoint(1, 0).Pending; light < 195 || light > 205 {
		t.Errorf("%d and %d attempts pending, want one fifth and four", light, heavy)
	}
}

// Weights do not bring an endpoint into the choice that is ejected, or the one just tried.
func TestWeightsChooseAmongThoseInTheChoice(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		weights := make([]int, 1+rnd.IntN(7))
		for i := range weights {
			weights[i] = 1 + rnd.IntN(9)
		}
		c := three
		c.SlowStart = time.Duration(rnd.IntN(20)) * s
		b, now := weighed(c, weights...), time.Duration(0)
		for range 300 {
			now += time.Duration(rnd.IntN(1000)) * time.Millisecond
			avoid, in := rnd.IntN(len(weights)+1)-1, 0
			for i := range weights {
				if !b.Endpoint(i, now).Ejected {
					in++
				}
			}
			i := b.Pick(now, rnd.Uint64(), avoid)
			if b.Endpoint(i, now).Ejected || i == avoid && in > 1 {
				t.Fatalf("seed %d at %v: %d is ejected, or was just tried (%d)", seed, now, i, avoid)
			}
			if rnd.IntN(3) > 0 {
				b.Done(i, now, balance.Failure)
			} else {
				b.Done(i, now, balance.Success)
			}
		}
	}
}

func slow(d time.Duration) balance.Config {
	c := three
	c.SlowStart = d
	return c
}

func TestAnEndpointThatComesBackStartsSlowly(t *testing.T) {
	b := balance.New(slow(16*s), 4)
	attempts(t, b, 0, 2, "FFF") // out until 10 s
	for _, tt := range []struct {
		at    time.Duration
		steps float64 // of 16
	}{{10 * s, 2}, {12*s + s/2, 2}, {13 * s, 3}, {18 * s, 8}, {25*s + s/2, 15}, {26 * s, 16}, {time.Hour, 16}} {
		share := tt.steps / (tt.steps + 48)
		rest := (1 - share) / 3
		wantShares(t, fmt.Sprintf("at %v", tt.at), shares(b, 4, tt.at, -1, uint64(tt.at)),
			[]float64{rest, rest, share, rest})
	}
}

func TestNewEndpointsStartSlowlyAfterAReload(t *testing.T) {
	first := balance.New(slow(16*s), 2)
	wantShares(t, "all are new", shares(first, 2, 5*s, -1, 1), []float64{0.5, 0.5})
	b := balance.New(slow(16*s), 3)
	b.Carry(first, []int{0, -1, 1})
	wantShares(t, "one is new", shares(b, 3, 100*s, -1, 2), []float64{16. / 34, 2. / 34, 16. / 34})
	wantShares(t, "it is half warm", shares(b, 3, 108*s, -1, 3), []float64{16. / 40, 8. / 40, 16. / 40})
	next := balance.New(slow(16*s), 3)
	next.Carry(b, []int{2, 1, 0})
	wantShares(t, "the ramp goes on", shares(next, 3, 112*s, -1, 4), []float64{16. / 44, 12. / 44, 16. / 44})
	wantShares(t, "it is warm", shares(next, 3, 116*s, -1, 5), []float64{1. / 3, 1. / 3, 1. / 3})
	fast := balance.New(three, 3)
	fast.Carry(next, []int{0, 1, -1})
	wantShares(t, "no slow start", shares(fast, 3, 117*s, -1, 6), []float64{1. / 3, 1. / 3, 1. / 3})
}

// While health checks are not believed an endpoint that they call well has been in the choice like all others: it gets
// no less than those that they speak against.
func TestAnEndpointThatGetsWellAmongThoseThatAreNotKeepsItsShare(t *testing.T) {
	b := balance.New(slow(16*s), 4)
	for i := range 4 {
		b.Judge(i, 0, false)
	}
	b.Judge(0, s, true)
	wantShares(t, "one is well", shares(b, 4, 2*s, -1, 1), []float64{0.25, 0.25, 0.25, 0.25})
	b.Judge(1, 3*s, true) // half of them are: the others are out
	wantShares(t, "two are well", shares(b, 4, 4*s, -1, 2), []float64{0.5, 0.5, 0, 0})
	b.Judge(2, 5*s, true)
	wantShares(t, "the third has been out", shares(b, 4, 6*s, -1, 3), []float64{16. / 34, 16. / 34, 2. / 34, 0})
}
