package proxy

import (
	"slices"
	"time"

	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/discovery"
)

// fleet is the endpoints of a service under one policy. It is made anew when a request comes with another one, which
// costs a request the comparison of one pointer, and when discovery has found other addresses.
type fleet struct {
	policy    *policyfile.Policy
	load      uint64 // the number of the policy file's load
	previous  *fleet // for requests that were routed just before the policy changed; it has none itself
	balancer  *balance.Balancer
	endpoints []*endpoint
	zones     []string // of endpoints, if they were discovered
}

// fleetOf is the endpoints for a request with that destination.
func (s *service) fleetOf(d *policyfile.Destination) *fleet {
	if f := s.fleet.Load(); f != nil && f.policy == d.Policy {
		return f
	}
	return s.muster(d)
}

// newest is the fleet as it is by now: the addresses may have changed since the request was routed. Another policy may
// be in force too, of which the request knows nothing; but where it has the addresses found in the same place, those
// that have gone are gone for the request as well.
func (s *service) newest(f *fleet) *fleet {
	if now := s.fleet.Load(); now != nil && (now.policy == f.policy || now.isFoundAs(f)) {
		return now
	}
	return f
}

// isFoundAs reports whether the endpoints of both are looked for in the same place.
func (f *fleet) isFoundAs(other *fleet) bool {
	a, b := f.policy, other.policy
	return a.Discovery.Enabled() && a.Discovery == b.Discovery && a.Upstreams[0] == b.Upstreams[0]
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
	approach := s.services.secrets.approach(d.Policy, s.approach)
	if before.load > d.Load { // a request that was held up over several reloads: a fleet for it alone
		f, _ := s.newFleet(d.Policy, d.Load, before, approach)
		f.retire(before)
		return f
	}
	s.seek(d.Policy)
	s.approach = approach
	f, kept := s.newFleet(d.Policy, d.Load, before, approach)
	for _, e := range f.endpoints { // those that stay, too
		e.secured.by.Store(approach)
	}
	if before.balancer != nil {
		f.balancer.Carry(before.balancer, kept)
		f.previous = &fleet{policy: before.policy, load: before.load, balancer: before.balancer,
			endpoints: before.endpoints, zones: before.zones}
	}
	s.put(f, before)
	return f
}

// regroup makes the fleet anew because its addresses have changed. Requests under way end where they are.
func (s *service) regroup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.fleet.Load()
	if before == nil || !before.policy.Discovery.Enabled() {
		return
	}
	f, kept := s.newFleet(before.policy, before.load, before, s.approach)
	f.balancer.Carry(before.balancer, kept)
	f.previous = before.previous
	s.put(f, before)
}

// put has f be the fleet. mu is held.
func (s *service) put(f, before *fleet) {
	for _, e := range f.endpoints {
		e.among.Store(int32(len(f.endpoints)))
	}
	s.fleet.Store(f)
	before.retire(f)
}

// newFleet makes a fleet of the endpoints that there were and of new ones, which are reached by that approach; kept
// tells which of those before each is, -1 for none. mu is held.
func (s *service) newFleet(p *policyfile.Policy, load uint64, before *fleet, by *approach) (f *fleet, kept []int) {
	f = &fleet{policy: p, load: load}
	there := make(map[place]int, len(before.endpoints))
	for i, e := range before.endpoints {
		if _, twice := there[e.at]; !twice {
			there[e.at] = i
		}
	}
	take := func(at place) {
		i, ok := there[at]
		if !ok {
			i = -1
		}
		if kept = append(kept, i); ok {
			f.endpoints = append(f.endpoints, before.endpoints[i])
		} else {
			f.endpoints = append(f.endpoints, newEndpoint(at, by))
		}
	}
	if !p.Discovery.Enabled() {
		for _, raw := range p.Upstreams {
			take(place{url: raw})
		}
		f.balancer = balance.New(p.OutlierDetection, len(f.endpoints))
		f.balancer.Weigh(p.Weights)
		return f, kept
	}
	found := s.found()
	for _, at := range found {
		take(place{p.Upstreams[0], at.Addr})
	}
	f.balancer = balance.New(p.OutlierDetection, len(found))
	own := s.services.finding.zone
	if p.IgnoreZones {
		own = ""
	}
	f.weigh(found, own)
	return f, kept
}

// weigh has the balancer know what is known of the addresses.
func (f *fleet) weigh(found []discovery.Endpoint, own string) {
	weights := make([]int, len(found))
	for i, at := range found {
		weights[i] = max(at.Weight, 1)
		f.zones = append(f.zones, at.Zone)
	}
	f.balancer.Weigh(weights)
	f.balancer.Locate(own, f.zones)
}

// indexOf is the number of an endpoint, -1 if it is none of them.
func (f *fleet) indexOf(e *endpoint) int { return slices.Index(f.endpoints, e) }

// retire closes the endpoints that are not in the next fleet.
func (f *fleet) retire(next *fleet) {
	stay := make(map[*endpoint]bool, len(next.endpoints))
	for _, e := range next.endpoints {
		stay[e] = true
	}
	for _, e := range f.endpoints {
		if !stay[e] {
			e.close()
		}
	}
}

func (s *service) close() {
	s.seekNot()
	s.checkup.end(s)
	if f := s.fleet.Load(); f != nil {
		f.retire(&fleet{})
	}
}

// sweep closes connections that have been idle since before then.
func (s *service) sweep(then time.Duration) {
	if f := s.fleet.Load(); f != nil {
		for _, e := range f.endpoints {
			e.pool.sweep(then, e.fresh)
			e.http2.sweep(then)
		}
	}
}
