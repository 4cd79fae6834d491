package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// candidate is one change that might help.
type candidate struct {
	knob   string // only the smallest change of a knob is advised
	text   string
	yaml   string
	step   float64
	change func(s *scenario.Scenario, v *scenario.Variant) (*scenario.Scenario, *scenario.Variant)
}

const (
	screenRuns = 3 // a candidate has to hold in all of them to be looked at closely
	mostAdvice = 5
)

// advice looks for the smallest single changes under which every expectation passes, on the same random numbers.
func (st *study) advice(s *scenario.Scenario, v *scenario.Variant) ([]Advice, error) {
	if wantsCollapse(expectations(s, v)) {
		return nil, nil
	}
	list := candidates(s, v)
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case a.step < b.step:
			return -1
		case a.step > b.step:
			return 1
		}
		return 0
	})
	base, err := st.answered(s, v)
	if err != nil || base == nil {
		return nil, err
	}
	var found []Advice
	done := map[string]bool{}
	st.begin(v.Name, "advice", len(list)*st.options.Runs)
	for _, c := range list {
		if st.ctx.Err() != nil || len(found) == mostAdvice {
			break
		}
		if done[c.knob] {
			continue
		}
		a, err := st.try(s, v, &c, base)
		if err != nil {
			return nil, err
		}
		if a != nil {
			done[c.knob] = true
			found = append(found, *a)
		}
	}
	return found, nil
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

// try runs one candidate until its verdict is clear; nil when it does not pass.
func (st *study) try(s *scenario.Scenario, v *scenario.Variant, c *candidate, base []float64) (*Advice, error) {
	changed, w := c.change(s, v)
	expected := expectations(s, v)
	look := func(_ int, r *engine.Record) outcome {
		o := outcome{events: r.Events, before: goodputAll(r)}
		for i := range expected {
			o.values = append(o.values, r.Value(&expected[i]))
		}
		return o
	}
	var all []outcome
	for _, upTo := range append([]int{screenRuns}, expect.Checkpoints(st.options.Runs)...) {
		if upTo <= len(all) {
			continue
		}
		more, err := st.batch(changed, w, len(all), upTo-len(all), false, look)
		if err != nil || len(more) < upTo-len(all) {
			return nil, err
		}
		all = append(all, more...)
		if len(all) <= screenRuns && costs(all, base) {
			return nil, nil
		}
		verdict, held := Pass, 1.0
		for i, t := range tallies(expected, all) {
			verdict = worse(verdict, expected[i].Judge(t).Verdict.String())
			held = min(held, float64(t.Held)/float64(t.Runs))
		}
		switch {
		case verdict == Pass:
			return &Advice{Change: c.text, YAML: c.yaml, Step: c.step, Verdict: Pass, Runs: len(all), Held: held}, nil
		case verdict == Fail, len(all) == screenRuns && held < 1:
			return nil, nil
		}
	}
	return nil, nil
}

// answered is the goodput of the first runs of a variant as it is.
func (st *study) answered(s *scenario.Scenario, v *scenario.Variant) ([]float64, error) {
	runs, err := st.batch(s, v, 0, screenRuns, false, func(_ int, r *engine.Record) outcome {
		return outcome{before: goodputAll(r), events: r.Events}
	})
	if err != nil || len(runs) < screenRuns {
		return nil, err
	}
	return column(runs, func(o *outcome) float64 { return o.before }), nil
}

func goodputAll(r *engine.Record) float64 {
	return r.Value(&expect.Expectation{Measure: "goodput"})
}

// costs reports a change that passes because fewer requests are answered: with the same random numbers, a tenth
// of all requests or more.
func costs(all []outcome, base []float64) bool {
	var now, before float64
	for i := range base {
		now += all[i].before
		before += base[i]
	}
	return now < before-0.1*float64(len(base))
}

