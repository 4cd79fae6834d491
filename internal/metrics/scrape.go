package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/breaker"
)

// The gauges are read when somebody scrapes, so that they cannot be stale.
var (
	concurrentDesc = gauge("abate_http_client_concurrent_requests",
		"Requests in the air now. If it climbs while requests per second do not, the service has become slow and callers "+
			"pile up: a bulkhead bounds that.")
	breakerDesc = gauge("abate_circuit_breaker_state",
		"The circuit breaker: 0 closed, 1 half-open or ramping up, 2 open. At 2 calls are refused at once, and should be: "+
			"fix the service. It closes by itself when calls succeed again, and stays at 2 while there are none.")
	refusingDesc = gauge("abate_circuit_breaker_open",
		"1 while the circuit is open because of what it has seen, and keeps calls from the service. Not while somebody has "+
			"forced it open, by hand or in the policy, nor in shadow. Fix the service: it closes by itself.")
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
	overrideDesc = series.NewDesc("abate_override",
		"1 while somebody has put this above the policy of the circuit breaker by hand: forcedOpen refuses every call, "+
			"disabled and shadow refuse none. It outlives reloads of the policy: take it "+
			"back when the emergency is over.", withService([]string{"override"})...)
)

// The gauges of the policies of guards and gates.
var (
	guardDescs      = descsOf(registry.Guard[:])
	gatePolicyDescs = descsOf(registry.Gate[:])
)

// descsOf returns the descriptions of the gauges of each policy.
func descsOf[P, S any](policies []registry.Policy[P, S]) [][]*series.Desc {
	all := make([][]*series.Desc, len(policies))
	for i, p := range policies {
		for _, g := range p.Gauges {
			all[i] = append(all[i], gauge(g.Name, g.Help))
		}
	}
	return all
}

// collectPolicies reads the gauges of the policies that p has switched on. An empty budget that is off would raise an
// alert.
func collectPolicies[P, S any](send func(series.Sample), service string, policies []registry.Policy[P, S],
	descs [][]*series.Desc, p *P, s *S) {
	for i := range policies {
		if !policies[i].Enabled(p) {
			continue
		}
		for n, g := range policies[i].Gauges {
			sample := series.Gauge
			if g.Grows {
				sample = series.Count
			}
			if g.Shown == nil || g.Shown(p) {
				send(sample(descs[i][n], g.Read(p, s), service))
			}
		}
	}
}

func gauge(name, help string) *series.Desc {
	return series.NewDesc(name, help, withService(nil)...)
}

// Describe names all metrics: Metrics is a series.Collector.
func (m *Metrics) Describe(send func(*series.Desc)) {
	for _, v := range m.counting() {
		v.Describe(send)
	}
	for _, d := range append(append(gateDescs(), kafkaDescs()...), concurrentDesc, breakerDesc, refusingDesc, activeDesc,
		callsRunningDesc, attemptsRunningDesc, amplificationDesc, overrideDesc, noticedTotalDesc, circuitNoticedDesc,
		overrideNoticedDesc, policyNoticedDesc, arrivingNoticedDesc) {
		send(d)
	}
	for _, d := range m.plain {
		send(d)
	}
	for _, d := range append(slices.Concat(slices.Concat(guardDescs, gatePolicyDescs)...), thresholdDescs()...) {
		send(d)
	}
}

// counting lists the metrics that count while things happen.
func (m *Metrics) counting() []series.Collector {
	return slices.Concat(m.vectors.all(), m.arrivals.all(), m.redis.all(), m.grpc.all(), m.kafka.all())
}

// Collect reads all metrics.
func (m *Metrics) Collect(send func(series.Sample)) {
	send = m.doubled(send)
	m.kafka.collect(send) // first: it may make the counters of topics that nothing has come from yet
	for _, v := range m.counting() {
		v.Collect(send)
	}
	m.mu.RLock() // not while sending: a slow scrape must not make requests wait
	concurrent, observers, guards, gates := maps.Clone(m.concurrent), maps.Clone(m.observers), maps.Clone(m.guards),
		maps.Clone(m.gates)
	m.mu.RUnlock()
	for service, running := range concurrent {
		send(value(concurrentDesc, service, float64(running.Load())))
	}
	for service, o := range observers {
		send(value(activeDesc, service, float64(o.active.Load())))
		send(value(callsRunningDesc, service, float64(o.calling.Load())))
		send(value(attemptsRunningDesc, service, float64(o.inAir.Load())))
		send(value(amplificationDesc, service, o.sent.ratio()))
	}
	for service, g := range guards {
		collectState(send, service, g)
	}
	for service, g := range gates {
		collectGate(send, service, g)
	}
	m.collectNoticed(send, time.Now())
}

// collectState reads a guard. What its policy has switched off is left out: an empty budget would raise an alert.
func collectState(send func(series.Sample), service string, g *abate.Guard) {
	policy, state := g.Describe(), g.State()
	send(value(breakerDesc, service, breakerLevel(state.Breaker.State)))
	open := refusing(policy, &state)
	send(value(refusingDesc, service, oneIf(open)))
	noticeState(send, service, open, state.Override)
	for _, o := range overrides {
		send(series.Gauge(overrideDesc, oneIf(state.Override == o),
			service, string(o)))
	}
	collectPolicies(send, service, registry.Guard[:], guardDescs, policy, &state)
	collectThresholds(send, service, guardThresholds, policy)
}

// refusing reports whether the circuit keeps calls from the service because of what it has seen.
func refusing(p *abate.Policy, state *abate.State) bool {
	mode := p.CircuitBreaker.Mode
	return state.Breaker.State == breaker.Open && state.Override == "" && p.CircuitBreaker.Enabled() &&
		mode != breaker.Shadow && mode != breaker.ForcedOpen
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

func value(desc *series.Desc, service string, v float64) series.Sample {
	return series.Gauge(desc, v, service)
}
