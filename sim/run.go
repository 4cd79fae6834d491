package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// Options say how a study is made. The zero Options are good ones.
type Options struct {
	Seed     uint64         // of the first run; run i has Seed + i. Default: 1
	Runs     int            // at most, per variant. Default: the scenario's
	Exactly  bool           // make all Runs, also when everything is decided before
	Variants []string       // to run; nil for all
	Margin   bool           // look for the cliff
	Map      bool           // draw the cliff map
	Advice   bool           // look for single changes that turn FAIL into PASS
	Parallel int            // runs at the same time. Default: GOMAXPROCS. It changes no result
	Progress func(Progress) // told after every run, never by two goroutines at once; may be nil
}

// Progress is how far a study is.
type Progress struct {
	Variant string
	Stage   string // "runs", "margin", "map", "advice"
	Done    int    // runs of the stage
	Of      int    // at most; most stages need fewer
	Events  int64  // of all runs so far
}

// Run makes a study of a scenario. When ctx is done it returns what is known so far, with Interrupted set. An error
// means that there is nothing to judge: the scenario cannot be run, or ctx was done before the first run ended.
func Run(ctx context.Context, s *scenario.Scenario, o Options) (*Result, error) {
	o.settle(s)
	chosen, err := choose(s, o.Variants)
	if err != nil {
		return nil, err
	}
	return (&study{ctx: ctx, options: o}).all(s, chosen)
}

// settle fills in what a scenario or the machine decides.
func (o *Options) settle(s *scenario.Scenario) {
	o.Seed = cmp.Or(o.Seed, 1)
	o.Runs = cmp.Or(o.Runs, max(s.Runs, 1))
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
}

// all makes the study of the variants chosen.
func (st *study) all(s *scenario.Scenario, chosen []*scenario.Variant) (*Result, error) {
	r := newResult(s, st.options)
	for _, v := range chosen {
		result, err := st.variant(s, v)
		if err != nil {
			return nil, err
		}
		if result == nil { // interrupted before its first run
			r.Interrupted = true
			break
		}
		r.Variants = append(r.Variants, *result)
		if st.ctx.Err() != nil {
			r.Interrupted = true
			break
		}
	}
	if len(r.Variants) == 0 {
		return nil, context.Cause(st.ctx)
	}
	r.Verdict = worst(r.Variants)
	return r, nil
}

// choose finds the variants to run.
func choose(s *scenario.Scenario, names []string) ([]*scenario.Variant, error) {
	var all []*scenario.Variant
	var known []string
	for i := range s.Variants {
		all, known = append(all, &s.Variants[i]), append(known, s.Variants[i].Name)
	}
	if names == nil {
		return all, nil
	}
	var chosen []*scenario.Variant
	var problems []error
	for _, name := range names {
		found := false
		for _, v := range all {
			if v.Name == name {
				chosen, found = append(chosen, v), true
			}
		}
		if !found {
			problems = append(problems, fmt.Errorf("there is no variant %q; allowed: %s", name, strings.Join(known, ", ")))
		}
	}
	return chosen, errors.Join(problems...)
}

// The verdicts, as words. None is the verdict on nothing.
const (
	Pass      = "PASS"
	Fail      = "FAIL"
	Undecided = "UNDECIDED"
	None      = "NONE"
)

// worst is the verdict on all variants: FAIL if one failed, UNDECIDED if one is undecided.
func worst(variants []VariantResult) string {
	verdict := None
	for i := range variants {
		verdict = worse(verdict, variants[i].Verdict)
	}
	return verdict
}

func worse(a, b string) string {
	rank := map[string]int{None: 0, Pass: 1, Undecided: 2, Fail: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// Err is nil if no expectation failed and none is undecided; else it names them.
func (r *Result) Err() error {
	var problems []error
	if r.Interrupted {
		problems = append(problems, errors.New("the study was stopped before its end"))
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		for _, x := range v.Expectations {
			if x.Verdict != Pass {
				problems = append(problems, fmt.Errorf("%s, variant %s: %s: %s (held in %d of %d runs%s)", r.Name, v.Name,
					x.Verdict, x.Text, x.Held, x.Runs, then("; ", x.Where)))
			}
		}
	}
	return errors.Join(problems...)
}

// then is a text behind a separator; nothing if there is no text.
func then(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// expectations of a variant: those of the scenario and its own.
func expectations(s *scenario.Scenario, v *scenario.Variant) []expect.Expectation {
	return append(append([]expect.Expectation(nil), s.Expect...), v.Expect...)
}
