package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/harm"
	"github.com/abate-go/abate/sim/remedy"
	"github.com/abate-go/abate/sim/scenario"
)

// kind says where a world is from.
type kind uint8

const (
	isGiven     kind = iota // a scenario that somebody named
	isCopy                  // a perturbed copy of one
	isGenerated             // a system of sim/harm
)

// String says what the worlds of a kind are.
func (k kind) String() string {
	return [...]string{"scenarios", "perturbed copies", "generated systems"}[k]
}

// world is something that policies are played on.
type world struct {
	name     string
	kind     kind
	s        *scenario.Scenario
	v        *scenario.Variant // under the policy that the search starts from
	expected []expect.Expectation
}

// under returns the world under the start policy with changes. In a generated system a change is the one of the same
// name there, with the numbers of that system, at every service.
func (w *world) under(policy []remedy.Change) (*scenario.Scenario, *scenario.Variant, error) {
	s, v := w.s, w.v
	for i := range policy {
		c := &policy[i]
		if w.kind == isGenerated {
			if c = sameName(s, v, c.Name); c == nil {
				continue // there is nothing of it to change here
			}
		}
		var err error
		if s, v, err = c.Apply(s, v); err != nil {
			return nil, nil, err
		}
	}
	return s, v, nil
}

// sameName is the change of a name in another system: everywhere, if there are several places.
func sameName(s *scenario.Scenario, v *scenario.Variant, name string) *remedy.Change {
	all := remedy.Changes(s, v)
	name = strings.TrimPrefix(name, "every ")
	for _, wanted := range []string{"every " + name, name} {
		for i := range all {
			if all[i].Name == wanted {
				return &all[i]
			}
		}
	}
	return nil
}

// tuner looks for a policy.
type tuner struct {
	ctx    context.Context
	o      Options
	worlds []*world
	start  string // the policy that the search starts from, as YAML

	mu    sync.Mutex
	spent int // runs

	rejected []Rejected
	kept     map[string]*job // of policies that are run again and again
}

func (t *tuner) of(k kind) []*world {
	var some []*world
	for _, w := range t.worlds {
		if w.kind == k {
			some = append(some, w)
		}
	}
	return some
}

// prepare makes the worlds.
func (t *tuner) prepare(scenarios []*scenario.Scenario) error {
	t.kept = map[string]*job{}
	var problems []error
	for _, s := range scenarios {
		switch {
		case s.IsPopulation():
			problems = append(problems, fmt.Errorf("%s: clients that are counted in cohorts have one policy for all of them; "+
				"write method: exact with fewer clients", s.File))
		case slices.ContainsFunc(s.Clients, func(f scenario.Fleet) bool { return f.Consumes() }):
			problems = append(problems, fmt.Errorf("%s: how messages are retried is decided by their topics, which are not "+
				"tuned; leave this scenario out", s.File))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if t.start = t.o.From; t.start == "" {
		t.start = startOf(scenarios)
	}
	for i, s := range scenarios {
		if err := t.add(isGiven, s.Name, s); err != nil {
			return err
		}
		for k := range max(t.o.Copies, 0) {
			if err := t.add(isCopy, s.Name, perturb(s, uint64(100*i+k))); err != nil {
				return err
			}
		}
	}
	for number := 0; len(t.of(isGenerated)) < max(t.o.Systems, 0); number += 7 { // of all kinds, one after the other
		if harm.ForTest(number) {
			continue
		}
		system := harm.New(number)
		text := system.Text([]harm.Policy{{Name: "tuned", Guard: "maxRetries: 3"}}, nil)
		s, err := scenario.Parse(fmt.Sprintf("system-%d.yaml", number), []byte(text))
		if err != nil {
			return err
		}
		t.worlds = append(t.worlds, &world{name: fmt.Sprintf("system %d (%s)", number, system.Kind), kind: isGenerated, s: s,
			v: &s.Variants[0]})
	}
	return nil
}

// add adds a world that is played under the start policy.
func (t *tuner) add(k kind, name string, s *scenario.Scenario) error {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(t.start), &node); err != nil {
		return err
	}
	file, err := policyfile.ParseNode("policy", &node)
	if err != nil {
		return err
	}
	c, v := s.Copy(&s.Variants[0])
	*v = scenario.Variant{Name: "tuned", Policy: *node.Content[0], Guards: file}
	w := &world{name: name, kind: k, s: c, v: v}
	for _, x := range append(slices.Clone(s.Expect), t.o.Expect...) {
		if x.Check(names(s)) == nil {
			w.expected = append(w.expected, x)
		}
	}
	if _, err := engine.New(c, v); err != nil {
		return fmt.Errorf("%s: %w", s.File, err)
	}
	t.worlds = append(t.worlds, w)
	return nil
}

// names lists what an expectation may be about.
func names(s *scenario.Scenario) func(expect.SubjectKind) []string {
	return func(k expect.SubjectKind) []string {
		var list []string
		if k == expect.Fleet {
			for i := range s.Clients {
				list = append(list, s.Clients[i].Name)
			}
			return list
		}
		for i := range s.Services {
			list = append(list, s.Services[i].Name)
		}
		return list
	}
}

// startOf is the default policy with the attempt timeouts of the scenarios: how long an answer may take is known to
// whoever wrote them, and not found by searching.
func startOf(scenarios []*scenario.Scenario) string {
	timeouts := map[string]time.Duration{}
	var services []string
	for _, s := range scenarios {
		for i := range s.Variants {
			v := &s.Variants[i]
			for _, x := range s.Services {
				p := v.PolicyOf("", x.Name)
				if was, known := timeouts[x.Name]; p.AttemptTimeout > 0 && (!known || p.AttemptTimeout < was) {
					timeouts[x.Name] = p.AttemptTimeout
					if !known {
						services = append(services, x.Name)
					}
				}
			}
		}
	}
	text := "defaults: {}\n"
	if len(services) > 0 {
		text += "services:\n"
	}
	for _, name := range services {
		text += fmt.Sprintf("  %q:\n    attemptTimeout: %s\n", name, strings.ReplaceAll(timeouts[name].String(), "µs", "us"))
	}
	return text
}

// job is one run of a policy in a world.
type job struct {
	w      *world
	policy []remedy.Change
	seed   int
	key    string // of policies that are run again

	made  bool
	bad   float64 // what the objective wants less of
	lacks float64 // what is expected and does not hold
}

// job is a run to make, or one that was made before.
func (t *tuner) job(w *world, policy []remedy.Change, seed int) *job {
	var b strings.Builder
	fmt.Fprintf(&b, "%p %d", w, seed)
	for i := range policy {
		b.WriteString("\n" + policy[i].YAML)
	}
	if j := t.kept[b.String()]; j != nil {
		return j
	}
	j := &job{w: w, policy: slices.Clone(policy), seed: seed, key: b.String()}
	t.kept[j.key] = j
	return j
}

// several are runs of a policy with fresh seeds.
func (t *tuner) several(w *world, policy []remedy.Change, count int) ([]*job, error) {
	jobs := make([]*job, count)
	for i := range jobs {
		jobs[i] = t.job(w, policy, freshSeeds+i)
	}
	err := t.run("check", jobs)
	made := 0
	for made < count && jobs[made].made {
		made++
	}
	return jobs[:made], err
}

// run makes those of the jobs that have not been made.
func (t *tuner) run(stage string, jobs []*job) error {
	var left []*job
	for _, j := range jobs {
		if !j.made {
			left = append(left, j)
		}
	}
	var (
		next    atomic.Int64
		wait    sync.WaitGroup
		problem error
	)
	for range min(t.o.Parallel, len(left)) {
		wait.Go(func() {
			for t.ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(left) {
					return
				}
				err := t.make(left[i])
				t.mu.Lock()
				if err != nil {
					problem = err
				}
				t.spent++
				if t.o.Progress != nil {
					t.o.Progress(Progress{Stage: stage, Done: t.spent, Of: t.o.Runs})
				}
				t.mu.Unlock()
			}
		})
	}
	wait.Wait()
	return problem
}