// candidates are the changes worth trying: to the policies of calls and to the queues of services.
func candidates(s *scenario.Scenario, v *scenario.Variant) []candidate {
	var list []candidate
	seen := map[string]bool{}
	edges(s, v, func(caller string, c *scenario.Call) {
		if !seen[c.To] {
			seen[c.To] = true
			list = append(list, policyCandidates(v.PolicyOf(caller, c.To).Policy, caller, c.To, listedAs(v, caller, c.To))...)
		}
	})
	for _, x := range s.ServicesOf(v) {
		if x.Workers > 0 && !x.ServiceTime.IsZero() {
			list = append(list, queueCandidates(&x)...)
		}
	}
	return list
}

// policyCandidates are changes of one policy.
func policyCandidates(p abate.Policy, caller, callee, listed string) []candidate {
	var list []candidate
	add := func(knob, yaml, was string, step float64, change func(*abate.Policy)) {
		list = append(list, candidate{
			knob: callee + "." + knob, step: step, text: listed + ": " + yaml + " (was " + was + ")",
			yaml: "services: {" + quoted(listed) + ": {" + yaml + "}}",
			change: func(s *scenario.Scenario, v *scenario.Variant) (*scenario.Scenario, *scenario.Variant) {
				return withPolicy(s, v, caller, callee, change)
			},
		})
	}
	for n := p.MaxRetries - 1; n >= 0; n-- {
		add("maxRetries", fmt.Sprintf("maxRetries: %d", n), fmt.Sprint(p.MaxRetries),
			math.Log2(float64(p.MaxRetries+1)/float64(n+1)), func(p *abate.Policy) {
				p.MaxRetries = n
			})
	}
	on := func(disabled bool) string { // a part that is switched off has to be switched on, too
		if disabled {
			return "disabled: false, "
		}
		return ""
	}
	if !p.RetryBudget.Enabled() && p.MaxRetries > 0 {
		for _, ratio := range []float64{0.2, 0.1} {
			add("retryBudget", fmt.Sprintf("retryBudget: {%sratio: %v}", on(p.RetryBudget.Disabled), ratio), "off",
				1+math.Log2(0.2/ratio)/4, func(p *abate.Policy) {
					p.RetryBudget = budget.Config{Kind: budget.Ratio, Ratio: ratio, Reserve: 10}
				})
		}
	}
	if !p.CircuitBreaker.Enabled() {
		add("circuitBreaker", "circuitBreaker: {"+on(p.CircuitBreaker.Disabled)+"failureRateThreshold: 0.5, rampUp: 2s}",
			"off", 1.5, func(p *abate.Policy) {
				p.CircuitBreaker = breaker.Config{FailureRateThreshold: 0.5, RampUp: 2 * time.Second}
			})
	}
	if t := p.AttemptTimeout; t > 0 {
		for _, factor := range []float64{2, 0.5, 4, 0.25} {
			other := time.Duration(float64(t) * factor).Round(time.Millisecond)
			if other == 0 || other == t {
				continue
			}
			add("attemptTimeout", "attemptTimeout: "+other.String(), t.String(), math.Abs(math.Log2(factor)),
				func(p *abate.Policy) {
					p.AttemptTimeout = other
				})
		}
	}
	if p.MaxRetries > 0 && (p.Backoff == retry.FixedBackoff || p.Backoff == retry.NoBackoff ||
		p.Jitter == retry.NoJitter) {
		add("backoff", "backoff: exponential, jitter: full", fmt.Sprintf("%s, %s", p.Backoff, p.Jitter),
			1, func(p *abate.Policy) {
				p.Backoff, p.Jitter, p.Multiplier = retry.ExponentialBackoff, retry.FullJitter, 2
			})
	}
	return list
}

