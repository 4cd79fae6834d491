package abateprom

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
)

// The gauges are read when somebody scrapes, so that they cannot be stale.
var (
	concurrentDesc = gauge("http_client_concurrent_requests",
		"Requests in the air now. If it climbs while requests per second do not, the service has become slow and callers "+
			"pile up: a bulkhead bounds that.")
	breakerDesc = gauge("circuit_breaker_state",
		"The circuit breaker: 0 closed, 1 half-open or ramping up, 2 open. At 2 calls are refused at once, and should be: "+
			"fix the service. It closes by itself when calls succeed again, and stays at 2 while there are none.")
	balanceDesc = gauge("abate_retry_budget_balance",
		"Retries and hedges that could be sent now. Near 0 the budget holds back a storm: fix the service, do not raise "+
			"the budget.")
	activeDesc = gauge("abate_active_retries",
		"Calls that are now waiting for a retry or in one. High for long means that many callers wait on a service that "+
			"does not answer.")
	callsRunningDesc = gauge("abate_calls_running",
		"Calls that have begun and not ended, waits for a permit, a token or a retry included. If it climbs while calls per "+
			"second do not, callers pile up: see abate_attempts_running for whether they wait for the service, and "+
			"abate_active_retries and abate_bulkhead_queued for what else.")
	attemptsRunningDesc = gauge("abate_attempts_running",
		"Attempts that are with the service now, hedges included. If it climbs while attempts per second do not, the "+
			"service has become slow: an attemptTimeout and a bulkhead bound that.")
	amplificationDesc = gauge("abate_amplification_ratio",
		"Attempts sent for each call over the last minute, hedges and hidden retries included; 1 is no extra load. If it "+
			"exceeds 1 + the retryBudget ratio for minutes, and calls are more than the few that the budget's reserve allows "+
			"for, something retries outside the budget: see abate_hidden_retries_total, and whether there is one.")
	runningDesc = gauge("abate_bulkhead_running", "Calls that hold a permit of the bulkhead, retries and their waits "+
		"included. At abate_bulkhead_limit, see abate_bulkhead_queued.")
	queuedDesc = gauge("abate_bulkhead_queued", "Calls that wait for a permit. Above 0 for long means that the "+
		"service is slower than its load asks for: look at its latency first.")
	limitDesc    = gauge("abate_bulkhead_limit", "Permits that the bulkhead has, as the policy says.")
	throttleDesc = gauge("abate_throttle_rejection_ratio",
		"Share of attempts that the throttle refuses to send now. Above 0 the service refuses or fails more than the "+
			"throttle's k allows for: fix the service.")
	rateDesc = gauge("abate_attempt_rate_limit", "Attempts per second that the rate limit sends at most, as the policy "+
		"says. Refusals are in abate_call_refusals_total as rate_limited.")
	paceDesc = gauge("abate_pacing_per_second",
		"Attempts per second that the pacing sends at most now, in this process. Below perSecond of the policy it still "+
			"ramps up after an outage; no action.")
	turnDesc = gauge("abate_pacing_wait_seconds",
		"How long an attempt that asked now would wait for its token. Near maxWait of the pacing attempts are refused as "+
			"rate_limited: after an outage that ends by itself, on other days perSecond is too low.")
	overrideDesc = desc("abate_override",
		"1 while somebody has put this above the policy of the circuit breaker by hand: forcedOpen refuses every call, "+
			"disabled and shadow refuse none. It outlives reloads of the policy: take it "+
			"back when the emergency is over.", "service", "override")
)

// described are the metrics that are read when somebody scrapes, as they were made.
var described []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	described = append(described, d)
	return d
}

func gauge(name, help string) *prometheus.Desc { return desc(name, help, "service") }

// scrape is Metrics as the registry sees it: one collector, so that all of it is registered or nothing.
type scrape struct{ *Metrics }

// Describe names all metrics.
func (s scrape) Describe(to chan<- *prometheus.Desc) {
	for _, v := range s.counting {
		v.Describe(to)
	}
	for _, d := range described {
		to <- d
	}
}

// Collect reads all metrics.
func (s scrape) Collect(to chan<- prometheus.Metric) {
	s.kafka.collect(to) // first: it may make the counters of topics that nothing has come from yet
	for _, v := range s.counting {
		v.Collect(to)
	}
	s.mu.RLock() // not while sending: a slow scrape must not make requests wait
	concurrent, observers, guards, gates := maps.Clone(s.concurrent), maps.Clone(s.observers), maps.Clone(s.guards),
		maps.Clone(s.gates)
	s.mu.RUnlock()
	for service, running := range concurrent {
		to <- value(concurrentDesc, service, float64(running.Load()))
	}
	for service, o := range observers {
		to <- value(activeDesc, service, float64(o.active.Load()))
		to <- value(callsRunningDesc, service, float64(o.calling.Load()))
		to <- value(attemptsRunningDesc, service, float64(o.inAir.Load()))
		to <- value(amplificationDesc, service, o.sent.ratio())
	}
	for service, g := range guards {
		collectState(to, service, g)
	}
	for service, g := range gates {
		collectGate(to, service, g)
	}
}

// collectState reads a guard. What its policy has switched off is left out: an empty budget would raise an alert.
func collectState(to chan<- prometheus.Metric, service string, g *abate.Guard) {
	policy, state := g.Describe(), g.State()
	to <- value(breakerDesc, service, breakerLevel(state.Breaker.State))
	for _, o := range overrides {
		to <- prometheus.MustNewConstMetric(overrideDesc, prometheus.GaugeValue, oneIf(state.Override == o),
			service, string(o))
	}
	if policy.RetryBudget.Enabled() {
		to <- value(balanceDesc, service, state.Budget)
	}
	if policy.Bulkhead.Enabled() {
		to <- value(runningDesc, service, float64(state.Bulkhead.InFlight))
		to <- value(queuedDesc, service, float64(state.Bulkhead.Queued))
		to <- value(limitDesc, service, float64(state.Bulkhead.Limit))
	}
	if policy.Throttle.Enabled() {
		to <- value(throttleDesc, service, state.Throttle.Rejection)
	}
	if policy.RateLimit.Enabled() {
		to <- value(rateDesc, service, policy.RateLimit.Limit.PerSecond())
	}
	if policy.Pacing.Enabled() {
		to <- value(paceDesc, service, state.Pacing.PerSecond)
		to <- value(turnDesc, service, state.Pacing.Wait.Seconds())
	}
}

// overrides are what a guard can be under, shown at 0 too: a dashboard marks when one begins.
var overrides = [...]abate.Override{abate.OverrideForcedOpen, abate.OverrideDisabled, abate.OverrideShadow}

// breakerLevel is the number that alerts compare with: the more, the fewer calls pass.
func breakerLevel(s breaker.State) float64 {
	switch s {
	case breaker.Closed:
		return 0
	case breaker.Open:
		return 2
	}
	return 1
}

func value(desc *prometheus.Desc, service string, v float64) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, service)
}
