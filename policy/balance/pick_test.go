package balance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// load leaves endpoint i with pending[i] attempts.
func load(b *balance.Balancer, pending []int) {
	rnd, got := rand.New(rand.NewPCG(1, 2)), make([]int, len(pending))
	for slices.Min(got) < slices.Max(pending) {
		got[b.Pick(0, rnd.Uint64(), -1)]++
	}
	for i := range got {
		for range got[i] - pending[i] {
			b.Done(i, 0, balance.Neutral)
		}
	}
}

const draws = 20_000

// shares is how often each endpoint is chosen, in so many draws that leave no attempt behind.
func shares(b *balance.Balancer, n int, now time.Duration, avoid int, seed uint64) []float64 {
	rnd, got := rand.New(rand.NewPCG(seed, 0)), make([]float64, n)
	for range draws {
		i := b.Pick(now, rnd.Uint64(), avoid)
		got[i] += 1.0 / draws
		b.Done(i, now, balance.Neutral)
	}
	return got
}

func wantShares(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		// five standard deviations; the seeds are fixed, so this never flickers
		if off := math.Abs(got[i] - want[i]); off > 5*math.Sqrt(want[i]*(1-want[i])/draws)+1e-9 {
			t.Errorf("%s: shares %.4f, want %.4f", what, got, want)
			return
		}
	}
}

func TestEndpointsWithEqualLoadAreChosenEquallyOften(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 16} {
		b := balance.New(three, n)
		want := slices.Repeat([]float64{1 / float64(n)}, n)
		wantShares(t, "idle", shares(b, n, 0, -1, 1), want)
		for avoid := range min(n, 3) {
			if n == 1 {
				continue
			}
			want := slices.Repeat([]float64{1 / float64(n-1)}, n)
			want[avoid] = 0
			wantShares(t, "avoiding one", shares(b, n, 0, avoid, 2), want)
		}
	}
}

func TestEndpointsThatAreLeftAreChosenEquallyOften(t *testing.T) {
	b := balance.New(three, 6)
	attempts(t, b, 0, 1, "FFF")
	attempts(t, b, 0, 4, "FFF")
	wantShares(t, "two ejected", shares(b, 6, 0, -1, 3), []float64{0.25, 0, 0.25, 0.25, 0, 0.25})
	wantShares(t, "avoiding one", shares(b, 6, 0, 3, 4), []float64{1. / 3, 0, 1. / 3, 0, 0, 1. / 3})
	wantShares(t, "avoiding an ejected one", shares(b, 6, 0, 4, 5), []float64{0.25, 0, 0.25, 0.25, 0, 0.25})
}

// Of all pairs of n endpoints with different loads, n-1 hold the idlest, n-2 the next without the idlest, and so on.
// The busiest of them is never the better one.
func TestTheLessBusyOfTwoIsChosen(t *testing.T) {
	b := balance.New(three, 5)
	load(b, []int{20, 0, 10, 5, 15})
	wantShares(t, "five loads", shares(b, 5, 0, -1, 6), []float64{0, 0.4, 0.2, 0.3, 0.1})
	wantShares(t, "avoiding the idlest", shares(b, 5, 0, 1, 7), []float64{0, 0, 2. / 6, 3. / 6, 1. / 6})
}

// A difference of one is enough, but one that the next attempt evens out is not a bias.
func TestOfTwoEndpointsTheIdleOneIsChosenWhateverTheDraw(t *testing.T) {
	b := balance.New(three, 2)
	load(b, []int{1, 0})
	for _, rnd := range []uint64{0, math.MaxUint64, 1 << 63, 1<<63 - 1, 0xffffffff} {
		if i := b.Pick(0, rnd, -1); i != 1 {
			t.Errorf("draw %x: endpoint %d", rnd, i)
		}
		b.Done(1, 0, balance.Success)
	}
}

func TestTheEndpointJustTriedIsAvoided(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		ejected []int
		avoid   int
		want    []int // those that can be chosen
	}{
		{"nothing to avoid", 3, nil, -1, []int{0, 1, 2}},
		{"one of three", 3, nil, 1, []int{0, 2}},
		{"one of two", 2, nil, 0, []int{1}},
		{"the only one", 1, nil, 0, []int{0}},
		{"an ejected one", 3, []int{2}, 2, []int{0, 1}},
		{"one of two that are left", 3, []int{0}, 1, []int{2}},
		{"the last that is left", 3, []int{0, 2}, 1, []int{1}}, // better than an ejected one
		{"one that is not there", 3, nil, 3, []int{0, 1, 2}},
		{"nonsense", 3, nil, math.MinInt, []int{0, 1, 2}},
		{"more nonsense", 3, nil, math.MaxInt, []int{0, 1, 2}},
	} {
		b := balance.New(three, tt.n)
		for _, i := range tt.ejected {
			attempts(t, b, 0, i, "FFF")
		}
		for i, share := range shares(b, tt.n, s, tt.avoid, 8) {
			if (share > 0) != slices.Contains(tt.want, i) {
				t.Errorf("%s: endpoint %d has a share of %v", tt.name, i, share)
			}
		}
	}
}

// The point of it all: nine endpoints answer in one tick and one in ten. Least pending of two gives the slow one
// little.
func TestASlowEndpointGetsLess(t *testing.T) {
	const n, slow = 10, 3
	b := balance.New(three, n)
	rnd := rand.New(rand.NewPCG(9, 9))
	got, ends := make([]int, n), map[int][]int{} // tick → endpoints
	for tick := range 5000 {
		for _, i := range ends[tick] {
			b.Done(i, 0, balance.Success)
		}
		for range n {
			i := b.Pick(0, rnd.Uint64(), -1)
			got[i]++
			took := 1
			if i == slow {
				took = 10
			}
			ends[tick+took] = append(ends[tick+took], i)
		}
	}
	if share := float64(got[slow]) / 50_000; share > 0.05 || share < 0.01 {
		t.Errorf("the slow one of ten got %.3f of the attempts: %v", share, got)
	}
}