// queueCandidates are changes of one service's queue.
func queueCandidates(x *scenario.Service) []candidate {
	var list []candidate
	name := x.Name
	add := func(knob, yaml, was string, step float64, change func(*scenario.Queue)) {
		list = append(list, candidate{
			knob: name + "." + knob, step: step, text: name + ": queue " + yaml + " (was " + was + ")",
			yaml: "services: {" + quoted(name) + ": {queue: {" + yaml + "}}}",
			change: func(s *scenario.Scenario, v *scenario.Variant) (*scenario.Scenario, *scenario.Variant) {
				return withService(s, v, name, func(x *scenario.Service) { change(&x.Queue) })
			},
		})
	}
	was, bound := "unbounded", time.Duration(0)
	switch q := x.Queue; {
	case q.None:
		return nil
	case q.Limit > 0:
		was = fmt.Sprintf("limit: %d", q.Limit)
		bound = time.Duration(float64(q.Limit) / (x.Capacity() / float64(max(x.Replicas, 1))) * float64(time.Second))
	case q.Work > 0:
		was, bound = "work: "+q.Work.String(), q.Work
	}
	for _, d := range []time.Duration{
		time.Second, 500 * time.Millisecond, 250 * time.Millisecond, 100 * time.Millisecond,
	} {
		if d > x.ServiceTime.Mean()/2 && (bound == 0 || d < bound) {
			step := 2 + math.Log2(float64(time.Second)/float64(d))
			if bound > 0 {
				step = math.Log2(float64(bound) / float64(d))
			}
			add("queue", "work: "+d.String(), was, step, func(q *scenario.Queue) { q.Limit, q.Work = 0, d })
		}
	}
	if x.Queue.Order == "" || x.Queue.Order == scenario.FIFO {
		add("order", "order: codel", "fifo", 2, func(q *scenario.Queue) { q.Order = scenario.CoDel })
	}
	if !x.Queue.DropExpired {
		add("dropExpired", "dropExpired: true", "false", 1.5, func(q *scenario.Queue) { q.DropExpired = true })
	}
	return list
}

// quoted writes a name so that YAML reads it as text.
func quoted(name string) string {
	if strings.ContainsAny(name, ":{}[],&*#?|<>=!%@\\ \"'") {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// neverOpens says so of a breaker whose window holds too few calls, even if each is tried as often as it may be and
// four standard deviations more come than on average.
func neverOpens(p *abate.Policy, rate float64) string {
	b := p.CircuitBreaker.WithDefaults()
	window := b.SlidingWindow.Duration.Seconds()
	if !b.Enabled() || b.Kind == breaker.Adaptive || b.FailureThreshold > 0 || window == 0 || b.Fleet {
		return ""
	}
	calls, attempts := rate*window, float64(1+p.MaxRetries)
	if (calls+4*math.Sqrt(calls))*attempts >= float64(b.MinimumNumberOfCalls) {
		return ""
	}
	return fmt.Sprintf("the circuit will not open: it wants %d calls in %v, and an instance makes about %s, retries "+
		"included; use kind: adaptive, a failureThreshold or a smaller minimumNumberOfCalls", b.MinimumNumberOfCalls,
		b.SlidingWindow, number(calls*attempts))
}

// muchReserve says so of retry budgets whose reserves together are more than ten seconds of what the service can do:
// they bound nothing.
func muchReserve(p *abate.Policy, instances, capacity float64) string {
	b := p.RetryBudget.WithDefaults()
	reserve := b.Reserve
	if b.Kind == budget.Tokens {
		reserve = b.MaxTokens / b.CostPerRetry
	}
	each := math.Floor(reserve / float64(max(b.Clients, 1)))
	work := instances * each / capacity
	if p.MaxRetries == 0 || !b.Enabled() || b.Fleet || !(work > 10) || math.IsInf(work, 1) {
		return ""
	}
	return fmt.Sprintf("the retry budget bounds little: %s instances may spend a reserve of %s each, %s retries at once "+
		"or %s s of what the service can do; say how many there are with retryBudget.clients", number(instances),
		number(each), number(instances*each), number(work))
}
