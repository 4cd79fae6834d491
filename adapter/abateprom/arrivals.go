package abateprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

// arrivals are the metrics of gates that count while things happen.
type arrivals struct {
	allowed, rejected, shed                    *prometheus.CounterVec
	admitted, refused, shadow, overLimit, done *prometheus.CounterVec
	keys                                       *prometheus.CounterVec
	delay, duration                            *prometheus.HistogramVec
}

func newArrivals(all *counting) arrivals {
	return arrivals{
		allowed: all.counter("rate_limit_allowed_total",
			"Arriving requests that the rate limit let pass. Next to rate_limit_rejected_total this is how close callers are "+
				"to the limit."),
		rejected: all.counter("rate_limit_rejected_total",
			"Arriving requests that the rate limit refused with 429. If it grows and the service has room to spare, the limit "+
				"is too low; if one caller makes most of it, talk to that one."),
		shed: all.counter("shed_total",
			"Arriving requests refused with 503 because the service could not do them, by why and by how much they mattered. "+
				"If CRITICAL ones are among them the service is too small for its load: add instances. cpu and queue-delay mean "+
				"that it is busy, expired that its callers had given up already, attempt that retries make it worse.",
			"reason", "priority"),
		admitted: all.counter("abate_requests_admitted_total",
			"Arriving requests that the service got, by how much they matter. This is what it really does: while callers "+
				"offer more, it should stay where it is.", "priority"),
		refused: all.counter("abate_requests_refused_total",
			"Arriving requests that the service never saw. rate_limited: see rate_limit_rejected_total; overloaded and "+
				"deadline: see shed_total; caller_left: they did not wait.", "reason"),
		shadow: all.counter("abate_shed_shadow_total",
			"Arriving requests that shedding would have refused but for its shadow mode. If they are the right ones, take "+
				"shadow away.", "reason"),
		overLimit: all.counter("abate_rate_limit_shadow_total",
			"Arriving requests that the rate limit would have refused but for its shadow mode. If they are the right ones, "+
				"take shadow away."),
		done: all.counter("abate_requests_done_total",
			"Admitted requests by how they ended. overload means that something below the service refused: look there.",
			"class"),
		keys: all.counter("abate_idempotency_total",
			"Requests with an idempotency key. run and taken-over were done, replay got the answer of the first; mismatch and "+
				"missing are faults of callers; at full give the store more room, at away look at Redis or the disk; at "+
				"unrecorded an answer was held back until that is there again.", "result"),
		delay: all.histogram("abate_queue_delay_seconds",
			"How long admitted requests waited at the gate. If it is near queueTarget for long, the service is slower than "+
				"its load asks for: look at its latency first.",
			[]float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}),
		duration: all.histogram("abate_request_duration_seconds",
			"How long the service took for admitted requests, the wait at the gate left out. If it grows with the load, the "+
				"concurrency limit is too high.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}),
	}
}

// observer resolves the handles of a gate. All its series are there from then on, at zero.
func (v *arrivals) observer(service string) *gateObserver {
	o := &gateObserver{
		allowed:   v.allowed.WithLabelValues(service),
		rejected:  v.rejected.WithLabelValues(service),
		overLimit: v.overLimit.WithLabelValues(service),
		delay:     v.delay.WithLabelValues(service),
		duration:  v.duration.WithLabelValues(service),
	}
	for i, p := range shed.Priorities {
		o.admitted[i] = v.admitted.WithLabelValues(service, p.String())
		for j, reason := range shed.Reasons {
			o.shed[j][i] = v.shed.WithLabelValues(service, reason.String(), p.String())
		}
	}
	for i, reason := range shed.Reasons {
		o.shadow[i] = v.shadow.WithLabelValues(service, reason.String())
	}
	for i, r := range refusals {
		o.refused[i] = v.refused.WithLabelValues(service, r.name)
	}
	for i, class := range classes {
		o.done[i] = v.done.WithLabelValues(service, class.String())
	}
	for i, result := range keyResults {
		o.keys[i] = v.keys.WithLabelValues(service, result)
	}
	return o
}

var (
	concurrencyLimitDesc = gauge("abate_concurrency_limit",
		"How many requests the service may do at once. An adaptive limit that sinks and stays low says that the service, "+
			"or what it calls, has become slow.")
	concurrencyRunningDesc = gauge("abate_concurrency_running",
		"Admitted requests that the service is doing now. At abate_concurrency_limit, see abate_concurrency_queued.")
	concurrencyQueuedDesc = gauge("abate_concurrency_queued",
		"Arriving requests that wait for a place. Above 0 for long means that the service cannot keep up: see shed_total.")
	cpuDesc = gauge("abate_shed_cpu_ratio", "Share of the processor time in use, as shedding sees it. Above the "+
		"protection's cpu requests are refused.")
	retryShareDesc = gauge("abate_arriving_retry_ratio",
		"Retries among arriving requests to first attempts. Above maxRetryShare, from 20 requests in ten seconds on, "+
			"answers say not to retry: a storm is under way, whatever its cause.")
	bucketsDesc = gauge("abate_rate_limit_keys", "Buckets that the rate limit keeps now. At maxKeys new keys share one "+
		"bucket: raise it, or choose a coarser key.")
	sharedDesc = gauge("abate_rate_limit_shared_total",
		"Requests that found no place for a bucket of their own and shared one. If it grows, raise maxKeys or choose a "+
			"coarser key.")
)

// collectGate reads a gate. What its protection has switched off is left out.
func collectGate(to chan<- prometheus.Metric, service string, g *inbound.Gate) {
	p, state := g.Describe(), g.State()
	if p.Shed.Enabled() {
		to <- value(retryShareDesc, service, state.Shed.RetryShare)
		if p.Shed.Concurrency != "" {
			to <- value(concurrencyLimitDesc, service, float64(state.Shed.Limit))
			to <- value(concurrencyRunningDesc, service, float64(state.Shed.InFlight))
			to <- value(concurrencyQueuedDesc, service, float64(state.Shed.Queued))
		}
		if p.Shed.CPU > 0 {
			to <- value(cpuDesc, service, state.Shed.CPU)
		}
	}
	if p.RateLimit.Enabled() && p.Fleet == nil {
		to <- value(bucketsDesc, service, float64(state.RateLimit.Keys))
		to <- prometheus.MustNewConstMetric(sharedDesc, prometheus.CounterValue, float64(state.RateLimit.Shared), service)
	}
	if u, ok := g.KeysUsage(); ok {
		collectKeys(to, service, u, p.Idempotency.Retention)
	}
}
