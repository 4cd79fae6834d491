package metrics

import (
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/shed"
)

// arrivals are the metrics of gates that count while things happen.
type arrivals struct {
	allowed, rejected, shed                    *series.Counters
	admitted, refused, shadow, overLimit, done *series.Counters
	keys                                       *series.Counters
	arrived, turnedAway                        *series.Counters // what alerts read: all, and shed ones
	critical, criticalShed                     *series.Counters // the same of what is CRITICAL
	delay, duration                            *series.Histograms
}

// all lists them for the registry.
func (v *arrivals) all() []series.Collector {
	return []series.Collector{
		v.allowed, v.rejected, v.shed, v.admitted, v.refused, v.shadow, v.overLimit, v.done, v.keys, v.delay, v.duration,
		v.arrived, v.turnedAway, v.critical, v.criticalShed,
	}
}

func newArrivals() arrivals {
	v := arrivals{
		allowed: counter("abate_rate_limit_allowed_total",
			"Arriving requests that the rate limit let pass. Next to abate_rate_limit_rejected_total this is how close callers "+
				"are to the limit."),
		rejected: counter("abate_rate_limit_rejected_total",
			"Arriving requests that the rate limit refused with 429. If it grows and the service has room to spare, the limit "+
				"is too low; if one caller makes most of it, talk to that one."),
		shed: counter("abate_shed_total",
			"Arriving requests refused with 503 because the service could not do them, by why and by how much they mattered. "+
				"If CRITICAL ones are among them the service is too small for its load: add instances. cpu and queue-delay mean "+
				"that it is busy, expired that its callers had given up already, attempt that retries make it worse.",
			"reason", "priority"),
		admitted: counter("abate_requests_admitted_total",
			"Arriving requests that the service got, by how much they matter. This is what it really does: while callers "+
				"offer more, it should stay where it is.", "priority"),
		refused: counter("abate_requests_refused_total",
			"Arriving requests that the service never saw. rate_limited: see abate_rate_limit_rejected_total; overloaded and "+
				"deadline: see abate_shed_total; caller_left: they did not wait.", "reason"),
		shadow: counter("abate_shed_shadow_total",
			"Arriving requests that shedding would have refused but for its shadow mode. If they are the right ones, take "+
				"shadow away.", "reason"),
		overLimit: counter("abate_rate_limit_shadow_total",
			"Arriving requests that the rate limit would have refused but for its shadow mode. If they are the right ones, "+
				"take shadow away."),
		done: counter("abate_requests_done_total",
			"Admitted requests by how they ended. overload means that something below the service refused: look there.",
			"class"),
		keys: counter("abate_idempotency_total",
			"Requests with an idempotency key. run and taken-over were done, replay got the answer of the first; mismatch and "+
				"missing are faults of callers; at full give the store more room, at away look at Redis or the disk; at "+
				"unrecorded an answer was held back until that is there again.", "result"),
		delay: histogram("abate_queue_delay_seconds",
			"How long admitted requests waited at the gate. If it is near queueTarget for long, the service is slower than "+
				"its load asks for: look at its latency first.",
			[]float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}),
		duration: histogram("abate_request_duration_seconds",
			"How long the service took for admitted requests, the wait at the gate left out. If it grows with the load, the "+
				"concurrency limit is too high.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}),
	}
	v.sums()
	return v
}

// sums makes the counters that add up others, for alerts.
func (v *arrivals) sums() {
	v.arrived = counter("abate_requests_arrived_total",
		"Requests that have arrived, let in or not.")
	v.turnedAway = counter("abate_requests_shed_total",
		"Arriving requests refused because the service could not do them. Which and why is counted by reason and priority "+
			"too; if CRITICAL ones are among them, add instances.")
	v.critical = counter("abate_critical_requests_arrived_total",
		"Requests of priority CRITICAL or CRITICAL_PLUS that were let in or shed.")
	v.criticalShed = counter("abate_critical_requests_shed_total",
		"Requests of priority CRITICAL or CRITICAL_PLUS that were shed. Any of them says that the service is too small for "+
			"its load: add instances.")
}

// observer resolves the handles of a gate. All its series are there from then on, at zero.
func (v *arrivals) observer(service string) *gateObserver {
	o := &gateObserver{
		allowed:   v.allowed.With(service),
		rejected:  v.rejected.With(service),
		overLimit: v.overLimit.With(service),
		delay:     v.delay.With(service),
		duration:  v.duration.With(service),

		arrived:      v.arrived.With(service),
		turnedAway:   v.turnedAway.With(service),
		critical:     v.critical.With(service),
		criticalShed: v.criticalShed.With(service),
	}
	for i, p := range shed.Priorities {
		o.admitted[i] = v.admitted.With(service, p.String())
		for j, reason := range shed.Reasons {
			o.shed[j][i] = v.shed.With(service, reason.String(), p.String())
		}
	}
	for i, reason := range shed.Reasons {
		o.shadow[i] = v.shadow.With(service, reason.String())
	}
	for i, r := range refusals {
		o.refused[i] = v.refused.With(service, r.name)
	}
	for i, class := range classes {
		o.done[i] = v.done.With(service, class.String())
	}
	for i, result := range keyResults {
		o.keys[i] = v.keys.With(service, result)
	}
	o.noticed = o.watches()
	return o
}

func gateDescs() []*series.Desc {
	return []*series.Desc{keysDesc, maxKeysDesc, keyBytesDesc, maxKeyBytesDesc, retentionDesc, heldDesc, forgottenDesc}
}

// collectGate reads a gate. What its protection has switched off is left out.
func collectGate(send func(series.Sample), service string, g *inbound.Gate) {
	p, state := g.Describe(), g.State()
	collectPolicies(send, service, registry.Gate[:], gatePolicyDescs, p, &state)
	collectThresholds(send, service, gateThresholds, p)
	if u, ok := g.KeysUsage(); ok {
		collectKeys(send, service, u, p.Idempotency.Retention)
	}
}
