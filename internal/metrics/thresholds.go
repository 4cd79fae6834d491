package metrics

import (
	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/breaker"
)

// threshold is a number of a policy or protection P that alerts compare with, so that the rules are the same for every
// policy. It is shown only where there is such a number: an alert that joins one leaves the others alone.
type threshold[P any] struct {
	desc *series.Desc
	of   func(*P) (v float64, shown bool)
}

var guardThresholds = []threshold[abate.Policy]{
	{gauge("abate_policy_max_extra_attempts",
		"Retries and hedges that the policy allows for one call at most. The alert of a retry storm begins half-way between "+
			"the budget and this: see RequestAmplification."),
		func(p *abate.Policy) (float64, bool) { return float64(p.MaxExtraAttempts()), true }},
	{gauge("abate_policy_retry_budget_ratio",
		"Extra attempts that the retry budget allows for each first attempt, in the long run and at best. Not shown without "+
			"a budget: give the policy one, nothing else bounds retries."),
		func(p *abate.Policy) (float64, bool) {
			a, on := p.Allowance()
			return a.Ratio, on
		}},
	{gauge("abate_policy_retry_budget_failing_ratio",
		"The same while half of the attempts fail. HighRetryRate begins at 80 % of it. Not shown where first attempts earn "+
			"none then; no action."),
		func(p *abate.Policy) (float64, bool) {
			a, _ := p.Allowance()
			return a.FailingRatio, a.FailingRatio > 0
		}},
	{gauge("abate_policy_retry_budget_per_second",
		"Extra attempts that time alone earns, in each second, all clients together. Not shown where time earns none; no "+
			"action."),
		func(p *abate.Policy) (float64, bool) {
			a, _ := p.Allowance()
			return a.PerSecond, a.PerSecond > 0
		}},
	{gauge("abate_policy_retry_budget_reserve",
		"Extra attempts that the retry budget allows beyond all that, once, all clients together. Alerts forgive so many in "+
			"a minute, at least 10 and at most 100."),
		func(p *abate.Policy) (float64, bool) {
			a, on := p.Allowance()
			return a.Reserve, on
		}},
	{gauge("abate_policy_circuit_breaker_max_wait_seconds",
		"How long an open circuit waits at most before it probes again; 0 where it goes by what it learns. "+
			"CircuitBreakerOpen comes after two such waits. Not shown where no circuit refuses anything, or where the policy "+
			"forces it open."),
		longestWait},
	{gauge("abate_policy_circuit_breaker_forced_open",
		"1 where the policy forces the circuit open: every call is refused until the policy says something else. Take it "+
			"back when the reason is over."),
		func(p *abate.Policy) (float64, bool) {
			return 1, p.CircuitBreaker.Enabled() && p.CircuitBreaker.Mode == breaker.ForcedOpen
		}},
	{gauge("abate_policy_fallback",
		"1 where callers get a fallback when the service fails: alerts that would wake somebody are tickets then."),
		func(p *abate.Policy) (float64, bool) { return 1, p.Fallback.Enabled() }},
	{gauge("abate_policy_pacing_max_wait_seconds",
		"How long a connection may wait for its token before it is refused. ConnectionsHeldBack begins at 90 % of it. Not "+
			"shown of an adaptive pace, which holds nobody back while all is well."),
		func(p *abate.Policy) (float64, bool) {
			pace := p.Pacing.WithDefaults()
			return pace.MaxWait.Seconds(), pace.Enabled() && !pace.Adapts()
		}},
}

var gateThresholds = []threshold[inbound.Protection]{
	{gauge("abate_policy_shed_max_retry_share",
		"Retries for each first attempt above which answers ask callers to stop. ArrivingRetries begins there. Compare "+
			"abate_arriving_retry_ratio."),
		maxRetryShare},
}

// longestWait returns how long an open circuit of p waits at most, in seconds, and whether one refuses anything.
func longestWait(p *abate.Policy) (seconds float64, shown bool) {
	b := p.CircuitBreaker.WithDefaults()
	return b.MaxWaitDurationInOpenState.Seconds(), b.Enabled() && b.Mode != breaker.Shadow && b.Mode != breaker.ForcedOpen
}

// maxRetryShare returns the share of retries above which a gate of p asks callers to stop, and whether it sheds.
func maxRetryShare(p *inbound.Protection) (share float64, shown bool) {
	return p.Shed.WithDefaults().MaxRetryShare, p.Shed.Enabled()
}

// noticeArriving shows the retries that arrive at a gate, while there are any.
func noticeArriving(send func(series.Sample), service string, o *gateObserver, g *inbound.Gate) {
	p, state := g.Describe(), g.State()
	if limit, sheds := maxRetryShare(p); sheds && state.Shed.RetryShare > 0 {
		send(value(arrivingNoticedDesc, service, state.Shed.RetryShare))
		noticeTotal(send, service, "arrivals", o.arrived)
		showLimit(send, service, "max_retry_share", limit)
	}
}

// collectThresholds shows the numbers of a policy.
func collectThresholds[P any](send func(series.Sample), service string, all []threshold[P], p *P) {
	for _, one := range all {
		if v, shown := one.of(p); shown {
			send(value(one.desc, service, v))
		}
	}
}

// thresholdDescs names them.
func thresholdDescs() (all []*series.Desc) {
	for _, t := range guardThresholds {
		all = append(all, t.desc)
	}
	for _, t := range gateThresholds {
		all = append(all, t.desc)
	}
	return all
}
