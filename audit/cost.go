package audit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// Cost is what losses do in an outage that is played: one way in which a service fails, for one kind of requests.
type Cost struct {
	Fails    topology.Outcome `json:"fails"`    // hang, refused or 503
	Requests string           `json:"requests"` // "safe", "unsafe", or "all" where these do not differ
	Written  Storm            `json:"asWritten"`
	Exported Storm            `json:"asExported"`
	Alone    []Without        `json:"alone,omitempty"` // what single dropped keys do, where it is something

	methods topology.Methods // that were played
}

// Without is what the policy as written does without one of the keys that are dropped.
type Without struct {
	Key   string `json:"key"`
	Storm Storm  `json:"without"`
}

// Storm is what came of the outage under one policy, over all runs.
type Storm struct {
	Runs      int     `json:"runs"`
	Attempts  float64 `json:"attemptsPerRequest"` // while the service fails
	InTime    float64 `json:"answeredInTime"`     // share of all requests, from the beginning of the outage on
	Recovered int     `json:"recovered"`          // runs in which goodput came back
	Recovery  float64 `json:"recoverySeconds"`    // the median of those runs; -1 when there is none
}

// The outage in which losses are played.
const (
	costBefore = 10 * time.Second
	costOutage = 20 * time.Second
	costAfter  = 30 * time.Second
	costRuns   = 3
	// MostCosts is of how many services the losses are played. One takes about half a second of a processor.
	MostCosts = 4
)

// costNote says in which outage losses are played.
func costNote() string {
	return fmt.Sprintf("Costs are measured in the simulator: a service fails for %v at %d requests/s, %d runs each.",
		costOutage, AssumedRate, costRuns)
}

// AddCosts plays an outage of each service of which Export lost something, up to MostCosts of them: under its policy as
// written, and under what came back from the other format. It adds to each loss what that costs. When ctx is done it
// returns its error. The same policy gives the same numbers.
func AddCosts(ctx context.Context, f exporter.Format, policy importer.File, urls map[string][]string,
	all []Loss) error {
	file, err := policyfile.Parse(policy.Name, policy.Data)
	if err != nil {
		return err
	}
	routes, err := routesOf(policy, urls)
	if err != nil {
		return err
	}
	played := 0
	for i, after := range cameBack(elsewhere(routes), "export"+extension(f.Name), f.Write) {
		l := &all[i]
		if after == nil || !Lossy(all[i:i+1]) {
			continue
		}
		if played++; played > MostCosts {
			l.Unplayed = true
			continue
		}
		c := &costing{ctx: ctx, loss: l, before: &routes[i].Layer, after: after}
		c.policy, _ = file.Policy(l.Service)
		if err := c.all(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the losses of %s cannot be played: %w", l.Service, err)
		}
	}
	return nil
}

// costing plays the losses of one service.
type costing struct {
	ctx           context.Context
	policy        policyfile.Policy
	loss          *Loss
	before, after *topology.Layer // as it was, and as it came back
}

func (c *costing) all() error {
	safe, err := c.worst(topology.Safe)
	if err != nil {
		return err
	}
	unsafe, err := c.worst(topology.Unsafe)
	switch {
	case err != nil:
		return err
	case safe.Fails == unsafe.Fails && near(safe.Written, unsafe.Written) && near(safe.Exported, unsafe.Exported):
		safe.Requests = topology.AllMethods.String()
		c.loss.Costs = []Cost{safe}
	default:
		c.loss.Costs = []Cost{safe, unsafe}
	}
	for i := range c.loss.Costs {
		if err := c.alone(&c.loss.Costs[i]); err != nil {
			return err
		}
	}
	return nil
}

