package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/series"
)

// Endpoint counts the requests of one route of one service. Metrics.Endpoint returns it. Its methods cost no allocation
// and no look-up, except for the first request with a status or attempt number not seen before.
type Endpoint struct {
	route      route
	vectors    *vectors
	concurrent *atomic.Int64 // of the service
	duration   *series.Histogram
	requests   [maxStatus + 2]atomic.Pointer[series.Counter] // by status; the last is for what is no status
	retries    [maxAttempt + 1]atomic.Pointer[series.Counter]
}

const (
	maxStatus  = 599
	maxAttempt = 10 // and later ones
)

// Began counts a request that arrived. It must come to Ended.
func (e *Endpoint) Began() { e.concurrent.Add(1) }

// EndedIn is Ended for a request whose trace is recorded. The ids, in hexadecimal digits, become an exemplar of the
// latency's bucket: whoever reads OpenMetrics can go from a slow bucket to a trace. It allocates.
func (e *Endpoint) EndedIn(status int, took time.Duration, trace, span string) {
	e.concurrent.Add(-1)
	e.duration.ObserveWith(took.Seconds(), series.Label{Name: "trace_id", Value: label(cut(trace))},
		series.Label{Name: "span_id", Value: label(cut(span))})
	e.answered(status)
}

// cut makes an id fit for an exemplar, whose labels may have 128 characters in all.
func cut(id string) string { return id[:min(len(id), 48)] }

// Ended counts the end of a request that was answered with status after took. Status 0 stands for no answer at all: the
// caller left, or an http.RoundTripper returned an error. Its label is "0", as in Envoy's and Istio's metrics, so that
// an alert on failures reads status=~"0|5..". A status outside 100 to 599 has the label "other".
func (e *Endpoint) Ended(status int, took time.Duration) {
	e.concurrent.Add(-1)
	e.duration.Observe(took.Seconds())
	e.answered(status)
}

func (e *Endpoint) answered(status int) {
	if status != 0 && (status < 100 || status > maxStatus) {
		status = maxStatus + 1
	}
	c := e.requests[status].Load()
	if c == nil {
		c = e.firstOf(&e.requests[status], e.vectors.requests, statusLabel(status))
	}
	c.Inc()
}

// Retried counts attempt number 2, 3, ... of a request, hedges included, when it is sent. From 10 on the label is
// "10+".
func (e *Endpoint) Retried(attempt int) {
	if attempt < 2 {
		return
	}
	attempt = min(attempt, maxAttempt)
	c := e.retries[attempt].Load()
	if c == nil {
		c = e.firstOf(&e.retries[attempt], e.vectors.endpointRetries, attemptLabel(attempt))
	}
	c.Inc()
}

// firstOf resolves a counter that is needed for the first time. Whoever comes at the same moment resolves the same one.
func (e *Endpoint) firstOf(
	slot *atomic.Pointer[series.Counter], vector *series.Counters, label string,
) *series.Counter {
	c := vector.With(e.route.service, e.route.endpoint, label)
	slot.Store(c)
	return c
}

func statusLabel(status int) string {
	if status > maxStatus {
		return other
	}
	return strconv.Itoa(status)
}

func attemptLabel(attempt int) string {
	if attempt == maxAttempt {
		return strconv.Itoa(maxAttempt) + "+"
	}
	return strconv.Itoa(attempt)
}
