package metrics

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/series"
)

const (
	// maxEndpoints is how many endpoints get a label of their own.
	maxEndpoints = 1_000
	// other is the endpoint, and if need be the service, of all that come later.
	other = "other"
)

// Metrics counts what guards and gates and the requests around them do. It is safe for concurrent use. Make one per
// registry with New, and share it.
type Metrics struct {
	vectors  vectors
	arrivals arrivals
	redis    *redis
	grpc     *GRPC
	kafka    *kafka

	plain    map[*series.Desc]*series.Desc // of plain names
	prefixed atomic.Bool                   // they are not shown

	mu            sync.RWMutex
	observers     map[string]*observer
	guards        map[string]*abate.Guard
	gateObservers map[string]*gateObserver
	gates         map[string]*inbound.Gate
	endpoints     map[route]*Endpoint
	concurrent    map[string]*atomic.Int64 // requests in the air, by service
}

// route is what one Endpoint counts.
type route struct{ service, endpoint string }

// New makes the metrics: a collector, to be registered.
func New() *Metrics {
	m := &Metrics{
		vectors:       newVectors(),
		arrivals:      newArrivals(),
		redis:         newRedis(),
		grpc:          newGRPC(),
		kafka:         newKafka(),
		observers:     make(map[string]*observer),
		guards:        make(map[string]*abate.Guard),
		gateObservers: make(map[string]*gateObserver),
		gates:         make(map[string]*inbound.Gate),
		endpoints:     make(map[route]*Endpoint),
		concurrent:    make(map[string]*atomic.Int64),
	}
	m.plain = m.plainDescs()
	return m
}

// Adjust makes the policy of a service report to the metrics what its guard does: m.Adjust is an argument for
// policyfile.Load, or is called on a policy before abate.New. An observer that is already set is called too, after the
// metrics. Policies of the same service get observers that are equal, so that a reload which changes nothing is seen as
// one; adjusting a policy twice counts once. Each service has its own label, so names must not come from strangers
// without a bound; those that reach policyfile have one.
func (m *Metrics) Adjust(service string, p *abate.Policy) {
	o := m.observer(label(service))
	p.Observer = abate.Observers(o, p.Observer)
}

// observer returns the one of a service, made when it is needed first.
func (m *Metrics) observer(service string) *observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.observers[service]
	if o == nil {
		o = m.vectors.observer(service)
		m.observers[service] = o
	}
	return o
}

// Add shows the state of these guards at every scrape: breaker, override, and the other policies that are on. Adding
// a guard twice is fine; of two guards with the same name the one added last is shown. A guard that is added is never
// forgotten.
func (m *Metrics) Add(guards ...*abate.Guard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range guards {
		m.guards[label(g.Name())] = g
	}
}

// Endpoint returns the counters of one route of a service, to be kept: finding them takes a lock and a look-up,
// counting does not. endpoint names the route, such as "/users/{id}", and never the path, which would make a label of
// each user. The first 1,000 have labels of their own; later ones share the endpoint "other" of their service, and past
// 2,000 labels all share the service "other" as well.
func (m *Metrics) Endpoint(service, endpoint string) *Endpoint {
	r := route{label(service), label(endpoint)}
	m.mu.RLock()
	r = m.bounded(r)
	e := m.endpoints[r]
	m.mu.RUnlock()
	if e != nil {
		return e
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r = m.bounded(r)
	if e = m.endpoints[r]; e != nil {
		return e
	}
	running := m.concurrent[r.service]
	if running == nil {
		running = new(atomic.Int64)
		m.concurrent[r.service] = running
	}
	e = m.vectors.endpoint(r, running)
	m.endpoints[r] = e
	return e
}

// bounded returns the route that r is counted as. m.mu is held.
func (m *Metrics) bounded(r route) route {
	if m.endpoints[r] != nil || len(m.endpoints) < maxEndpoints {
		return r
	}
	r.endpoint = other
	if m.endpoints[r] == nil && len(m.endpoints) >= 2*maxEndpoints {
		r.service = other
	}
	return r
}

// label makes a name fit for a label, which has to be UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