// worst plays all ways of failing, and returns the one in which the losses do most.
func (c *costing) worst(m topology.Methods) (Cost, error) {
	var worst Cost
	for i, way := range ways {
		cost := Cost{Fails: way, Requests: m.String(), methods: m}
		var err error
		if cost.Written, err = c.play(way, m, c.policy, nil); err == nil {
			cost.Exported, err = c.play(way, m, c.policy, c.after)
		}
		if err != nil {
			return cost, err
		}
		if i == 0 || apart(cost.Written, cost.Exported) > apart(worst.Written, worst.Exported) {
			worst = cost
		}
	}
	return worst, nil
}

// apart says how much two storms differ: in what users see, and in attempts during the outage. Less than a fifth of an
// attempt for a request is little, whichever part of it.
func apart(a, b Storm) float64 {
	const little = 0.2
	attempts := math.Abs(math.Log(max(a.Attempts, little) / max(b.Attempts, little)))
	return attempts + 5*math.Abs(a.InTime-b.InTime) + math.Abs(float64(a.Recovered-b.Recovered))
}

// near reports whether two storms differ by less than is worth a line: by two percent of the attempts, or by 0.4
// percent of the requests.
func near(a, b Storm) bool { return apart(a, b) < 0.02 }

// alone plays the loss of single keys.
func (c *costing) alone(cost *Cost) error {
	for key, without := range c.droppedKeys() {
		s, err := c.play(cost.Fails, cost.methods, without, nil)
		if err != nil {
			return err
		}
		if !near(cost.Written, s) {
			cost.Alone = append(cost.Alone, Without{key, s})
		}
	}
	return nil
}

// play plays the outage under a policy, or under a layer instead if there is one.
func (c *costing) play(way topology.Outcome, m topology.Methods, p policyfile.Policy,
	l *topology.Layer) (Storm, error) {
	s := &staging{play: Play{Service: costService, Fails: way, For: costOutage},
		rates: map[string]float64{costService: AssumedRate}}
	call := topology.Call{To: costService}
	if m == topology.Unsafe {
		call.Unsafe = topology.Assume(true, "what is played")
	}
	variant := pairs{"policy", pairs{"defaults", bare()}}
	if l != nil {
		variant = pairs{"naive", []string{"callers"},
			"policy", pairs{"defaults", bare(), "services", pairs{costService, s.settings(l, way, &call)}}}
	}
	var b bytes.Buffer
	if err := yaml.NewEncoder(&b).Encode(ordered(costScenario(s, variant))); err != nil {
		return Storm{}, err
	}
	parsed, err := scenario.Parse("cost.yaml", b.Bytes())
	if err != nil {
		return Storm{}, err
	}
	if l == nil {
		parsed.Variants[0].Guards = &policyfile.File{Services: []policyfile.Service{
			{Name: costService, Policy: asWritten(p, c.before.Tries(way, m).N)}}}
	}
	r, err := sim.Run(c.ctx, parsed, sim.Options{Runs: costRuns, Exactly: true})
	if err != nil {
		return Storm{}, err
	}
	return stormOf(&r.Variants[0]), nil
}

// costService is the service that fails.
const costService = "service"

func costScenario(s *staging, variant pairs) pairs {
	workers := math.Ceil(AssumedRate / AssumedUtilisation * AssumedTime.Seconds())
	mode := map[topology.Outcome]string{topology.Hang: "hang", topology.Refused: "refuse"}[s.play.Fails]
	return pairs{
		"name", "what a loss costs",
		"duration", (costBefore + costOutage + costAfter).String(),
		"clients", pairs{"callers", pairs{"rate", AssumedRate, "patience", AssumedPatience.String(),
			"calls", []string{costService}}},
		"services", pairs{costService, pairs{"serviceTime", "exponential " + AssumedTime.String(), "workers", int(workers)}},
		"faults", []map[string]any{{"at": costBefore.String(), "for": costOutage.String(), "outage": costService,
			"mode": cmp.Or(mode, "fail")}},
		"variants", pairs{"played", variant},
	}
}

