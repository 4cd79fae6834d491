package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
	"github.com/abate-go/abate/sim/remedy"
)

// Result is what came of tuning. The same scenarios and options give the same Result on every machine.
type Result struct {
	Policy      []byte // the policy file
	Better      bool   // it is better than the default policy in some scenario, and worse in none
	Interrupted bool
	Objective   string
	Runs        int // all of them, those of this report too
	Text        string
	Changes     []ChangeResult
	Rejected    []Rejected    // changes that are better over the scenarios, and may not be
	Given       []WorldResult // the scenarios
	Copies      []WorldResult // their perturbed copies
	Generated   []WorldResult // random systems
}

// Rejected is a change that the search liked, and why it is not in the policy.
type Rejected struct{ Change, Why string }

// WorldResult is how a world does under the default policy, with its attempt timeouts, and under the tuned one.
type WorldResult struct {
	Name          string
	Before, After string  // the objective, in words
	Ratio         float64 // of what is bad; below 1 the tuned policy is better
	Fails         string  // what is expected and does not hold under the tuned policy
}

// ChangeResult is one change, and what it bought and cost: each world without it beside the world with it.
type ChangeResult struct {
	Change, YAML string
	Bought, Cost []string // in words
}

// result puts the report together.
func (t *tuner) result(policy []remedy.Change) (*Result, error) {
	r := &Result{Objective: t.o.Objective.Text, Rejected: t.rejected}
	if r.Objective == "" {
		r.Objective = "goodput >"
	}
	worse, better := false, false
	for _, w := range t.worlds {
		before, after, err := t.pair(w, nil, policy)
		if err != nil {
			return nil, err
		}
		if len(before) == 0 || len(after) < len(before) {
			continue // interrupted
		}
		one := WorldResult{Name: w.name, Before: t.say(before), After: t.say(after), Ratio: t.ratio(after, before),
			Fails: w.fails(after)}
		switch w.kind {
		case isGiven:
			worse, better = worse || one.Ratio > tolerated, better || one.Ratio < worthIt ||
				lacking(after) < lacking(before)
			r.Given = append(r.Given, one)
		case isCopy:
			r.Copies = append(r.Copies, one)
		case isGenerated:
			r.Generated = append(r.Generated, one)
		}
	}
	for i := range policy {
		c, err := t.change(policy, i)
		if err != nil {
			return nil, err
		}
		r.Changes = append(r.Changes, c)
	}
	r.Better, r.Interrupted, r.Runs = better && !worse, t.ctx.Err() != nil, t.spent
	if !r.Better {
		policy = nil
	}
	r.say(len(policy))
	var err error
	r.Policy, err = t.file(policy, r.Text)
	return r, err
}

// pair are the runs of two policies in one world: of scenarios with many seeds that the search has not seen.
func (t *tuner) pair(w *world, a, b []remedy.Change) (before, after []*job, err error) {
	count := checkSeeds
	if w.kind == isGiven {
		count = finalSeeds
	}
	if before, err = t.several(w, a, count); err == nil {
		after, err = t.several(w, b, count)
	}
	return before, after, err
}

// change says what the i-th change bought and cost: the policy without it beside the policy with it.
func (t *tuner) change(policy []remedy.Change, i int) (ChangeResult, error) {
	c := ChangeResult{Change: policy[i].Text, YAML: policy[i].YAML}
	without := slices.Delete(slices.Clone(policy), i, i+1)
	logs := map[kind][]float64{}
	for _, w := range t.worlds {
		before, after, err := t.pair(w, without, policy)
		if err != nil {
			return c, err
		}
		if len(before) == 0 || len(after) < len(before) {
			continue
		}
		ratio := t.ratio(after, before)
		if w.kind != isGiven {
			logs[w.kind] = append(logs[w.kind], math.Log(ratio))
			continue
		}
		c.add(ratio, fmt.Sprintf("%s: %s instead of %s", w.name, t.say(after), t.say(before)))
	}
	for _, k := range []kind{isCopy, isGenerated} {
		if list := logs[k]; len(list) > 0 {
			c.add(math.Exp(mean(list)), fmt.Sprintf("%s: %s × what is bad, at worst %s ×", k, short(math.Exp(mean(list))),
				short(math.Exp(slices.Max(list)))))
		}
	}
	return c, nil
}

// add files a line under what was bought or what was paid; what changed by less than a hundredth is neither.
func (c *ChangeResult) add(ratio float64, text string) {
	switch {
	case ratio < worthIt:
		c.Bought = append(c.Bought, text)
	case ratio > 2-worthIt:
		c.Cost = append(c.Cost, text)
	}
}

// say is the objective in words, the mean over runs.
func (t *tuner) say(jobs []*job) string {
	bad := 0.0
	for _, j := range jobs {
		bad += j.bad / float64(len(jobs))
	}
	up := t.o.Objective.Op == expect.Above || t.o.Objective.Op == expect.AtLeast
	switch {
	case bad > 1e6:
		return "impossible"
	case up && bad <= 1:
		return figures.Decimals(100*(1-bad), 2) + " %"
	case up:
		return short(1 / bad)
	}
	return short(bad)
}

func short(v float64) string { return figures.Decimals(v, 3) }

// fails lists what does not hold in more than a tenth of the runs.
func (w *world) fails(jobs []*job) string {
	bad := 0
	for _, j := range jobs {
		if j.lacks > 0 {
			bad++
		}
	}
	if bad*10 <= len(jobs) {
		return ""
	}
	texts := make([]string, len(w.expected))
	for i := range w.expected {
		texts[i] = w.expected[i].Text
	}
	return fmt.Sprintf("%s fails in %d of %d runs", strings.Join(texts, " or "), bad, len(jobs))
}

// say says in a sentence what came of it.
func (r *Result) say(changes int) {
	what := "change"
	if changes != 1 {
		what += "s"
	}
	r.Text = fmt.Sprintf("%d %s to the policy it began with; no worse than that in any of %d scenarios, better in some",
		changes, what, len(r.Given))
	if !r.Better {
		r.Text = "nothing that was tried beats the default policy without harm elsewhere"
	}
	if r.Interrupted {
		r.Text = "stopped before the end: " + r.Text
	}
}

// file writes the policy as a file.
func (t *tuner) file(policy []remedy.Change, about string) ([]byte, error) {
	w := t.of(isGiven)[0]
	_, v, err := w.under(policy)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(&v.Policy)
	if err == nil {
		_, err = policyfile.Parse("policy", text)
	}
	if err != nil { // an alias to what was replaced
		text = v.Guards.Format()
	}
	return append([]byte("# Written by abate tune: "+about+".\n"), text...), nil
}
