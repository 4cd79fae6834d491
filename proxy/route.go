package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/adapter/abateprom"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policyfile"
)

// service is what the proxy keeps for a guard: its endpoints, and the metrics of its routes.
type service struct {
	services *services
	guard    *abate.Guard
	gate     *inbound.Gate // before it, nil for a call that goes out
	owner    []byte        // its name as the owner of an allowance, behind the number
	fleet    atomic.Pointer[fleet]
	approach *approach  // to its endpoints; under mu
	mu       sync.Mutex // held while another fleet is made
	stats    sync.Map   // label of a route to *abateprom.Endpoint
}

// fleet is the endpoints of a service under one policy. It is made anew when a request comes with another one:
// comparing one pointer is all that reloads cost a request.
type fleet struct {
	policy    *policyfile.Policy
	load      uint64 // the number of the policy file's load
	previous  *fleet // for requests that were routed just before this one was made; it has none itself
	balancer  *balance.Balancer
	endpoints []*endpoint
}

// services is what the proxy keeps for the guards and gates of the policy file, those of files before it included.
type services struct {
	policies *policyfile.Set
	idle     time.Duration // for which a connection to a service is kept
	metrics  *abateprom.Metrics
	secrets  *secrets
	guards   sync.Map // *abate.Guard to *service
	posts    sync.Map // *inbound.Gate to *watchpost
}

func (l *services) init(p *policyfile.Set, idle time.Duration, m *abateprom.Metrics, s *secrets) {
	l.policies, l.idle, l.metrics, l.secrets = p, idle, m, s
}

// of returns what is kept for a guard, which may have a gate before it.
func (l *services) of(g *abate.Guard, gate *inbound.Gate) *service {
	if s, ok := l.guards.Load(g); ok {
		return s.(*service)
	}
	owner := hops.AppendAllowance(nil, core.Allowance{Owner: g.Name()})[len("0"):]
	s, loaded := l.guards.LoadOrStore(g, &service{services: l, guard: g, gate: gate, owner: owner})
	if !loaded {
		l.metrics.Add(g)
	}
	return s.(*service)
}

// tick closes connections that nobody uses, and takes what the policy file has no more off the page.
func (l *services) tick(now time.Duration, page *abateadmin.Page) {
	l.guards.Range(func(_, kept any) bool {
		s := kept.(*service)
		if s.listed() {
			s.sweep(now - l.idle)
		} else {
			s.sweep(now) // nothing is sent to it any more
			page.Remove(s.guard)
		}
		return true
	})
	l.posts.Range(func(g, _ any) bool {
		if _, ok := l.policies.Gate(g.(*inbound.Gate).Name()); !ok {
			page.RemoveGate(g.(*inbound.Gate))
		}
		return true
	})
}

// sweepIdle closes the connections to services that nobody uses.
func (l *services) sweepIdle() {
	now := core.Now()
	l.guards.Range(func(_, s any) bool {
		s.(*service).sweep(now)
		return true
	})
}

func (l *services) close() {
	l.guards.Range(func(_, s any) bool {
		s.(*service).close()
		return true
	})
}

// listed reports whether the policy file still has the service.
func (s *service) listed() (ok bool) {
	if s.gate != nil {
		_, ok = s.services.policies.Gate(s.gate.Name())
	} else {
		_, ok = s.services.policies.Lookup(s.guard.Name())
	}
	return ok
}

// fleetOf is the endpoints for a request with that destination.
func (s *service) fleetOf(d *policyfile.Destination) *fleet {
	if f := s.fleet.Load(); f != nil && f.policy == d.Policy {
		return f
	}
	return s.muster(d)
}

// muster makes the fleet of a new policy. Endpoints that were there stay, with their connections and their record. A
// request that was routed by the policy before still gets the fleet of that one: none is lost to a reload.
func (s *service) muster(d *policyfile.Destination) *fleet {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.fleet.Load()
	switch {
	case before == nil:
		before = new(fleet)
	case before.policy == d.Policy:
		return before
	case before.previous != nil && before.previous.policy == d.Policy:
		return before.previous
	}
	f, kept := newFleet(d, before)
	newest := before.load <= d.Load
	approach := s.services.secrets.approach(d.Policy, s.approach)
	for i, e := range f.endpoints {
		if newest || kept[i] < 0 {
			e.secured.by.Store(approach)
		}
	}
	if !newest { // a request that was held up over several reloads: a fleet for it alone
		f.retire(before)
		return f
	}
	if before.balancer != nil {
		f.balancer.Carry(before.balancer, kept)
		f.previous = &fleet{policy: before.policy, load: before.load, balancer: before.balancer, endpoints: before.endpoints}
	}
	s.approach = approach
	s.fleet.Store(f)
	before.retire(f)
	return f
}

// newFleet makes a fleet of the endpoints that there were and of new ones; kept tells which of those before each is, -1
// for none.
func newFleet(d *policyfile.Destination, before *fleet) (f *fleet, kept []int) {
	f = &fleet{policy: d.Policy, load: d.Load, balancer: balance.New(d.Policy.OutlierDetection, len(d.Policy.Upstreams))}
	f.balancer.Weigh(d.Policy.Weights)
	for _, raw := range d.Policy.Upstreams {
		i := slices.IndexFunc(before.endpoints, func(e *endpoint) bool { return e.url == raw })
		if kept = append(kept, i); i >= 0 {
			f.endpoints = append(f.endpoints, before.endpoints[i])
		} else {
			f.endpoints = append(f.endpoints, newEndpoint(raw))
		}
	}
	return f, kept
}

// retire closes the endpoints that are not in the next fleet.
func (f *fleet) retire(next *fleet) {
	for _, e := range f.endpoints {
		if !slices.Contains(next.endpoints, e) {
			e.close()
		}
	}
}

func (s *service) close() {
	if f := s.fleet.Load(); f != nil {
		f.retire(&fleet{})
	}
}

// sweep closes connections that have been idle since before then.
func (s *service) sweep(then time.Duration) {
	if f := s.fleet.Load(); f != nil {
		for _, e := range f.endpoints {
			e.pool.sweep(then)
			e.http2.sweep(then)
		}
	}
}

// endpointStats are the metrics of a route, resolved once.
func (s *service) endpointStats(label string) *abateprom.Endpoint {
	if e, ok := s.stats.Load(label); ok {
		return e.(*abateprom.Endpoint)
	}
	e, _ := s.stats.LoadOrStore(label, s.services.metrics.Endpoint(s.guard.Name(), label))
	return e.(*abateprom.Endpoint)
}

// route is where a request goes.
type route struct {
	policyfile.Destination
	service *service
	stats   *abateprom.Endpoint
	post    *post // at the gate before the service, nil if there is none
}

// leaveBy has a call go to d. r holds the last route of the same client: most requests go there again.
func (l *services) leaveBy(r *route, d *policyfile.Destination) bool {
	if *d != r.Destination {
		s := l.of(d.Guard, nil)
		*r = route{*d, s, s.endpointStats(d.Label), nil}
	}
	return true
}

// enterRoute finds the service of a request that came in at listen, for what the file protects.
func (l *services) enterRoute(r *route, listen, host, target string) bool {
	e, ok := l.policies.Entrance(listen, host, target)
	if !ok {
		return false
	}
	if e.Destination != r.Destination {
		s := l.of(e.Guard, e.Gate)
		*r = route{e.Destination, s, s.endpointStats(e.Label), l.postOf(&e, s)}
	}
	return true
}
