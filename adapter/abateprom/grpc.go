package abateprom

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate/core"
)

// GRPC counts the retries of gRPC clients by method: it is what an abategrpc.Client takes as Observer. Metrics.GRPC
// returns it. Its methods cost no allocation, except for a method or a status not seen before.
type GRPC struct {
	retries, exhausted *prometheus.CounterVec
	methods            handles[string, grpcMethod]
}

// grpcMethod has the counters of one method, made when they are needed first.
type grpcMethod struct {
	name      string
	exhausted prometheus.Counter
	retries   [len(core.GRPCCodes) + 1]atomic.Pointer[prometheus.Counter] // by code; the last is for what is none
}

func newGRPC(all *counting) *GRPC {
	g := &GRPC{
		retries: all.counterBy("grpc_client_retry_attempts_total",
			"Attempts made after the first of their call, hedges included, by the method and by how the attempt ended. "+
				"If OK is a small part of them, retries do not help: lower maxRetries, or open the breaker. Streams are counted "+
				"by what is known when their first message comes.", "method", "status"),
		exhausted: all.counterBy("grpc_client_retry_budget_exhausted_total",
			"Calls that failed and were not repeated because the retry budget of their server was empty. It is the "+
				"storm being held back: fix the service, leave the policy alone.", "method"),
	}
	g.methods.max, g.methods.full = maxEndpoints, func(string) string { return other }
	g.methods.resolve = func(method string) *grpcMethod {
		name := label(method)
		return &grpcMethod{name: name, exhausted: g.exhausted.WithLabelValues(name)}
	}
	return g
}

// GRPC returns the counters of retries by method.
//
//	client := &abategrpc.Client{Guard: guard, Observer: metrics.GRPC()}
func (m *Metrics) GRPC() *GRPC { return m.grpc }

// RetryAttempt counts an attempt after the first of its call, a retry or a hedge, when it has ended. method is the full
// name ("/shop.Payment/Get"). The first 1,000 have labels of their own, later ones share the method "other". status is
// the name of its code ("UNAVAILABLE"); what is none counts as "other".
func (g *GRPC) RetryAttempt(method, status string) {
	m, code := g.methods.of(method), slices.Index(core.GRPCCodes[:], status)
	if code < 0 {
		code, status = len(core.GRPCCodes), other
	}
	c := m.retries[code].Load()
	if c == nil {
		counter := g.retries.WithLabelValues(m.name, status)
		c = &counter // whoever comes at the same moment resolves the same one
		m.retries[code].Store(c)
	}
	(*c).Inc()
}

// BudgetExhausted counts a call that failed and was not repeated because the retry budget was empty.
func (g *GRPC) BudgetExhausted(method string) { g.methods.of(method).exhausted.Inc() }
