package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
)

// fresh is what came of a change on seeds that the search has not seen.
type fresh struct {
	verdict string
	runs    int
	held    float64 // least share of the runs, over the expectations
	why     string  // what does not hold
}

// check runs the best changes again, with seeds that the search has not seen, until there is enough advice: a change is
// the best of many, and some of them are good by chance. What holds is advised, the smallest of each kind.
func (a *advisor) check(trials []trial, ranking []int) error {
	runs, _ := a.freshRuns()
	looked := min(mostChecked, len(ranking))
	a.st.begin(a.v.Name, "advice, fresh seeds", looked*runs)
	for _, i := range ranking[:looked] {
		c := &trials[i].change
		if a.st.ctx.Err() != nil || len(a.advice) == mostAdvice {
			break
		}
		if a.done[c.Key] {
			continue
		}
		if a.events.Load() > mostEvents && a.found.Checked > 0 { // large runs: one answer is better than none
			break
		}
		f, err := a.fresh(&trials[i])
		if err != nil {
			return err
		}
		if f.runs == 0 {
			break
		}
		a.found.Checked++
		a.found.Runs += f.runs
		one := Advice{Change: c.Text, YAML: c.YAML, Step: c.Step, Verdict: f.verdict, Runs: f.runs, Held: f.held, Why: f.why}
		if f.verdict == Pass {
			a.done[c.Key] = true
			a.advice = append(a.advice, one)
		} else if a.found.Closest == nil || one.Held > a.found.Closest.Held {
			a.found.Closest = &one
		}
	}
	slices.SortStableFunc(a.advice, func(a, b Advice) int { return cmp.Compare(a.Step, b.Step) })
	return nil
}

// freshRuns is how many runs a check takes: at least as many as a PASS needs, and more while nothing is decided.
func (a *advisor) freshRuns() (least, most int) {
	least = leastChecked
	for i := range a.expected {
		least = max(least, expect.RunsNeeded(a.expected[i]))
	}
	least = min(least, mostFresh)
	return least, min(3*least, max(mostFresh, least))
}

// fresh judges a change on fresh seeds. It ends early when the change has failed.
func (a *advisor) fresh(t *trial) (fresh, error) {
	least, most := a.freshRuns()
	var all []outcome
	var goodput, before float64
	for _, upTo := range expect.Checkpoints(most) {
		from := len(all)
		more := make([]outcome, upTo-from)
		made, err := a.st.each(len(more), func(i int) (int64, bool, error) {
			r, err := a.run(t.s, t.v, freshSeeds+from+i)
			if r == nil || err != nil {
				return 0, false, err
			}
			more[i] = a.outcome(r)
			return r.Events, true, nil
		})
		if err != nil || made < len(more) {
			return fresh{}, err
		}
		if from == 0 {
			if err := a.normal(freshSeeds, freshSeeds+upTo); err != nil {
				return fresh{}, err
			}
			for i := range more {
				goodput += more[i].before
				before += a.base[freshSeeds+i]
			}
		}
		all = append(all, more...)
		f := a.judge(all)
		if goodput < before-tooManyLost*float64(len(more)) && from == 0 {
			f.verdict, f.held = Fail, 0
			f.why = fmt.Sprintf("goodput falls from %s to %s", percent(before/float64(len(more))),
				percent(goodput/float64(len(more))))
			return f, nil
		}
		// What is not clear by then holds seldom enough to be left out, unless there is nothing else.
		enough := upTo >= least && (f.verdict == Pass || len(a.advice) > 0)
		if f.verdict == Fail || enough || upTo == most {
			return f, nil
		}
	}
	return fresh{}, nil
}

// outcome keeps of a run what a check needs.
func (a *advisor) outcome(r *engine.Record) outcome {
	o := outcome{before: goodputAll(r)}
	for i := range a.expected {
		o.values = append(o.values, r.Value(&a.expected[i]))
	}
	return o
}

// judge says what runs came to: PASS needs every expectation.
func (a *advisor) judge(all []outcome) fresh {
	f := fresh{verdict: Pass, runs: len(all), held: 1}
	var why []string
	for i, t := range tallies(a.expected, all) {
		x := &a.expected[i]
		verdict := x.Judge(t).Verdict.String()
		f.verdict = worse(f.verdict, verdict)
		f.held = min(f.held, float64(t.Held)/float64(t.Runs))
		if verdict != Pass {
			why = append(why, a.missed(x, t, column(all, func(o *outcome) float64 { return o.values[i] })))
		}
	}
	f.why = strings.Join(why, "; ")
	return f
}

// missed says in how many runs an expectation does not hold, and what was measured instead.
func (a *advisor) missed(x *expect.Expectation, t expect.Tally, values []float64) string {
	text := x.Text
	if text == "" {
		text = x.String()
	}
	said := fmt.Sprintf("%s holds in %d of %s", text, t.Held, plural(t.Runs, "run"))
	if x.Measure == "collapse" {
		return said
	}
	sample := expect.NewSample(values)
	if sample.N() == 0 {
		return said + " (not measured)"
	}
	return said + " (median " + inUnit(unitOf(x), sample.Quantile(0.5)) + ")"
}

// inUnit writes a measured value.
func inUnit(unit string, v float64) string {
	switch {
	case math.IsInf(v, 0):
		return "never"
	case unit == "share":
		return percent(v)
	case unit == "s":
		return figures.Decimals(v, 3) + " s"
	case unit == "1/s":
		return number(v) + "/s"
	}
	return number(v)
}