// make makes one run. A change that is impossible in a world is as bad as can be there.
func (t *tuner) make(j *job) error {
	s, v, err := j.w.under(j.policy)
	if err != nil {
		j.made, j.bad, j.lacks = true, math.MaxFloat32, 1
		return nil
	}
	e, err := engine.New(s, v)
	if err != nil {
		j.made, j.bad, j.lacks = true, math.MaxFloat32, 1
		return nil
	}
	r, err := e.Run(t.o.Seed+uint64(j.seed), false, func() bool { return t.ctx.Err() != nil })
	if r == nil || err != nil {
		return err
	}
	j.bad = t.badness(r.Value(t.objectiveIn(j.w)))
	for i := range j.w.expected {
		x := &j.w.expected[i]
		value := r.Value(x)
		if !math.IsNaN(value) && !x.Holds(value) {
			j.lacks += 0.5 + sim.Shortfall(x, value)/2
		}
	}
	j.made = true
	return nil
}

// objectiveIn is the objective as a world can measure it: a generated system has no service or fleet of that name.
func (t *tuner) objectiveIn(w *world) *expect.Expectation {
	if t.o.Objective.Check(names(w.s)) == nil {
		return t.o.Objective
	}
	return &expect.Expectation{Measure: "goodput", Op: expect.Above}
}

// badness turns a measured value into what there should be less of.
func (t *tuner) badness(value float64) float64 {
	const never = 1e4 // seconds, or times
	up := t.o.Objective.Op == expect.Above || t.o.Objective.Op == expect.AtLeast
	switch {
	case math.IsNaN(value):
		return 0
	case math.IsInf(value, 1) || value > never:
		value = never
	}
	if up && value <= 1 {
		return 1 - value
	} else if up {
		return 1 / value
	}
	return value
}

// floor is how much of what is bad is no matter: a request in a thousand, or as much of a second.
const floor = 0.001

// ratio is how bad runs are, beside others with the same seeds.
func (t *tuner) ratio(now, before []*job) float64 {
	var a, b float64
	for i := range now {
		a += now[i].bad + floor
		b += before[i].bad + floor
	}
	return a / b
}

// lacking is the mean of what does not hold.
func lacking(jobs []*job) float64 {
	sum := 0.0
	for _, j := range jobs {
		sum += j.lacks
	}
	return sum / float64(max(len(jobs), 1))
}
