package sim

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/remedy"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/search"
)

// Advice is a change, or a pair of them, that turns FAIL into PASS.
type Advice struct {
	Change  string  `json:"change"` // "payment-db: retryBudget: {ratio: 0.1} (was off)"
	Verdict string  `json:"verdict"`
	Step    float64 `json:"step"`          // how far it is from what is there, about in doublings; for ordering
	Runs    int     `json:"runs"`          // with seeds that the search had not seen
	Held    float64 `json:"held"`          // least share of those runs, over the expectations
	YAML    string  `json:"yaml"`          // what to write, whole sections of the policy file or of the scenario
	Why     string  `json:"why,omitempty"` // what does not hold, of what only comes closest
}

// AdviceSearch is what the search for advice came to. There is always an answer.
type AdviceSearch struct {
	Tried   int    `json:"tried"`   // single changes that were run
	Pairs   int    `json:"pairs"`   // of two changes together; they are tried when no single change holds
	Runs    int    `json:"runs"`    // of all of them together
	Checked int    `json:"checked"` // changes that were run again with seeds that the search had not seen
	Text    string `json:"text"`    // the answer in a sentence
	// what comes closest, where nothing holds
	Closest *Advice `json:"closest,omitempty"`
}

const (
	mostAdvice   = 5
	mostChecked  = 16        // changes that are looked at with fresh seeds, of the single ones and of the pairs
	pairedUp     = 10        // single changes that are tried in pairs
	searchRuns   = 900       // at most, for the single changes, and for pairs
	leastRuns    = 60        // even where runs are large
	mostEvents   = 400e6     // of all runs for one variant, about: minutes
	freshSeeds   = 1_000_000 // how far the seeds of checks are from those of the search
	tooManyLost  = 0.1       // of all requests: a change may not pass because fewer are answered
	leastChecked = 35        // runs of a check
	mostFresh    = 512
)

// advisor looks for changes under which every expectation of a variant passes.
type advisor struct {
	st       *study
	s        *scenario.Scenario
	v        *scenario.Variant
	expected []expect.Expectation
	base     map[int]float64 // goodput as it is, by seed
	events   atomic.Int64
	size     float64 // events of one run as it is
	found    AdviceSearch
	advice   []Advice
	done     map[string]bool // what there is advice about
}

// trial is one change, ready to run.
type trial struct {
	change remedy.Change
	s      *scenario.Scenario
	v      *scenario.Variant
	first  []float64 // what its first run lacks, by expectation
}

// advise looks for the smallest changes that help: single ones, and pairs when none of those does.
func (st *study) advise(s *scenario.Scenario, v *scenario.Variant) ([]Advice, *AdviceSearch, error) {
	a := &advisor{st: st, s: s, v: v, expected: expectations(s, v), base: map[int]float64{}, done: map[string]bool{}}
	if wantsCollapse(a.expected) {
		a.found.Text = "none was looked for: this variant is there to show the collapse"
		return nil, &a.found, nil
	}
	singles := a.trials(remedy.Changes(s, v))
	ranking, err := a.search("advice", singles)
	a.found.Tried = len(ranking)
	if err == nil {
		err = a.check(singles, ranking)
	}
	if err == nil && len(a.advice) == 0 && st.ctx.Err() == nil {
		pairs := a.trials(a.pairsOf(singles, ranking))
		if ranking, err = a.search("advice, pairs", pairs); err == nil {
			a.found.Pairs = len(ranking)
			err = a.check(pairs, ranking)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	a.answer()
	return a.advice, &a.found, nil
}

// wantsCollapse reports a scenario that is there to show the storm: nobody needs advice against what he expects.
func wantsCollapse(expected []expect.Expectation) bool {
	for i := range expected {
		if expected[i].WantsCollapse() {
			return true
		}
	}
	return false
}

// trials prepares changes, and leaves out those that are impossible here.
func (a *advisor) trials(changes []remedy.Change) []trial {
	var all []trial
	for _, c := range changes {
		s, v, err := c.Apply(a.s, a.v)
		if err != nil {
			continue
		}
		if _, err := engine.New(s, v); err == nil {
			all = append(all, trial{change: c, s: s, v: v})
		}
	}
	return all
}

// pairsOf puts single changes together in pairs: the best of all, and the best for each expectation, at most one of
// each kind. What helps against one of two troubles is not among the best of all.
func (a *advisor) pairsOf(singles []trial, ranking []int) []remedy.Change {
	var best []*remedy.Change
	used := map[string]bool{}
	take := func(order []int, most int) {
		for _, i := range order {
			if c := &singles[i].change; !used[c.Key] && most > 0 {
				used[c.Key] = true
				best = append(best, c)
				most--
			}
		}
	}
	each := max(2, pairedUp/(1+len(a.expected)))
	for x := range a.expected {
		order := slices.Clone(ranking)
		slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(singles[i].first[x], singles[k].first[x]) })
		take(order, each)
	}
	take(ranking, pairedUp-len(best))
	var pairs []remedy.Change
	for i, c := range best {
		for _, d := range best[i+1:] {
			if pair, ok := remedy.Join(c, d); ok {
				pairs = append(pairs, pair)
			}
		}
	}
	return pairs
}

