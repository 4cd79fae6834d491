package abateprom

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/registry"
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
	overrideDesc = prometheus.NewDesc("abate_override",
		"1 while somebody has put this above the policy of the circuit breaker by hand: forcedOpen refuses every call, "+
			"disabled and shadow refuse none. It outlives reloads of the policy: take it "+
			"back when the emergency is over.", withService([]string{"override"}), nil)
)

// The gauges of the policies of guards and gates.
var (
	guardDescs      = descsOf(registry.Guard[:])
	gatePolicyDescs = descsOf(registry.Gate[:])
)

// descsOf returns the descriptions of the gauges of each policy.
func descsOf[P, S any](policies []registry.Policy[P, S]) [][]*prometheus.Desc {
	all := make([][]*prometheus.Desc, len(policies))
	for i, p := range policies {
		for _, g := range p.Gauges {
			all[i] = append(all[i], gauge(g.Name, g.Help))
		}
	}
	return all
}

// collectPolicies reads the gauges of the policies that p has switched on. An empty budget that is off would raise an
// alert.
func collectPolicies[P, S any](to chan<- prometheus.Metric, service string, policies []registry.Policy[P, S],
	descs [][]*prometheus.Desc, p *P, s *S) {
	for i := range policies {
		if !policies[i].Enabled(p) {
			continue
		}
		for n, g := range policies[i].Gauges {
			kind := prometheus.GaugeValue
			if g.Grows {
				kind = prometheus.CounterValue
			}
			if g.Shown == nil || g.Shown(p) {
				to <- prometheus.MustNewConstMetric(descs[i][n], kind, g.Read(p, s), service)
			}
		}
	}
}

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, withService(nil), nil)
}

// scrape is Metrics as the registry sees it: one collector, so that all of it is registered or nothing.
type scrape struct{ *Metrics }

// Describe names all metrics.
func (s scrape) Describe(to chan<- *prometheus.Desc) {
	for _, v := range s.counting() {
		v.Describe(to)
	}
	for _, d := range append(append(gateDescs(), kafkaDescs()...), concurrentDesc, breakerDesc, refusingDesc, activeDesc,
		callsRunningDesc, attemptsRunningDesc, amplificationDesc, overrideDesc, noticedTotalDesc, circuitNoticedDesc,
		overrideNoticedDesc, policyNoticedDesc, arrivingNoticedDesc) {
		to <- d
	}
	for _, d := range s.plain {
		to <- d
	}
	for _, d := range append(slices.Concat(slices.Concat(guardDescs, gatePolicyDescs)...), thresholdDescs()...) {
		to <- d
	}
}

// counting lists the metrics that count while things happen.
func (s scrape) counting() []prometheus.Collector {
	return slices.Concat(s.vectors.all(), s.arrivals.all(), s.redis.all(), s.grpc.all(), s.kafka.all())
}

// Collect reads all metrics.
func (s scrape) Collect(to chan<- prometheus.Metric) {
	to, end := s.doubled(to)
	defer end()
	s.kafka.collect(to) // first: it may make the counters of topics that nothing has come from yet
	for _, v := range s.counting() {
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
	s.collectNoticed(to, time.Now())
}

// collectState reads a guard. What its policy has switched off is left out: an empty budget would raise an alert.
func collectState(to chan<- prometheus.Metric, service string, g *abate.Guard) {
	policy, state := g.Describe(), g.State()
	to <- value(breakerDesc, service, breakerLevel(state.Breaker.State))
	open := refusing(policy, &state)
	to <- value(refusingDesc, service, oneIf(open))
	noticeState(to, service, open, state.Override)
	for _, o := range overrides {
		to <- prometheus.MustNewConstMetric(overrideDesc, prometheus.GaugeValue, oneIf(state.Override == o),
			service, string(o))
	}
	collectPolicies(to, service, registry.Guard[:], guardDescs, policy, &state)
	collectThresholds(to, service, guardThresholds, policy)
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

func value(desc *prometheus.Desc, service string, v float64) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, service)
}
