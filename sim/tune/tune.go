package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/remedy"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/search"
)

// Options say how a policy is tuned. The zero Options are good ones.
type Options struct {
	Seed      uint64               // of the first run. Default: 1
	Runs      int                  // of everything together, at most. Default: 2000
	Objective *expect.Expectation  // what should be as good as can be; see ParseObjective. Default: goodput
	Expect    []expect.Expectation // what has to hold in every scenario that knows what it is about, beside its own
	From      string               // a policy file to start from; empty for the default policy
	Copies    int                  // perturbed copies of each scenario. Default: 3; -1 for none
	Systems   int                  // generated systems. Default: 6; -1 for none
	Changes   int                  // in the policy, at most. Default: 6
	Parallel  int                  // runs at the same time. Default: GOMAXPROCS. It changes no result
	Progress  func(Progress)       // told after every run, never by two goroutines at once; may be nil
}

// Progress is how far a search is.
type Progress struct {
	Stage string // "search", "check"
	Done  int    // runs
	Of    int    // at most
}

const (
	finalSeeds = 20 // of each scenario under each policy that is reported
	checkSeeds = 4  // of each world before a change is accepted
	closely    = 10 // changes that are looked at on all worlds, in each round
	tolerated  = 1.02
	worthIt    = 0.99 // a change has to make things better by a hundredth
	freshSeeds = 1_000_000
)

// Run looks for the policy that is best over all scenarios. It begins with the default policy, with the attempt
// timeouts that the scenarios' variants have, and adds one change after the other: the best one that harms nowhere. When
// ctx is done it returns what was found so far, with Interrupted set.
func Run(ctx context.Context, scenarios []*scenario.Scenario, o Options) (*Result, error) {
	o = o.withDefaults()
	t := &tuner{ctx: ctx, o: o}
	if err := t.prepare(scenarios); err != nil {
		return nil, err
	}
	var policy []remedy.Change
	for len(policy) < o.Changes && ctx.Err() == nil {
		next, err := t.round(policy)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		policy = append(policy, *next)
	}
	return t.result(policy)
}

func (o Options) withDefaults() Options {
	o.Seed, o.Runs = cmp.Or(o.Seed, 1), cmp.Or(o.Runs, 2000)
	o.Copies, o.Systems, o.Changes = cmp.Or(o.Copies, 3), cmp.Or(o.Systems, 6), cmp.Or(o.Changes, 6)
	o.Parallel = cmp.Or(o.Parallel, runtime.GOMAXPROCS(0))
	if o.Objective == nil {
		o.Objective = &expect.Expectation{Measure: "goodput", Op: expect.Above}
	}
	return o
}

// round looks for the next change; nil when none is left that helps and harms nobody.
func (t *tuner) round(policy []remedy.Change) (*remedy.Change, error) {
	changes := t.changes(policy)
	if len(changes) == 0 {
		return nil, nil
	}
	given := t.of(isGiven)
	per := len(given)
	left := (t.o.Runs - t.spent) * 2 / 3 / max(per, 1)
	if left < len(changes)/2 {
		return nil, nil
	}
	kinds := make([]string, len(changes))
	for i := range changes {
		kinds[i] = changes[i].Key
	}
	h := search.New(len(changes), search.Options{Runs: left, Kinds: kinds, Last: closely, Depth: 6})
	for {
		round, ok := h.Next()
		if !ok {
			break
		}
		losses, err := t.losses(policy, changes, round, given)
		if err != nil {
			return nil, err
		}
		for i, loss := range losses {
			h.Add(round.Alternatives[i/(round.To-round.From)], loss)
		}
	}
	for _, i := range h.Ranking()[:min(closely, h.Tried())] {
		if t.ctx.Err() != nil || t.spent >= t.o.Runs || h.Loss(i) >= 0 { // no better than what is there
			break
		}
		why, err := t.harm(append(slices.Clone(policy), changes[i]), policy)
		if err != nil {
			return nil, err
		}
		if why == "" {
			return &changes[i], nil
		}
		t.rejected = append(t.rejected, Rejected{changes[i].Text, why})
	}
	return nil, nil
}

