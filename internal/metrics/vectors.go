package metrics

import (
	"sync/atomic"

	"github.com/abate-go/abate/internal/series"
)

// vectors are the metrics that count while things happen.
type vectors struct {
	requests, endpointRetries, calls, attempts, retries, refusals *series.Counters
	succeeded, exhausted, hedges, denied, hidden                  *series.Counters
	transitions, fallbacks, changes                               *series.Counters
	first, extra, ended, failed                                   *series.Counters // what alerts read
	duration, delay                                               *series.Histograms
}

// all lists them for the registry.
func (v *vectors) all() []series.Collector {
	return []series.Collector{
		v.requests, v.endpointRetries, v.calls, v.attempts, v.retries, v.refusals, v.succeeded, v.exhausted, v.hedges,
		v.denied, v.hidden,
		v.transitions, v.fallbacks, v.changes, v.duration, v.delay, v.first, v.extra, v.ended, v.failed,
	}
}

func newVectors() vectors {
	v := vectors{
		requests: counter("abate_http_client_requests_total",
			"Requests that callers made, by the status they got; status 0 is no answer at all. A request that took three "+
				"attempts counts once: this is what users see. If 0 and 5xx grow, look at abate_call_refusals_total: it counts "+
				"what the policy refused; the rest failed at the service.",
			"endpoint", "status"),
		duration: histogram("abate_http_client_request_duration_seconds",
			"How long callers waited for their answer, all attempts and the waits between them included. If it grows and the "+
				"service's own latency does not, calls wait for retries (abate_active_retries) or for a permit "+
				"(abate_bulkhead_queued).",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "endpoint"),
		endpointRetries: counter("abate_http_client_retry_attempts_total",
			"Attempts sent after the first of their request, hedges included, by the attempt's number. Next to "+
				"abate_http_client_requests_total this is the extra load. If it grows, the service fails or is slow: "+
				"abate_attempts_total says which. If nothing bounds it, the policy has no retryBudget.", "endpoint", "attempt"),
		transitions: counter("abate_circuit_breaker_transitions_total",
			"State changes of the circuit breaker. Many in a row mean that the service recovers and falls again: give it a "+
				"longer rampUp, or less load.", "to"),
		calls: counter("abate_calls_total",
			"Guarded calls by how they ended: as the last attempt did, or refused before the first one. Ignored ones say "+
				"nothing about the service, such as those whose caller left. Alert on the share of failure, overload and refused.",
			"outcome"),
		attempts: counter("abate_attempts_total",
			"Attempts by what they came to. This is the service's own health, before retries hide it: if failure or overload "+
				"grows, go and look there.", "class"),
		retries: counter("abate_retries_total",
			"Attempts sent after the first of their call, hedges left out. Next to abate_attempts_total this is the share of "+
				"retries: if it grows while calls still succeed, the service begins to fail, and there is time to look. Above "+
				"0.3 for minutes a storm is under way."),
		succeeded: counter("abate_retry_success_total",
			"Calls that succeeded after at least one retry. If this falls while retries grow, retries have stopped helping: "+
				"lower maxRetries, or open the breaker."),
		exhausted: counter("abate_retry_exhausted_total",
			"Calls that failed with every attempt that maxRetries allows. The failure lasts longer than the retries do: more "+
				"of them will not help."),
		refusals: counter("abate_call_refusals_total",
			"Calls to which the policy said no, before the first attempt or instead of another one. budget_exhausted and "+
				"circuit_open are the storm being held back: fix the service, leave the policy alone. bulkhead_full: the "+
				"service is slow, or maxConcurrentCalls too small. deadline: the timeout leaves no room for retries. "+
				"tree_exhausted: another service of the chain retries, see retryOwner; no action.", "reason"),
		delay: histogram("abate_retry_delay_seconds",
			"How long calls wait before a retry. If it sits at the top, the service asks for pauses by Retry-After, or "+
				"initialDelay and maxDelay are too long for the callers' timeouts.",
			[]float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}),
	}
	v.besides()
	return v
}

