package proxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/discovery"
)

// service is what the proxy keeps for a guard: its endpoints, and the metrics of its routes.
type service struct {
	services *services
	guard    *abate.Guard
	gate     *inbound.Gate // before it, nil for a call that goes out
	owner    []byte        // its name as the owner of an allowance, behind the number
	fleet    atomic.Pointer[fleet]
	approach *approach                         // to its endpoints; under mu
	mu       sync.Mutex                        // held while another fleet is made
	watcher  atomic.Pointer[discovery.Watcher] // of its addresses, nil for none; changed under mu
	checkup  checkup
	stats    sync.Map // label of a route to *metrics.Endpoint
}

// services is what the proxy keeps for the guards and gates of the policy file, those of files before it included.
type services struct {
	policies *policyfile.Set
	idle     time.Duration // for which a connection to a service is kept
	metrics  *metrics.Metrics
	secrets  *secrets
	guards   sync.Map // *abate.Guard to *service
	posts    sync.Map // *inbound.Gate to *watchpost
	finding  finding
	ended    atomic.Bool // set before what there is is closed
}

func (l *services) init(p *policyfile.Set, c *Config, m *metrics.Metrics, s *secrets) {
	l.policies, l.idle, l.metrics, l.secrets = p, c.UpstreamIdleTimeout, m, s
	l.finding = finding{log: c.Log, zone: c.Zone, cluster: discovery.Cluster{Folder: c.ServiceAccount}}
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
func (l *services) tick(now time.Duration, t *transport, log *slog.Logger, page *abateadmin.Page) {
	l.guards.Range(func(_, kept any) bool {
		s := kept.(*service)
		if s.listed() {
			s.sweep(now - l.idle)
			s.checkup.follow(s, t, log)
		} else {
			s.checkup.end(s)
			s.sweep(now) // nothing is sent to it any more
			s.seekNot()
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
	l.ended.Store(true)
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

// endpointStats are the metrics of a route, resolved once.
func (s *service) endpointStats(label string) *metrics.Endpoint {
	if e, ok := s.stats.Load(label); ok {
		return e.(*metrics.Endpoint)
	}
	e, _ := s.stats.LoadOrStore(label, s.services.metrics.Endpoint(s.guard.Name(), label))
	return e.(*metrics.Endpoint)
}

// route is where a request goes.
type route struct {
	policyfile.Destination
	service *service
	stats   *metrics.Endpoint
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
