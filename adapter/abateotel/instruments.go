package abateotel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are the metrics that count while things happen.
type instruments struct {
	duration, delay                            metric.Float64Histogram
	attempts, retries, hedges, denials, hidden metric.Int64Counter
	fallbacks, changes, transitions            metric.Int64Counter
}

// seconds are the buckets that the semantic conventions ask for in durations of requests.
var seconds = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

// make makes all of them. The error names those that could not be made.
func (i *instruments) make(m metric.Meter) error {
	var failed []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return c
	}
	histogram := func(name, description string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(seconds...))
		failed = append(failed, err)
		return h
	}
	i.duration = histogram("abate.client.call.duration",
		"How long guarded calls took until they had their answer, all attempts and the waits between them included.")
	i.delay = histogram("abate.client.retry.delay", "How long calls wait before a retry.")
	i.attempts = counter("abate.client.attempts", "{attempt}",
		"Attempts by what they came to: the service's own health, before retries hide it.")
	i.retries = counter("abate.client.retries", "{attempt}", "Attempts sent after a failed one of the same call.")
	i.hedges = counter("abate.client.hedges", "{attempt}", "Second copies sent because the first was slow.")
	i.denials = counter("abate.client.hedge.denials", "{attempt}", "Second copies that were due and not sent.")
	i.hidden = counter("abate.client.hidden_retries", "{attempt}",
		"Attempts that something below the guard repeated by itself on a dead connection.")
	i.fallbacks = counter("abate.client.fallbacks", "{call}", "Callers that got the fallback instead of an error.")
	i.changes = counter("abate.policy.changes", "{change}", "Policies put in force after the first.")
	i.transitions = counter("abate.circuit_breaker.transitions", "{transition}",
		"Changes of the circuit breaker's state, by the new one.")
	return errors.Join(failed...)
}