// asWritten is a policy as its guard has it, for calls that end in one way only, which it tries so often. What is about
// addresses and other drivers is left out.
func asWritten(p policyfile.Policy, tries int) policyfile.Policy {
	p.MaxRetries = min(p.MaxRetries, tries-1)
	p.RetryOn, p.NeverRetryOn = nil, nil
	return policyfile.Policy{Policy: p.Policy}
}

func stormOf(v *sim.VariantResult) Storm {
	s := Storm{Runs: v.Runs, Recovered: len(v.Recovery), Recovery: -1}
	if n := len(v.Recovery); n > 0 {
		s.Recovery = v.Recovery[n/2]
	}
	all := (costOutage + costAfter).Seconds()
	for _, m := range v.Measures {
		switch m.Name {
		case "amplification(" + costService + ", during)":
			s.Attempts = m.Mean
		case "goodput(during)":
			s.InTime += m.Mean * costOutage.Seconds() / all
		case "goodput(after)":
			s.InTime += m.Mean * costAfter.Seconds() / all
		}
	}
	return s
}

// sections are the words with which a loss report begins what belongs to one key of a policy file.
var sections = []struct{ words, key string }{
	{"breaker", "circuitBreaker"}, {"retry budget", "retryBudget"}, {"retries at once", "retryBudget"},
	{"requests ", "bulkhead"}, {"hedges", "hedge"}, {"delay of hedges", "hedge"}, {"attempt timeout", "attemptTimeout"},
	{"timeout", "timeout"}, {"jitter", "jitter"}, {"Retry-After", "maxRetryAfter"},
}

// droppedKeys yields each key of which nothing is left, and the policy without it.
func (c *costing) droppedKeys() iter.Seq2[string, policyfile.Policy] {
	gone, left := map[string]bool{}, map[string]bool{}
	for _, r := range c.loss.Rows {
		key := r.Setting
		for _, s := range sections {
			if strings.HasPrefix(r.Setting, s.words) {
				key = s.key
				break
			}
		}
		if r.Kind == exporter.Dropped {
			gone[key] = true
		} else {
			left[key] = true
		}
	}
	return func(yield func(string, policyfile.Policy) bool) {
		var walk func([]policyfile.Setting) bool
		walk = func(all []policyfile.Setting) bool {
			for i := range all {
				s := &all[i]
				if gone[s.Key] && !left[s.Key] {
					if !yield(s.Key, without(c.policy, s)) {
						return false
					}
				} else if !walk(s.Parts) {
					return false
				}
			}
			return true
		}
		walk(c.policy.Settings())
	}
}

// lines is the cost in words, the key lines with it.
func (c Cost) lines() string {
	head := fmt.Sprintf("  while it %s, %s requests:", Fails(c.Fails), c.Requests)
	if near(c.Written, c.Exported) {
		return fmt.Sprintf("%s no difference, %s\n", head, c.Written)
	}
	text := fmt.Sprintf("%s\n    as written:  %s\n    as exported: %s\n", head, c.Written, c.Exported)
	for _, a := range c.Alone {
		text += fmt.Sprintf("    as written, but without %s: %s\n", a.Key, a.Storm)
	}
	return text
}

// String is what came of a storm in words.
func (s Storm) String() string {
	recovery := fmt.Sprintf("recovery after %.1f s", s.Recovery)
	switch {
	case s.Recovered == 0:
		recovery = "no recovery"
	case s.Recovered < s.Runs:
		recovery += fmt.Sprintf(" in %d of %d runs", s.Recovered, s.Runs)
	}
	return fmt.Sprintf("%.2f attempts for a request, %.1f %% answered in time, %s", s.Attempts, 100*s.InTime, recovery)
}

// without is a policy without a key. A section that is left out is another one than a section that is off.
func without(p policyfile.Policy, s *policyfile.Setting) policyfile.Policy {
	switch s.Key {
	case "circuitBreaker":
		p.CircuitBreaker.Disabled = true
	case "retryBudget":
		p.RetryBudget.Disabled = true
	case "bulkhead":
		p.Bulkhead.Disabled = true
	default:
		return s.Without
	}
	return p
}
