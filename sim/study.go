package sim

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// study makes the runs of one study.
type study struct {
	ctx     context.Context
	options Options

	mu  sync.Mutex
	now Progress

	base   *baseline             // the first variant, once it was run
	stored map[string][]ShardRun // runs that shards made, by variant, in the order of the seeds; nil for none
}

// outcome is what is kept of one run.
type outcome struct {
	values    []float64 // of the expectations
	measures  []float64 // of the standard list
	collapsed bool
	recovery  float64
	before    float64 // goodput of all fleets together: of the whole run where advice looks, else before the trouble
	fleets    []fleetOutcome
	goodput   []float64 // per coarse bin
	path      Path
	events    int64
	attempts  int64
	record    *engine.Record // of the first run
}

// batch runs a variant with so many seeds, from a first one on, and returns the outcomes in the order of the seeds.
// There are fewer when the study was interrupted. look chooses what is kept of a run; it may run on several goroutines.
func (st *study) batch(s *scenario.Scenario, v *scenario.Variant, first, count int, detail bool,
	look func(i int, r *engine.Record) outcome) ([]outcome, error) {
	seeds := make([]int, count)
	for i := range seeds {
		seeds[i] = first + i
	}
	return st.sown(s, v, seeds, detail, look)
}

// sown is batch for the seeds with these numbers, from 0.
func (st *study) sown(s *scenario.Scenario, v *scenario.Variant, seeds []int, detail bool,
	look func(i int, r *engine.Record) outcome) ([]outcome, error) {
	count := len(seeds)
	outcomes := make([]outcome, count)
	done, err := st.share(count, func() (step, error) {
		run, err := runs(s, v)
		return func(i int) (int64, bool, error) {
			n := seeds[i]
			r, err := run(st.options.Seed+uint64(n), detail && n == 0, func() bool { return st.ctx.Err() != nil })
			if r == nil || err != nil {
				return 0, false, err
			}
			outcomes[i] = look(n, r)
			return r.Events, true, nil
		}, err
	})
	if err != nil {
		return nil, err
	}
	return outcomes[:done], nil
}

// step makes the i-th of some runs, and returns its events; made is false when it was stopped.
type step func(i int) (events int64, made bool, err error)

// each makes so many runs, as share does.
func (st *study) each(count int, do step) (int, error) {
	return st.share(count, func() (step, error) { return do, nil })
}

// share makes so many runs, on as many goroutines as the options allow, each of which prepares itself once, and returns
// how many were made: all, unless the study was interrupted.
func (st *study) share(count int, prepare func() (step, error)) (done int, err error) {
	made := make([]bool, count)
	var (
		next    atomic.Int64
		wait    sync.WaitGroup
		problem error // under st.mu
	)
	for range min(st.options.Parallel, count) {
		wait.Go(func() {
			do, err := prepare()
			for err == nil && st.ctx.Err() == nil { // a short run never asks whether to stop
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				var events int64
				if events, made[i], err = do(i); !made[i] {
					break
				}
				st.made(events)
			}
			if err != nil {
				st.mu.Lock()
				problem = err
				st.mu.Unlock()
			}
		})
	}
	wait.Wait()
	if problem != nil {
		return 0, problem
	}
	for done < count && made[done] {
		done++
	}
	return done, nil
}

// begin opens a stage that takes at most so many runs.
func (st *study) begin(variant, stage string, runs int) {
	st.mu.Lock()
	st.now = Progress{Variant: variant, Stage: stage, Of: runs, Events: st.now.Events}
	st.mu.Unlock()
}

// made reports one more run.
func (st *study) made(events int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.now.Done++
	st.now.Events += events
	if st.options.Progress != nil {
		st.options.Progress(st.now)
	}
}

// run is one run; nil without an error when it was stopped.
type run func(seed uint64, detail bool, stop func() bool) (*engine.Record, error)

// runs prepares runs of a variant, for one goroutine.
func runs(s *scenario.Scenario, v *scenario.Variant) (run, error) {
	if s.IsPopulation() {
		return populationRuns(s, v)
	}
	e, err := engine.New(s, v)
	if err != nil {
		return nil, err
	}
	return e.Run, nil
}

// variant makes the runs of one variant until everything is decided, and judges them. It returns nil when not even the
// first batch could be made.
func (st *study) variant(s *scenario.Scenario, v *scenario.Variant) (*VariantResult, error) {
	expected := expectations(s, v)
	standard := standardMeasures(s, v)
	look := func(i int, r *engine.Record) outcome { return lookAt(r, expected, standard, i) }
	var all []outcome
	checkpoints := expect.Checkpoints(st.options.Runs)
	if st.options.Exactly {
		checkpoints = []int{st.options.Runs}
	}
	st.begin(v.Name, "runs", st.options.Runs)
	if len(expected) == 0 && !st.options.Exactly {
		checkpoints = checkpoints[:1]
	}
	from, further := st.newLine(s, v, st.options.Runs, look), needed(expected, st.options.Runs)
	defer from.close()
	for _, upTo := range checkpoints {
		var err error
		if st.stored[v.Name] != nil {
			all, err = st.merged(s, v, all, upTo, look)
		} else {
			all, err = from.upTo(upTo, further)
		}
		if err != nil {
			return nil, err
		}
		if len(all) < upTo || decided(expected, all) && !st.options.Exactly {
			break
		}
	}
	from.close()
	if len(all) == 0 {
		return nil, nil
	}
	result := newVariantResult(s, v, expected, standard, all)
	if st.base == nil {
		st.base = newBaseline(standard, all)
	} else {
		result.Differences = st.base.differences(standard, all)
	}
	var err error
	if result.Cohort, err = cohortCheck(s, v, st.options.Seed); err != nil {
		return nil, err
	}
	if err := st.extras(s, v, result); err != nil {
		return nil, err
	}
	result.NotCovered = st.notCovered(s, v, result, all)
	return result, nil
}

// extras looks for the cliff and for advice, as far as the options ask for it.
func (st *study) extras(s *scenario.Scenario, v *scenario.Variant, result *VariantResult) error {
	if s.IsPopulation() {
		return nil // one run is all there is to it
	}
	var err error
	if st.options.Margin && st.ctx.Err() == nil {
		result.Margins, err = st.margins(s, v)
	}
	if err == nil && st.options.Map && st.ctx.Err() == nil {
		result.Map, err = st.cliffMap(s, v)
	}
	if err == nil && st.options.Advice && result.Verdict == Fail && st.ctx.Err() == nil {
		result.Advice, result.AdviceSearch, err = st.advise(s, v)
	}
	return err
}

// tallies counts in how many runs each expectation held.
func tallies(expected []expect.Expectation, all []outcome) []expect.Tally {
	counts := make([]expect.Tally, len(expected))
	for i := range expected {
		for k := range all {
			counts[i].Add(&expected[i], all[k].values[i])
		}
	}
	return counts
}

// decided reports whether no expectation is left open. One that failed decides nothing about the others: a reader wants
// to know them all. One or two bad runs among the first few are not yet a FAIL: see expect.Checkpoints.
func decided(expected []expect.Expectation, all []outcome) bool {
	const benefit = 2
	for i, t := range tallies(expected, all) {
		x := &expected[i]
		switch x.Judge(t).Verdict {
		case expect.Undecided:
			return false
		case expect.Fail:
			if t.Held = min(t.Held+benefit, t.Runs); t.Runs < expect.RunsNeeded(*x) && x.Judge(t).Verdict != expect.Fail {
				return false
			}
		}
	}
	return true
}
