package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// newResult is the head of a result.
func newResult(s *scenario.Scenario, o Options) *Result {
	begin, end := s.Trouble()
	r := &Result{
		Version: Version, Name: s.Name, About: s.About, File: s.File, Seed: o.Seed, Scale: max(s.Scale, 1),
		Seconds: s.Duration.Seconds(), TroubleFrom: begin.Seconds(), TroubleTo: end.Seconds(),
		Faults: []FaultText{}, Variants: []VariantResult{}, Verdict: None, NotModelled: NotModelled(s),
	}
	for i := range s.Faults {
		r.Faults = append(r.Faults, faultText(&s.Faults[i], s.Duration))
	}
	if len(s.Variants) > 0 {
		r.Assumptions = Assumptions(s, &s.Variants[0])
	}
	return r
}

// faultText says a fault in words.
func faultText(f *scenario.Fault, length time.Duration) FaultText {
	kind, target := f.Kind()
	to := f.At + f.For
	if kind == scenario.OperatorFault && f.For == 0 {
		to = length
	}
	text := kind.String() + " of " + target
	switch kind {
	case scenario.OutageFault:
		mode := f.Mode
		if mode == "" {
			mode = scenario.Hang
		}
		text += " (" + mode + ")"
	case scenario.SlowdownFault:
		if f.Factor > 0 {
			text += fmt.Sprintf(" ×%.4g", f.Factor)
		}
		if !f.Add.IsZero() {
			text += " +" + f.Add.String()
		}
	case scenario.CapacityFault:
		text = fmt.Sprintf("%s has %s of its capacity", target, percent(f.Factor))
	case scenario.SurgeFault:
		text += fmt.Sprintf(" ×%.4g", f.Factor)
	case scenario.RedisFault:
		text = target + " cannot reach Redis"
	case scenario.OperatorFault:
		text = "operator: " + f.Action + " " + target
	case scenario.DeployFault:
		text = "bad deploy of " + target
	}
	if f.Rate > 0 {
		text += ", " + percent(f.Rate)
	}
	if f.Requests > 0 {
		text += ", " + percent(f.Requests) + " of requests"
	}
	if f.Share > 0 {
		text += ", " + percent(f.Share) + " of instances"
	}
	return FaultText{Text: text, From: f.At.Seconds(), To: to.Seconds()}
}

func percent(share float64) string { return fmt.Sprintf("%.4g%%", 100*share) }

// newVariantResult puts together what the runs of a variant came to.
func newVariantResult(s *scenario.Scenario, v *scenario.Variant, expected, standard []expect.Expectation,
	all []outcome) *VariantResult {
	r := &VariantResult{
		Name:         v.Name,
		About:        v.About,
		Runs:         len(all),
		Verdict:      None,
		Expectations: []ExpectationResult{},
		Measures:     []Measure{},
		Notes:        notes(s, v, all),
		Recovery:     recoveries(column(all, func(o *outcome) float64 { return o.recovery })),
		Fleets:       fleetResults(s, all),
		Fan:          fanOf(all, all[0].record),
		Policy:       policies(s, v),
		Paths:        []Path{},
	}
	collapsed := 0
	for i := range all {
		o := &all[i]
		if o.collapsed {
			collapsed++
		}
		if math.IsNaN(o.recovery) {
			r.NoRecovery++
		}
		if o.path.Goodput != nil {
			r.Paths = append(r.Paths, o.path)
		}
		r.Events += o.events
		r.Attempts += o.attempts
	}
	r.Collapse = shareOf(collapsed, len(all))
	for i, t := range tallies(expected, all) {
		x := &expected[i]
		e := expectationResult(x, t, column(all, func(o *outcome) float64 { return o.values[i] }))
		e.Where = whereOf(s, x, all)
		r.Verdict = worse(r.Verdict, e.Verdict)
		r.Expectations = append(r.Expectations, e)
	}
	for i := range standard {
		r.Measures = append(r.Measures, measureOf(&standard[i], column(all, func(o *outcome) float64 {
			return o.measures[i]
		})))
	}
	r.Run = seriesOf(all[0].record, s, v)
	return r
}

func expectationResult(x *expect.Expectation, t expect.Tally, values []float64) ExpectationResult {
	j := x.Judge(t)
	text := x.Text
	if text == "" {
		text = x.String()
	}
	needed := x.Share
	switch {
	case x.Measure == "collapse":
		needed = x.Value
	case needed == 0:
		needed = expect.DefaultShare
	}
	return ExpectationResult{
		Text: text, Verdict: j.Verdict.String(), Runs: t.Runs, Held: t.Held, Unmeasured: t.Unmeasured,
		Held95: Share{j.Share, j.Low, j.High}, Needed: needed, Value: quantiles(values),
	}
}

