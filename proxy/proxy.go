package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatebolt"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/internal/series/process"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/stale"
	"github.com/abate-go/abate/proxy/tracing"
)

// Proxy is one proxy. Make it with New, open the addresses of the policy file with Open, give it listeners for
// outgoing calls with Serve, and end it with Shutdown.
type Proxy struct {
	plane     plane
	lobby     lobby
	entrances entrances
	keyFiles  abatebolt.Files
	admin     admin
}

// New loads the policy file and makes a proxy that listens nowhere yet. A file with mistakes gives all of them.
func New(c Config) (*Proxy, error) {
	c.defaults()
	clients, more := roomFor(openFiles(), c.MaxConnections)
	c.MaxConnections = clients
	p := &Proxy{plane: plane{config: c, clock: newInstant(), kept: stale.New(c.StaleMemory),
		trees: calltree.Table{Most: c.CallTrees}}}
	p.plane.life, p.plane.end = context.WithCancel(context.Background())
	metrics, registry := metrics.New(), new(series.Registry)
	metrics.ShowPlainNames(!c.WithoutPlainNames)
	err := p.register(metrics, registry)
	if err != nil {
		return nil, fmt.Errorf("proxy: metrics: %w", err)
	}
	p.lobby.init(&p.plane)
	p.entrances.init(&p.plane, &p.lobby, metrics, p.keyFiles.Err)
	p.lobby.secure = p.entrances.secrets.listen
	p.admin.init(&p.plane, &p.lobby, &p.entrances, registry, p.Reload)
	if p.plane.policies, err = policyfile.LoadWith(c.Policy, p.hooks(metrics)); err != nil {
		return nil, errors.Join(err, p.keyFiles.Close())
	}
	p.plane.out.init(p.plane.life, &c, p.plane.clock, more, p.plane.services.sweepIdle)
	p.plane.services.init(p.plane.policies, &c, metrics, &p.entrances.secrets)
	if err := p.plane.outside.init(&p.plane.services, p.adjust(metrics)); err != nil {
		return nil, errors.Join(err, p.keyFiles.Close())
	}
	if err := errors.Join(p.keyFiles.Err(), p.entrances.prepare(), errors.Join(p.admin.refresh()...)); err != nil {
		p.entrances.instances.close()
		return nil, errors.Join(err, p.keyFiles.Close())
	}
	c.Tracing.Version = cmp.Or(c.Tracing.Version, c.Version)
	if p.plane.tracer, err = tracing.Start(c.Tracing, c.Log); err != nil {
		p.entrances.instances.close()
		return nil, errors.Join(err, p.keyFiles.Close())
	}
	p.prepare()
	go p.tick()
	return p, nil
}

// register registers the metrics of guards and gates, of the process and of the proxy.
func (p *Proxy) register(metrics *metrics.Metrics, registry *series.Registry) error {
	return errors.Join(
		registry.Register(metrics),
		registry.Register(process.Go{}),
		registry.Register(process.Process{}),
		registry.Register(ownMetrics{&p.lobby, &p.plane, &p.entrances.secrets, buildOf(p.plane.config.Version)}),
		registry.Register(discoveryMetrics{&p.plane.services}),
		registry.Register(checkupMetrics{&p.plane.services}),
		registry.Register(tunnelMetrics{&p.plane.tunnels}),
	)
}

// hooks has those who observe guards and gates, and who keep what gates share, see each of them as the file is loaded.
func (p *Proxy) hooks(metrics *metrics.Metrics) policyfile.Hooks {
	page := p.admin.page
	return policyfile.Hooks{Policy: []func(string, *abate.Policy){p.adjust(metrics)},
		Protection: []func(string, *inbound.Protection){
			metrics.AdjustProtection, page.AdjustProtection, p.entrances.instances.adjust, p.keyFiles.AdjustProtection,
		}}
}

// elsewhere is what those hold whose calls go through a gateway: places of their own services, of which it knows
// nothing. Its gates stand in front of others.
type elsewhere struct{}

// Scarce reports false.
func (elsewhere) Scarce() bool { return false }

