package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/harm"
	"github.com/abate-go/abate/sim/remedy"
	"github.com/abate-go/abate/sim/scenario"
)

// unguarded is what the systems run under, and better is what shows that more is possible.
var (
	unguarded = harm.Policy{Name: "unguarded", About: "3 retries, 100 ms apart, whatever happens",
		Guard: "maxRetries: 3, backoff: fixed, initialDelay: 100ms, jitter: none, retryOwner: none, " +
			"retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"}
	better = []harm.Policy{unguarded, {Name: "guard", Guard: "maxRetries: 3"},
		{Name: "both", Guard: "maxRetries: 3", Gate: "{}"}, {Name: "gate", Gate: "{}",
			Guard: "maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"}}
)

const (
	looks      = 4         // runs of each policy that say what is possible
	leastGap   = 0.05      // of all requests, between unguarded and what is possible: else the system does not fail
	freshSeeds = 9_000_000 // of studies with advice that is followed
	otherSeeds = 5_000_000 // of studies that look whether there is a remedy at all
	quickRuns  = 2         // in which a change has to hold to be looked at closely
	runs       = 256       // at most; fewer when it is decided
)

// row is what came of one system.
type row struct {
	system          int
	kind            string
	is, wanted      float64 // goodput unguarded, and what is expected
	changes         int     // single ones that are possible
	remedies        int     // of those, that hold; -1 where nobody looked because there is advice
	advice, holding int     // pieces, and those that pass with other seeds
	failing         int     // pieces that fail there; the rest is undecided
	answer          string
}

// system makes one row; ok is false for a system that does not fail.
func system(ctx context.Context, number int) (r row, ok bool, err error) {
	s := harm.New(number)
	r = row{system: number, kind: s.Kind.String(), remedies: -1}
	if s.Kind.Healthy() {
		return r, false, nil
	}
	gap, err := r.possible(ctx, s)
	if err != nil || gap < leastGap {
		return r, false, err
	}
	expected := fmt.Sprintf("goodput > %.2f%%", 100*r.wanted)
	text := s.Text([]harm.Policy{unguarded}, map[string]string{unguarded.Name: expected})
	failing, err := scenario.Parse("system.yaml", []byte(text))
	if err != nil {
		return r, false, err
	}
	result, err := sim.Run(ctx, failing, sim.Options{Runs: 8, Advice: true})
	if err != nil || result.Verdict != sim.Fail {
		return r, false, err
	}
	v := &result.Variants[0]
	r.answer = v.AdviceSearch.Text
	if err := r.follow(ctx, failing, v.Advice); err != nil {
		return r, false, err
	}
	if len(v.Advice) == 0 {
		err = r.exhaust(ctx, failing)
	}
	return r, err == nil, err
}

// possible finds the goodput of the system unguarded and what the best of a few policies does, and wants the middle.
func (r *row) possible(ctx context.Context, s *harm.System) (gap float64, err error) {
	parsed, err := scenario.Parse("system.yaml", []byte(s.Text(better, nil)))
	if err != nil {
		return 0, err
	}
	result, err := sim.Run(ctx, parsed, sim.Options{Runs: looks, Exactly: true})
	if err != nil {
		return 0, err
	}
	best := 0.0
	for i := range result.Variants {
		goodput := overall(&result.Variants[i])
		if best = max(best, goodput); i == 0 {
			r.is = goodput
		}
	}
	r.wanted = (r.is + best) / 2
	return best - r.is, nil
}

// overall is the mean goodput, by what was offered before, during and after the trouble.
func overall(v *sim.VariantResult) float64 {
	var offered, good float64
	for _, x := range v.Run.Offered {
		offered += x
	}
	for _, x := range v.Run.Goodput {
		good += x
	}
	return good / max(offered, 1e-9)
}

// follow applies each advice, and judges it on seeds that nobody has seen.
func (r *row) follow(ctx context.Context, s *scenario.Scenario, advice []sim.Advice) error {
	byText := map[string]*remedy.Change{}
	changes := remedy.Changes(s, &s.Variants[0])
	for i := range changes {
		byText[changes[i].Text] = &changes[i]
	}
	for _, a := range advice {
		c := byText[a.Change]
		if c == nil { // a pair
			if c = pair(changes, a.Change); c == nil {
				return fmt.Errorf("system %d: advice %q is no change", r.system, a.Change)
			}
		}
		verdict, err := judge(ctx, s, c, freshSeeds, runs)
		if err != nil {
			return err
		}
		r.advice++
		switch verdict {
		case sim.Pass:
			r.holding++
		case sim.Fail:
			r.failing++
		}
	}
	return nil
}

func pair(changes []remedy.Change, text string) *remedy.Change {
	for i := range changes {
		for k := range changes {
			if changes[i].Text+"; "+changes[k].Text == text {
				if both, ok := remedy.Join(&changes[i], &changes[k]); ok {
					return &both
				}
			}
		}
	}
	return nil
}

// exhaust looks whether any single change holds.
func (r *row) exhaust(ctx context.Context, s *scenario.Scenario) error {
	r.remedies = 0
	changes := remedy.Changes(s, &s.Variants[0])
	for i := range changes {
		verdict, err := judge(ctx, s, &changes[i], otherSeeds, quickRuns)
		if err == nil && verdict != sim.Fail {
			verdict, err = judge(ctx, s, &changes[i], otherSeeds, runs)
		}
		if err != nil {
			return err
		}
		r.changes++
		if verdict == sim.Pass {
			r.remedies++
		}
	}
	return nil
}

// judge runs a change. With few runs FAIL means that it did not hold in all of them.
func judge(ctx context.Context, s *scenario.Scenario, c *remedy.Change, seed uint64, most int) (string, error) {
	changed, _, err := c.Apply(s, &s.Variants[0])
	if err != nil {
		return sim.Fail, nil // it cannot be made here
	}
	result, err := sim.Run(ctx, changed, sim.Options{Seed: seed, Runs: most, Exactly: most == quickRuns})
	switch {
	case err != nil && ctx.Err() == nil:
		return sim.Fail, nil
	case err != nil:
		return "", err
	case most == quickRuns && result.Variants[0].Expectations[0].Held < most:
		return sim.Fail, nil
	}
	return result.Verdict, nil
}

// table writes all rows, and sums them up.
func table(w io.Writer, rows []row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "system\tkind\tgoodput\twanted\tadvice\tholds on other seeds\tfails there\tremedies missed")
	var advice, holding, failing, found, missed, none int
	for _, r := range rows {
		missing := "-"
		switch {
		case r.advice > 0:
			found++
		case r.remedies > 0:
			missed++
			missing = fmt.Sprint(r.remedies)
		default:
			none++
			missing = "none exists"
		}
		advice, holding, failing = advice+r.advice, holding+r.holding, failing+r.failing
		fmt.Fprintf(t, "%d\t%s\t%.1f %%\t%.1f %%\t%d\t%d\t%d\t%s\n", r.system, r.kind, 100*r.is, 100*r.wanted, r.advice,
			r.holding, r.failing, missing)
	}
	t.Flush()
	fmt.Fprintf(w, "\n%d failing systems: advice for %d; for %d there is a single change that was missed; "+
		"for %d there is none\n", len(rows), found, missed, none)
	fmt.Fprintf(w, "where a remedy exists it is found in %s; "+
		"%d of %d pieces of advice (%s) hold on other seeds, %d fail\n",
		share(found, found+missed), holding, advice, share(holding, advice), failing)
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