// besides makes the counters of what happens beside attempts: hedges, fallbacks and changes of the policy.
func (v *vectors) besides() {
	v.hedges = counter("abate_hedges_total",
		"Second copies sent because the first was slow. If nearly every call has one, the service is slow as a whole: "+
			"hedging is then only load, switch it off.")
	v.denied = counter("abate_hedges_denied_total",
		"Second copies that were due and not sent. budget_exhausted is the bound at work; no action.", "reason")
	v.hidden = counter("abate_hidden_retries_total",
		"Attempts that something below the guard repeated by itself on a dead connection. If it is not near zero, "+
			"connections die while idle: keep the client's idle timeout below the service's.")
	v.fallbacks = counter("abate_fallbacks_total",
		"Callers that got the fallback instead of an error. They see a degraded answer: find out why in "+
			"abate_call_refusals_total and abate_attempts_total.")
	v.changes = counter("abate_policy_changes_total",
		"Changes of the policy in force. If trouble began with one, go back to the policy before it.")
	v.sums()
}

// sums makes the counters that add up others. Alerts look at all instances of a fleet every few seconds, and one series
// is read faster than five.
func (v *vectors) sums() {
	v.first = counter("abate_first_attempts_total",
		"First attempts of calls: what callers ask of the service. While it stays the same and abate_extra_attempts_total "+
			"grows, retries are the load.")
	v.extra = counter("abate_extra_attempts_total",
		"All other attempts: retries, hedges and hidden retries. Next to abate_first_attempts_total this is the "+
			"amplification; abate_retries_total, abate_hedges_total and abate_hidden_retries_total say what it is made of.")
	v.ended = counter("abate_calls_ended_total",
		"Guarded calls that have ended, however they did: abate_calls_total without its labels.")
	v.failed = counter("abate_calls_failed_total",
		"Guarded calls that ended as failure, overload or refused: what users see of an outage. abate_calls_total says "+
			"which; if most are refused, see abate_call_refusals_total.")
}

func counter(name, help string, labels ...string) *series.Counters {
	return series.NewCounters(series.NewDesc(name, help, withService(labels)...))
}

func histogram(name, help string, buckets []float64, labels ...string) *series.Histograms {
	return series.NewHistograms(series.NewDesc(name, help, withService(labels)...), buckets)
}

// withService is the labels of a metric, the service first.
func withService(labels []string) []string { return append([]string{"service"}, labels...) }

// observer resolves the handles of a service. All its series are there from then on, at zero.
func (v *vectors) observer(service string) *observer {
	o := &observer{
		retries:   v.retries.With(service),
		succeeded: v.succeeded.With(service),
		exhausted: v.exhausted.With(service),
		delay:     v.delay.With(service),
		hedges:    v.hedges.With(service),
		hidden:    v.hidden.With(service),
		fallbacks: v.fallbacks.With(service),
		changes:   v.changes.With(service),
		first:     v.first.With(service),
		extra:     v.extra.With(service),
		endedAll:  v.ended.With(service),
		failed:    v.failed.With(service),
		unsent:    new(series.Counter),
		unbidden:  new(series.Counter),
	}
	for i, class := range classes {
		o.attempts[i] = v.attempts.With(service, class.String())
		o.calls[i] = v.calls.With(service, class.String())
	}
	o.calls[refused] = v.calls.With(service, "refused")
	for i, reason := range reasons {
		o.refusals[i] = v.refusals.With(service, reason.name)
		o.denied[i] = v.denied.With(service, reason.name)
	}
	for i, state := range states {
		o.transitions[i] = v.transitions.With(service, state.String())
	}
	o.noticed = o.watches()
	return o
}

// endpoint resolves the handles of a route. The count of second attempts is there from then on, at zero.
func (v *vectors) endpoint(r route, concurrent *atomic.Int64) *Endpoint {
	e := &Endpoint{
		route:      r,
		vectors:    v,
		concurrent: concurrent,
		duration:   v.duration.With(r.service, r.endpoint),
	}
	e.firstOf(&e.retries[2], v.endpointRetries, attemptLabel(2))
	return e
}
