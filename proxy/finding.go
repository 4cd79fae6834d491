package proxy

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/abate-go/abate/internal/upstream"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/discovery"
)

// finding is what the watchers of all services have in common.
type finding struct {
	log     *slog.Logger
	zone    string // where the proxy runs
	cluster discovery.Cluster
}

// lookEvery is how often files are looked at; 0 for as often as package discovery does it.
var lookEvery time.Duration

// seek has the addresses of the service be looked for as the policy says. What was known goes on until there is an
// answer. mu is held.
func (s *service) seek(p *policyfile.Policy) {
	if s.services.ended.Load() { // looked at with mu, which seekNot wants: what begins before that is found
		return
	}
	w := s.watcher.Load()
	if !p.Discovery.Enabled() {
		if w != nil {
			s.watcher.Store(nil)
			go w.Stop() // it may be telling us something, which wants mu
		}
		return
	}
	c := s.searchOf(p)
	var before []discovery.Endpoint
	if w != nil {
		if w.Config().Same(&c) {
			return
		}
		before = w.List()
		go w.Stop()
	}
	s.watcher.Store(discovery.Start(c, before))
}

// searchOf is what to look for.
func (s *service) searchOf(p *policyfile.Policy) discovery.Config {
	f := &s.services.finding
	t := p.Discovery.Target(p.Upstreams[0])
	c := discovery.Config{
		Interval: lookEvery, Service: s.guard.Name(),
		Type: t.Type, Name: t.Name, Namespace: t.Namespace, Port: t.Port, Path: t.Path,
		Server: t.Server, Zone: f.zone, Cluster: &f.cluster, Log: f.log, Changed: s.regroup,
	}
	if u, ok := upstream.Parse(p.Upstreams[0]); ok && t.Type == "dns" {
		_, addr := u.Address()
		_, c.Port, _ = net.SplitHostPort(addr)
	}
	return c
}

// seekNot ends the looking, and waits for that. mu is not held.
func (s *service) seekNot() {
	s.mu.Lock()
	w := s.watcher.Swap(nil)
	s.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// found is the addresses that are known.
func (s *service) found() []discovery.Endpoint {
	if w := s.watcher.Load(); w != nil {
		return w.List()
	}
	return nil
}

// noEndpoints is why there is no endpoint for a request.
func (s *service) noEndpoints() error {
	if w := s.watcher.Load(); w != nil {
		return &noEndpointsError{w.Why()}
	}
	return errNoUpstreams
}

// errNoUpstreams is a service that nobody has said anything about.
var errNoUpstreams = errors.New("the policy file names no upstreams for this service")

// noEndpointsError is a service whose addresses are not known, or that has none.
type noEndpointsError struct{ why string }

func (e *noEndpointsError) Error() string { return e.why }
