package abateprom

import (
	"time"

	"github.com/abate-go/abate/internal/metrics"
)

// Endpoint counts the requests of one route of one service. Metrics.Endpoint returns it. Its methods cost no allocation
// and no look-up, except for the first request with a status or attempt number not seen before.
type Endpoint metrics.Endpoint

// Endpoint returns the counters of one route of a service, to be kept: finding them takes a lock and a look-up,
// counting does not. endpoint names the route, such as "/users/{id}", and never the path, which would make a label of
// each user. The first 1,000 have labels of their own; later ones share the endpoint "other" of their service, and past
// 2,000 labels all share the service "other" as well.
func (m *Metrics) Endpoint(service, endpoint string) *Endpoint {
	return (*Endpoint)(of(m).Endpoint(service, endpoint))
}

// Began counts a request that arrived. It must come to Ended.
func (e *Endpoint) Began() { (*metrics.Endpoint)(e).Began() }

// Ended counts the end of a request that was answered with status after took. Status 0 stands for no answer at all: the
// caller left, or an http.RoundTripper returned an error. Its label is "0", as in Envoy's and Istio's metrics, so that
// an alert on failures reads status=~"0|5..". A status outside 100 to 599 has the label "other".
func (e *Endpoint) Ended(status int, took time.Duration) { (*metrics.Endpoint)(e).Ended(status, took) }

// EndedIn is Ended for a request whose trace is recorded. The ids, in hexadecimal digits, become an exemplar of the
// latency's bucket: whoever reads OpenMetrics can go from a slow bucket to a trace. It allocates.
func (e *Endpoint) EndedIn(status int, took time.Duration, trace, span string) {
	(*metrics.Endpoint)(e).EndedIn(status, took, trace, span)
}

// Retried counts attempt number 2, 3, ... of a request, hedges included, when it is sent. From 10 on the label is
// "10+".
func (e *Endpoint) Retried(attempt int) { (*metrics.Endpoint)(e).Retried(attempt) }

// GRPC counts the retries of gRPC clients by method: it is what an abategrpc.Client takes as Observer. Metrics.GRPC
// returns it. Its methods cost no allocation, except for a method or a status not seen before.
type GRPC metrics.GRPC

// GRPC returns the counters of retries by method.
//
//	client := &abategrpc.Client{Guard: guard, Observer: metrics.GRPC()}
func (m *Metrics) GRPC() *GRPC { return (*GRPC)(of(m).GRPC()) }

// RetryAttempt counts an attempt after the first of its call, a retry or a hedge, when it has ended. method is the full
// name ("/shop.Payment/Get"). The first 1,000 have labels of their own, later ones share the method "other". status is
// the name of its code ("UNAVAILABLE"); what is none counts as "other".
func (g *GRPC) RetryAttempt(method, status string) { (*metrics.GRPC)(g).RetryAttempt(method, status) }

// BudgetExhausted counts a call that failed and was not repeated because the retry budget was empty.
func (g *GRPC) BudgetExhausted(method string) { (*metrics.GRPC)(g).BudgetExhausted(method) }