// changes are what may be added to a policy, in any of the scenarios.
func (t *tuner) changes(policy []remedy.Change) []remedy.Change {
	var all []remedy.Change
	seen, used := map[string]bool{}, map[string]bool{}
	for i := range policy {
		used[policy[i].Key] = true
	}
	for _, w := range t.of(isGiven) {
		s, v, err := w.under(policy)
		if err != nil {
			continue
		}
		for _, c := range remedy.Changes(s, v) {
			if !c.OfPolicy() || seen[c.YAML] || used[c.Key] {
				continue
			}
			seen[c.YAML] = true
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b remedy.Change) int { return cmp.Compare(a.Step, b.Step) })
	return all
}

// losses runs changes on top of a policy over worlds, and says of each run how much worse it is than the policy alone:
// a logarithm, below zero where it is better. What is expected and does not hold counts beside.
func (t *tuner) losses(policy, changes []remedy.Change, round search.Round, worlds []*world) ([]float64, error) {
	count := round.To - round.From
	var jobs []*job
	for _, i := range round.Alternatives {
		candidate := append(slices.Clone(policy), changes[i])
		for seed := round.From; seed < round.To; seed++ {
			for _, w := range worlds {
				jobs = append(jobs, t.job(w, candidate, seed))
			}
		}
	}
	if err := t.run("search", jobs); err != nil {
		return nil, err
	}
	base := make(map[[2]int]*job)
	var bases []*job
	for k, w := range worlds {
		for seed := round.From; seed < round.To; seed++ {
			base[[2]int{k, seed}] = t.job(w, policy, seed)
			bases = append(bases, base[[2]int{k, seed}])
		}
	}
	if err := t.run("search", bases); err != nil {
		return nil, err
	}
	var losses []float64
	for i := 0; i < len(jobs); i += len(worlds) {
		loss := 0.0
		for k := range worlds {
			j, b := jobs[i+k], base[[2]int{k, round.From + i/len(worlds)%count}]
			if !j.made || !b.made {
				return losses, nil // interrupted
			}
			loss += math.Log(t.ratio([]*job{j}, []*job{b})) + 2*(j.lacks-b.lacks)
		}
		losses = append(losses, loss/float64(len(worlds)))
	}
	return losses, nil
}

// harm plays a policy with fresh seeds on all worlds, and says why it may not be: it has to be better than the one
// before over the scenarios, no worse than the default policy in any of them, and no worse than the one before on
// perturbed copies and generated systems. Empty if nothing speaks against it.
func (t *tuner) harm(policy, before []remedy.Change) (why string, err error) {
	given, others := 0.0, map[kind][]float64{}
	lacks := 0.0
	for _, w := range t.worlds {
		var played [3][]*job
		for i, p := range [][]remedy.Change{policy, before, nil} {
			if played[i], err = t.several(w, p, checkSeeds); err != nil || len(played[i]) < checkSeeds {
				return "it was stopped", err
			}
		}
		now, was, plain := played[0], played[1], played[2]
		if w.kind != isGiven {
			others[w.kind] = append(others[w.kind], math.Log(t.ratio(now, was)))
			continue
		}
		if r := t.ratio(now, plain); r > tolerated || lacking(now) > lacking(plain)+1e-9 {
			return fmt.Sprintf("%s: %s instead of %s", w.name, t.say(now), t.say(plain)), nil
		}
		given += math.Log(t.ratio(now, was))
		lacks += lacking(now) - lacking(was)
	}
	if given+2*lacks > math.Log(worthIt) {
		return "on fresh seeds it is no better", nil
	}
	for _, k := range []kind{isCopy, isGenerated} {
		if m := mean(others[k]); m > math.Log(tolerated) {
			return fmt.Sprintf("%s: × %s what is bad", k, short(math.Exp(m))), nil
		}
	}
	return "", nil
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(max(len(list), 1))
}

// ParseObjective reads what should be as good as can be: an expectation without its value, such as "goodput >" or
// "latency(p99, after) <".
func ParseObjective(text string) (*expect.Expectation, error) {
	for _, value := range []string{"1", "1%", "1s", "1/s"} {
		if x, err := expect.Parse(text + " " + value); err == nil {
			x.Text = text
			return &x, nil
		}
	}
	_, err := expect.Parse(text + " 1%")
	return nil, fmt.Errorf("objective %q: %w; write a measure and a comparison without its value, "+
		"for example \"goodput >\" or \"latency(p99, after) <\"", text, err)
}