// search runs trials by successive halving, all with the same seeds, and returns them in the order of what came of
// them.
func (a *advisor) search(stage string, trials []trial) ([]int, error) {
	if err := a.normal(0, 1); err != nil {
		return nil, err
	}
	kinds := make([]string, len(trials))
	for i := range trials {
		kinds[i] = trials[i].change.Key
	}
	runs := int(min(searchRuns, max(leastRuns, (mostEvents-float64(a.events.Load()))/2/max(a.size, 1))))
	h := search.New(len(trials), search.Options{Runs: runs, Kinds: kinds})
	a.st.begin(a.v.Name, stage, min(runs, 4*len(trials)))
	for {
		round, ok := h.Next()
		if !ok {
			a.found.Runs += h.Spent()
			return h.Ranking(), nil
		}
		if err := a.normal(round.From, round.To); err != nil {
			return nil, err
		}
		count := round.To - round.From
		losses := make([]float64, len(round.Alternatives)*count)
		made, err := a.st.each(len(losses), func(i int) (int64, bool, error) {
			t := &trials[round.Alternatives[i/count]]
			seed := round.From + i%count
			r, err := a.run(t.s, t.v, seed)
			if r == nil || err != nil {
				return 0, false, err
			}
			lacks := a.lacks(r)
			if seed == 0 {
				t.first = lacks
			}
			if losses[i] = sum(lacks); goodputAll(r) < a.base[seed]-tooManyLost {
				losses[i]++
			}
			return r.Events, true, nil
		})
		if err != nil {
			return nil, err
		}
		for i := range made { // all, unless the study was interrupted
			h.Add(round.Alternatives[i/count], losses[i])
		}
	}
}

// normal runs the variant as it is with seeds, and keeps its goodput. There is less when the study was interrupted.
func (a *advisor) normal(from, to int) error {
	goodput := make([]float64, to-from)
	if _, known := a.base[from]; known {
		return nil
	}
	made, err := a.st.each(to-from, func(i int) (int64, bool, error) {
		r, err := a.run(a.s, a.v, from+i)
		if r == nil || err != nil {
			return 0, false, err
		}
		goodput[i] = goodputAll(r)
		return r.Events, true, nil
	})
	for i := range made {
		a.base[from+i] = goodput[i]
	}
	if from == 0 && made > 0 {
		a.size = float64(a.events.Load()) / float64(made)
	}
	a.found.Runs += made
	return err
}

func (a *advisor) run(s *scenario.Scenario, v *scenario.Variant, seed int) (*engine.Record, error) {
	e, err := engine.New(s, v)
	if err != nil {
		return nil, err
	}
	r, err := e.Run(a.st.options.Seed+uint64(seed), false, func() bool { return a.st.ctx.Err() != nil })
	if r != nil {
		a.events.Add(r.Events)
	}
	return r, err
}

// lacks is how far a run is from each expectation: 0 where it holds, else from a half to one, by how far it misses.
func (a *advisor) lacks(r *engine.Record) []float64 {
	lacks := make([]float64, len(a.expected))
	for i := range a.expected {
		x := &a.expected[i]
		if value := r.Value(x); !x.Holds(value) {
			lacks[i] = 0.5 + Shortfall(x, value)/2
		}
	}
	return lacks
}

func sum(list []float64) float64 {
	total := 0.0
	for _, x := range list {
		total += x
	}
	return total
}

// Shortfall returns by how far a value misses what is expected, from 0 to 1: 0.5 is a factor of 2 in a time, a rate or
// a number, or of a share that should be high in what is missing to the whole.
func Shortfall(x *expect.Expectation, value float64) float64 {
	switch {
	case x.Measure == "collapse" || math.IsNaN(value):
		return 1
	case x.Op == expect.Below || x.Op == expect.AtMost:
		return further(x.Value, value)
	case unitOf(x) == "share":
		return further(1-x.Value, 1-value)
	}
	return further(value, x.Value)
}

// further is 0 where both are the same, 0.5 where the second is twice the first, and 1 where it is far more.
func further(less, more float64) float64 {
	const floor = 1e-3
	if less = math.Max(less, floor); math.IsInf(more, 1) {
		return 1
	}
	return 1 - less/math.Max(more, less)
}

func goodputAll(r *engine.Record) float64 {
	return r.Value(&expect.Expectation{Measure: "goodput"})
}
