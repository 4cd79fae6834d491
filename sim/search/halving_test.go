package search_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/abate-go/abate/sim/search"
)

// spend makes all runs of a search and returns how many there were.
func spend(t *testing.T, h *search.Halving, loss func(alternative, seed int) float64) int {
	t.Helper()
	runs := 0
	for {
		round, ok := h.Next()
		if !ok {
			return runs
		}
		for _, a := range round.Alternatives {
			for seed := round.From; seed < round.To; seed++ {
				h.Add(a, loss(a, seed))
				runs++
			}
		}
	}
}

func TestTheBestOfManyIsFoundWithFewRuns(t *testing.T) {
	found := 0
	for trial := range 200 {
		random := rand.New(rand.NewPCG(7, uint64(trial)))
		const n = 90
		best := random.IntN(n)
		h := search.New(n, search.Options{})
		runs := spend(t, h, func(a, seed int) float64 {
			noise := rand.New(rand.NewPCG(uint64(trial), uint64(seed))).Float64() // the same for all
			if a == best {
				return 0.2 * noise
			}
			return 0.2*noise + 0.3
		})
		if runs > 3*n {
			t.Fatalf("%d runs for %d alternatives", runs, n)
		}
		if h.Ranking()[0] == best {
			found++
		}
	}
	if found != 200 {
		t.Errorf("with common random numbers found in %d of 200", found)
	}
}

func TestOfTwoAsGoodTheEarlierWins(t *testing.T) {
	h := search.New(20, search.Options{})
	spend(t, h, func(a, _ int) float64 {
		if a == 5 || a == 11 {
			return 0
		}
		return 1
	})
	if got := h.Ranking()[:2]; !slices.Equal(got, []int{5, 11}) {
		t.Errorf("ranking begins %v, want 5 11", got)
	}
}

func TestTheBoundOnRunsHolds(t *testing.T) {
	for bound := 1; bound < 400; bound += 7 {
		h := search.New(100, search.Options{Runs: bound})
		runs := spend(t, h, func(a, seed int) float64 { return float64(a*31%17 + seed) })
		if runs > bound || runs != h.Spent() || h.Tried() != min(bound, 100) {
			t.Errorf("bound %d: %d runs, %d said, %d tried", bound, runs, h.Spent(), h.Tried())
		}
		if ranking := h.Ranking(); len(ranking) != h.Tried() {
			t.Errorf("bound %d: %d in the ranking of %d", bound, len(ranking), h.Tried())
		}
	}
}

func TestEveryoneLeftHasTheSameRuns(t *testing.T) {
	h := search.New(50, search.Options{Last: 4, Depth: 20})
	seen := map[int]int{}
	spend(t, h, func(a, seed int) float64 {
		if seen[a] != seed {
			t.Fatalf("alternative %d has seed %d after %d runs", a, seed, seen[a])
		}
		seen[a]++
		return float64(a)
	})
	for i, a := range h.Ranking()[:4] {
		if a != i || seen[a] != 20 {
			t.Errorf("place %d has alternative %d with %d runs, want %d with 20", i, a, seen[a], i)
		}
	}
}

func TestManyShadesOfOneKindLeaveRoomForOthers(t *testing.T) {
	kinds := make([]string, 60)
	for i := range kinds {
		kinds[i] = "good"
		if i >= 50 {
			kinds[i] = fmt.Sprint("other ", i/5)
		}
	}
	h := search.New(60, search.Options{Kinds: kinds, Last: 6})
	spend(t, h, func(a, _ int) float64 { return float64(a) })
	seen := map[string]int{}
	for _, a := range h.Ranking()[:6] {
		seen[kinds[a]]++
	}
	if len(seen) != 3 || h.Ranking()[0] != 0 {
		t.Errorf("left are %v", seen)
	}
}

func TestNoAlternativesAndNoNumbersDoNoHarm(t *testing.T) {
	if _, ok := search.New(0, search.Options{}).Next(); ok {
		t.Error("a round of nothing")
	}
	h := search.New(3, search.Options{})
	spend(t, h, func(a, _ int) float64 {
		if a == 0 {
			return math.NaN()
		}
		return 1
	})
	if got := h.Ranking(); got[2] != 0 {
		t.Errorf("what is no number is at %v", got)
	}
}

func TestASearchThatWasStoppedEnds(t *testing.T) {
	h := search.New(10, search.Options{})
	round, _ := h.Next()
	for _, a := range round.Alternatives[:4] {
		h.Add(a, 0)
	}
	if _, ok := h.Next(); ok {
		t.Error("it goes on without the runs it asked for")
	}
	if best := h.Ranking()[0]; best != 0 {
		t.Errorf("the best is %d", best)
	}
}

func FuzzHalving(f *testing.F) {
	f.Add(uint8(90), uint16(500), uint8(1), uint8(3), uint8(8), uint8(9), uint64(1))
	f.Fuzz(func(t *testing.T, n uint8, runs uint16, first, factor, last, depth uint8, seed uint64) {
		h := search.New(int(n), search.Options{Runs: int(runs), First: int(first % 20), Factor: int(factor % 10),
			Last: int(last), Depth: int(depth % 50)})
		random := rand.New(rand.NewPCG(seed, 0))
		if made := spend(t, h, func(int, int) float64 { return random.NormFloat64() }); runs > 0 && made > int(runs) {
			t.Errorf("%d runs of %d", made, runs)
		}
		ranking := h.Ranking()
		slices.Sort(ranking)
		if len(slices.Compact(ranking)) != h.Tried() {
			t.Errorf("%d tried, ranking %v", h.Tried(), ranking)
		}
	})
}