// adjust has a guard observed, and know what its callers hold.
func (p *Proxy) adjust(metrics *metrics.Metrics) func(string, *abate.Policy) {
	return func(name string, policy *abate.Policy) {
		if own := p.plane.config.Adjust; own != nil {
			own(name, policy) // first: the others keep the Observer that they find
		}
		if p.plane.config.Gateway && policy.Places == nil {
			policy.Places = elsewhere{}
		}
		metrics.Adjust(name, policy)
		p.admin.page.Adjust(name, policy)
	}
}

// prepare makes what belongs to each service before its first request, so that metrics, /guards and the page show all
// of them.
func (p *Proxy) prepare() {
	policies, services := p.plane.policies, &p.plane.services
	for _, name := range policies.Names() {
		if d, ok := policies.Service(name); ok {
			services.of(d.Guard, nil).fleetOf(&d)
			p.admin.page.Add(d.Guard)
		}
	}
	if o, c := &p.plane.outside, p.plane.config; o.lists(c.PassThrough).from.Enabled() || len(c.PassThrough) > 0 {
		services.metrics.Add(o.pass, o.tunnel)
		p.admin.page.Add(o.pass, o.tunnel)
	}
	for _, name := range policies.GateNames() {
		if g, ok := policies.Gate(name); ok {
			services.addGate(g)
			p.admin.page.AddGate(g)
			if d, ok := policies.Behind(name); ok && d.Policy.Discovery.Enabled() {
				services.of(d.Guard, g).fleetOf(&d)
			}
		}
	}
}

// Outside returns what has gone past the policy since the proxy began: tunnels, and requests to hosts that the policy
// file does not list.
func (p *Proxy) Outside() Outside { return p.plane.outsideReport() }

// Addresses are where a service is called now, host and port, what discovery has found included; a host is a name where
// the policy file has one. Unix sockets are not among them.
func (p *Proxy) Addresses(service string) (addrs []string) {
	d, ok := p.plane.policies.Service(service)
	if !ok {
		return nil
	}
	for _, e := range p.plane.services.of(d.Guard, nil).fleetOf(&d).endpoints {
		if e.network == "tcp" {
			addrs = append(addrs, e.addr)
		}
	}
	return addrs
}

// Policies are the guards of the file, for reloading and watching it.
func (p *Proxy) Policies() *policyfile.Set { return p.plane.policies }

// Watch reloads the policy file when it changes, until ctx ends.
func (p *Proxy) Watch(ctx context.Context) error { return p.plane.policies.Watch(ctx) }

// Reload reads the policy file now. One with mistakes changes nothing and gives all of them.
func (p *Proxy) Reload() error {
	err := p.plane.policies.Reload()
	if err == nil {
		p.prepare()
		p.follow()
	}
	return err
}

// follow brings files and listeners up to the policy file.
func (p *Proxy) follow() { p.entrances.follow(p.admin.refresh) }

// tick does what is done once a second: look for what the policy file has new, close connections that nobody uses.
func (p *Proxy) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-p.plane.life.Done():
			return
		case <-t.C:
			p.prepare()
			p.follow()
			p.lobby.remind()
			p.lobby.sayFull(core.Now())
			p.plane.trees.Sweep()
			p.plane.services.tick(core.Now(), &p.plane.out, p.plane.config.Log, p.admin.page)
			p.plane.outside.tick(core.Now() - p.plane.config.UpstreamIdleTimeout)
		}
	}
}

// Open listens at the addresses of the file's protect, and from then on follows the file: addresses that come are
// opened, those that go are closed once their clients have their answers. The error joins one *ListenError for each
// that cannot be opened; then none is. Later such an address is logged and tried again every second, and the others
// serve on.
func (p *Proxy) Open() error { return p.entrances.begin() }

// Entrances lists the addresses that are open, in the order of the file.
func (p *Proxy) Entrances() []Entrance { return p.entrances.list() }

// Serve takes clients from l until Shutdown, and returns nil then. They are programs whose calls go out: what arrives
// at the services that the file protects comes in at listeners of the proxy's own, see Open.
func (p *Proxy) Serve(l net.Listener) error { return p.lobby.serve(l, func(*door) {}) }