func shareOf(count, runs int) Share {
	low, high := expect.Wilson(count, runs)
	return Share{Share: float64(count) / float64(runs), Low: low, High: high}
}

// recoveries lists those of the times to recovery that are some, ascending.
func recoveries(all []float64) []float64 {
	times := []float64{}
	for _, t := range all {
		if !math.IsNaN(t) && !math.IsInf(t, 0) {
			times = append(times, t)
		}
	}
	slices.Sort(times)
	return times
}

// policies writes the policy in force on every edge, as YAML.
func policies(s *scenario.Scenario, v *scenario.Variant) string {
	var b strings.Builder
	written := map[string]string{}
	edges(s, v, func(caller string, c *scenario.Call) {
		p := v.PolicyOf(caller, c.To)
		text := string(p.Format(c.To))
		if written[c.To] == text {
			return
		}
		if written[c.To] != "" {
			text = string(p.Format(caller + " -> " + c.To))
		}
		written[c.To] = text
		b.WriteString(text)
	})
	edges(s, v, func(_ string, c *scenario.Call) {
		if p, ok := v.ConnectPolicy(c); ok && written[c.Connect] == "" {
			written[c.Connect] = string(p.Format(c.Connect))
			b.WriteString(written[c.Connect])
		}
	})
	b.WriteString(Gates(s, v))
	return b.String()
}

// Gates writes what protects the services of a variant, every default written out, as a policy file has it; nothing
// where there are no gates.
func Gates(s *scenario.Scenario, v *scenario.Variant) string {
	var file policyfile.File
	for _, x := range s.ServicesOf(v) {
		if p, ok := v.ProtectionOf(x.Name); ok {
			file.Protect = append(file.Protect, policyfile.Protected{Name: x.Name, Protection: p})
		}
	}
	_, text, found := strings.Cut(string(file.Format()), "\nprotect:\n")
	if !found {
		return ""
	}
	return "protect:\n" + text
}

// edges visits all calls of a scenario, callers in the order fleets, services.
func edges(s *scenario.Scenario, v *scenario.Variant, visit func(caller string, c *scenario.Call)) {
	for i := range s.Clients {
		for _, c := range scenario.Edges(s.Clients[i].Calls) {
			visit(s.Clients[i].Name, &c)
		}
	}
	services := s.ServicesOf(v)
	for i := range services {
		for _, c := range scenario.Edges(services[i].Calls) {
			visit(services[i].Name, &c)
		}
	}
}

// amplificationBound is how many attempts per call the budgets of a service's callers allow; 0 if a caller that may
// make more than one has none.
func amplificationBound(s *scenario.Scenario, v *scenario.Variant, service string) float64 {
	bound, bounded := 0.0, true
	edges(s, v, func(caller string, c *scenario.Call) {
		if c.To != service {
			return
		}
		p := v.PolicyOf(caller, c.To).WithDefaults()
		switch attempts := attemptsPerCall(&p); {
		case attempts == 1: // it never tries again
		case !rationed(&p):
			bounded = false
		default:
			bound = max(bound, attempts)
		}
	})
	if !bounded {
		return 0
	}
	return bound
}

// rationed reports whether a budget keeps the extra attempts to a share of the calls. A bucket of tokens does not: time
// fills it, too.
func rationed(p *policyfile.Policy) bool {
	return p.RetryBudget.Enabled() && p.RetryBudget.Kind != budget.Tokens
}

// attemptsPerCall is how many attempts a policy, with its defaults, allows per call in the long run.
func attemptsPerCall(p *policyfile.Policy) float64 {
	most := float64(p.MaxRetries + 1)
	if p.Hedge.Enabled() {
		most *= float64(p.Hedge.MaxHedges + 1)
	}
	if !rationed(p) {
		return most
	}
	if p.RetryBudget.Kind == budget.Adaptive {
		return min(most, 1+p.RetryBudget.MaxRatio)
	}
	return min(most, 1+p.RetryBudget.Ratio)
}

// shortestTimeout is the shortest attempt timeout of a service's callers; 0 for none.
func shortestTimeout(s *scenario.Scenario, v *scenario.Variant, service string) time.Duration {
	var shortest time.Duration
	edges(s, v, func(caller string, c *scenario.Call) {
		if c.To != service {
			return
		}
		p := v.PolicyOf(caller, c.To)
		if t := p.AttemptTimeout; t > 0 && (shortest == 0 || t < shortest) {
			shortest = t
		}
	})
	return shortest
}
