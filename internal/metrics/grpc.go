package metrics

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/series"
)

// GRPC counts the retries of gRPC clients by method: it is what an abategrpc.Client takes as Observer. Metrics.GRPC
// returns it. Its methods cost no allocation, except for a method or a status not seen before.
type GRPC struct {
	retries, exhausted *series.Counters

	mu      sync.RWMutex
	methods map[string]*grpcMethod
}

// grpcMethod has the counters of one method, made when they are needed first.
type grpcMethod struct {
	name      string
	exhausted *series.Counter
	retries   [len(core.GRPCCodes) + 1]atomic.Pointer[series.Counter] // by code; the last is for what is none
}

func newGRPC() *GRPC {
	return &GRPC{
		retries: series.NewCounters(series.NewDesc("abate_grpc_client_retry_attempts_total",
			"Attempts made after the first of their call, hedges included, by the method and by how the attempt ended. "+
				"If OK is a small part of them, retries do not help: lower maxRetries, or open the breaker. Streams are counted "+
				"by what is known when their first message comes.", "method", "status")),
		exhausted: series.NewCounters(series.NewDesc("abate_grpc_client_retry_budget_exhausted_total",
			"Calls that failed and were not repeated because the retry budget of their server was empty. It is the "+
				"storm being held back: fix the service, leave the policy alone.", "method")),
		methods: make(map[string]*grpcMethod),
	}
}

func (g *GRPC) all() []series.Collector { return []series.Collector{g.retries, g.exhausted} }

// GRPC returns the counters of retries by method.
//
//	client := &abategrpc.Client{Guard: guard, Observer: metrics.GRPC()}
func (m *Metrics) GRPC() *GRPC { return m.grpc }

// RetryAttempt counts an attempt after the first of its call, a retry or a hedge, when it has ended. method is the full
// name ("/shop.Payment/Get"). The first 1,000 have labels of their own, later ones share the method "other". status is
// the name of its code ("UNAVAILABLE"); what is none counts as "other".
func (g *GRPC) RetryAttempt(method, status string) {
	m, code := g.method(method), 0
	for code < len(core.GRPCCodes) && core.GRPCCodes[code] != status {
		code++
	}
	c := m.retries[code].Load()
	if c == nil {
		if code == len(core.GRPCCodes) {
			status = other
		}
		c = g.retries.With(m.name, status) // whoever comes at the same moment resolves the same one
		m.retries[code].Store(c)
	}
	c.Inc()
}

// BudgetExhausted counts a call that failed and was not repeated because the retry budget was empty.
func (g *GRPC) BudgetExhausted(method string) { g.method(method).exhausted.Inc() }

// method finds the counters of a method, or makes them.
func (g *GRPC) method(name string) *grpcMethod {
	g.mu.RLock()
	m := g.methods[name]
	if m == nil && len(g.methods) >= maxEndpoints {
		m = g.methods[other]
	}
	g.mu.RUnlock()
	if m != nil {
		return m
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.methods) >= maxEndpoints {
		name = other
	}
	if m = g.methods[name]; m == nil {
		name = strings.Clone(name)
		m = &grpcMethod{name: label(name), exhausted: g.exhausted.With(label(name))}
		g.methods[name] = m
	}
	return m
}