// ServeFor is Serve for calls of one service: whatever the Host and the path of a request are, it belongs to that
// service of the policy file. So the listener's address is a base URL of the service, without a prefix. While the file
// does not have the service, requests get a 404.
func (p *Proxy) ServeFor(service string, l net.Listener) error {
	at := l.Addr().String() // a client that takes the proxy for one of its own asks for that
	p.plane.pinned.Store(at, service)
	defer p.plane.pinned.Delete(at)
	return p.lobby.serve(l, func(d *door) { d.service = service })
}

// ServeRedirected is Serve for connections that a firewall has redirected to l, with REDIRECT of iptables or nftables
// (Linux). A request belongs to the service that its Host names, with the port that the connection was meant for, or
// that has the address itself; what belongs to none goes on to where it was meant for if the policy file says so:
// plain requests by outside.passThrough, everything else, which is not read, by outside.connect.
func (p *Proxy) ServeRedirected(l net.Listener) error {
	return p.lobby.serve(l, func(d *door) { d.redirects = true })
}

// Admin is the page for people and machines that look after the proxy: /healthz, /readyz (503 while it leaves or
// drains), /metrics (Prometheus), /guards and /gates (state as JSON), /policy (the policy in force, every default
// written out) and, at / for a browser, the live page of abateadmin. Where it is served over HTTP/2 it answers the
// health checks of gRPC too (grpc.health.v1, for the proxy and for each service). It shows addresses, numbers of
// requests and messages of errors, no requests: keep it on loopback or in a network you trust, or have it ask for a
// token or a client certificate (Config.AdminTokens, Config.AdminTLS). Only then can something be changed from it.
// /healthz and /readyz are open to everybody: whoever looks whether the proxy is well, such as a kubelet, has
// neither; and so is the empty page, into which a token is typed. On loopback everything else answers to addresses
// and to localhost only, and to no other name.
func (p *Proxy) Admin() http.Handler { return p.admin.handler() }

// AdminTLS is how to serve Admin: nil without TLS. Certificates that change are taken up.
func (p *Proxy) AdminTLS() *tls.Config { return p.admin.serverTLS() }

// Ready reports whether the proxy takes requests: until Leave or Shutdown.
func (p *Proxy) Ready() bool { return p.lobby.ready() }

// lastSpans sends the spans that are left. A collector that is away holds nobody up for long.
func (p *Proxy) lastSpans(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	p.plane.tracer.Close(ctx)
}

// Leave asks those who send requests here to send them elsewhere, and goes on serving: between the moment at which
// somebody takes the proxy out and the one at which the last of its callers has heard of that. Ready is false from now
// on. Connections end between two requests, by what HTTP has for it: the next answer over HTTP/1.1 says
// "Connection: close", and HTTP/2 gets GOAWAY, so that no request is lost, as one may be that is sent while Shutdown
// closes its connection. New connections are taken, and end in the same way. A connection of HTTP/1.1 without a request
// stays open until it has one, or until Shutdown.
//
// It concerns the callers of services that the policy file protects, and all of a gateway. The program beside a
// sidecar goes on as before. It does not wait, and cannot be taken back.
func (p *Proxy) Leave() {
	p.plane.leaving.Store(true)
	p.lobby.remind()
}

// Shutdown takes no new clients, tells those there are to go after the request under way, and returns when the last
// has gone, and all that was done under idempotency keys is recorded, or when ctx ends: then those that are left are
// cut off, and the error is ctx's.
func (p *Proxy) Shutdown(ctx context.Context) error {
	err := p.lobby.drain(ctx)
	if undone := holding.Drain(ctx); err == nil { // before the fleet is left, through which they are recorded
		err = undone
	}
	p.plane.end()
	p.lastSpans(ctx)
	p.admin.page.Close()
	p.plane.services.close()
	p.plane.outside.close()
	p.entrances.close()
	return errors.Join(err, p.keyFiles.Close())
}
