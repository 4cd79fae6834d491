package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/adapter/abatebolt"
	"github.com/abate-go/abate/adapter/abateprom"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/h2"
	"github.com/abate-go/abate/proxy/identity"
	"github.com/abate-go/abate/proxy/stale"
)

// Config is what a proxy is started with. What may change while it runs stands in the policy file.
type Config struct {
	// Policy is the path of the policy file.
	Policy string

	// Gateway tells that the proxy stands in front of services and is not the sidecar of one program. A gateway repeats
	// requests only if the file says gatewayRetries: true, passes the client's Host on, and adds X-Forwarded-For,
	// X-Forwarded-Host and X-Forwarded-Proto. A sidecar sends the Host of the service's own URL.
	Gateway bool
	// TrustedPeers are the addresses of those in front of a gateway whose headers it believes and passes on. From everybody else it takes off
	// what proxies tell each other: X-Forwarded-For and its like, Abate-..., X-Envoy-..., and headers that tell who a user is. None
	// means that all are believed.
	TrustedPeers []netip.Prefix

	// ConnectTimeout bounds the making of a connection to an endpoint, TLS included. 0 means 1s.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds how long a client may take to send the head of a request, from its first byte. 0 means 10s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a client's connection is kept without a request. 0 means 5m.
	IdleTimeout time.Duration
	// StallTimeout is how long a client may send or take nothing while its request or its answer is on its way, and a service
	// take nothing of a request. What lies in the socket counts on Linux. 0 means 1m.
	StallTimeout time.Duration
	// UpstreamIdleTimeout is how long a connection to an endpoint is kept without a request. 0 means 30s: below the 60s
	// or more that servers usually keep theirs, so that the proxy is the one that closes.
	UpstreamIdleTimeout time.Duration

	// MaxConnections is how many clients may be connected at once, over all addresses. One more waits until the connection of
	// another ends; one that has been idle for a while is closed for it. 0 means as many as leave a descriptor for each, of those that
	// the process may have when New is called, for a connection to a service, and a ninth of all for clients of HTTP/2 that need
	// more than one; negative means any number.
	MaxConnections int

	// MaxBufferedBody is the size, in bytes, up to which a request's body is held in memory so that it can be sent again.
	// A longer one is sent once, as a stream. 0 means 64 KiB.
	MaxBufferedBody int
	// StaleMemory bounds the memory for answers kept for staleIfError, in bytes. 0 means 64 MiB.
	StaleMemory int64
	// CallTrees bounds how many requests at once, of those that came with an allowance for retries, are joined with the calls
	// that are made for them, at about 512 bytes each. Of one more nothing is repeated. 0 means 16384.
	CallTrees int

	// AdminTokens is the path of a file with the bearer tokens of those who may see the admin page; "" asks for none.
	AdminTokens string
	// AdminTLS is how the admin page is served; the zero TLS is without. With ClientCA, what Admin shows needs a client
	// certificate.
	AdminTLS abate.TLS

	// AccessLog gets one record for each request; nil for none.
	AccessLog *slog.Logger
	// LogAll has every request logged, not only those that failed.
	LogAll bool
	// Adjust sets what a policy file cannot hold, such as an Observer; see policyfile.Load. It may be nil.
	Adjust func(service string, p *abate.Policy)
	// Sharing begins to share through the Redis of the policy file. Nil refuses files that name one; sharing.Redis is it.
	Sharing OpenSharing
	// Log gets what the proxy itself has to say; nil means slog.Default.
	Log *slog.Logger
}

func (c *Config) defaults() {
	orDuration(&c.ConnectTimeout, time.Second)
	orDuration(&c.HeaderTimeout, 10*time.Second)
	orDuration(&c.IdleTimeout, 5*time.Minute)
	orDuration(&c.StallTimeout, time.Minute)
	orDuration(&c.UpstreamIdleTimeout, 30*time.Second)
	if c.MaxBufferedBody == 0 {
		c.MaxBufferedBody = 64 << 10
	}
	if c.StaleMemory == 0 {
		c.StaleMemory = 64 << 20
	}
	if c.CallTrees == 0 {
		c.CallTrees = defaultCallTrees
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

func orDuration(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

// Proxy is one proxy. Make it with New, open the addresses of the policy file with Open, give it listeners for outgoing calls
// with Serve, and end it with Shutdown.
type Proxy struct {
	config   Config
	policies *policyfile.Set
	metrics  *abateprom.Metrics
	page     *abateadmin.Page
	registry *prometheus.Registry
	kept     *stale.Store

	services    sync.Map // *abate.Guard to *service
	posts       sync.Map // *abate.Gate to *post
	entrances   entrances
	instances   instances
	keyFiles    abatebolt.Files
	trees       callTrees
	adminTokens *watched[identity.Tokens] // nil when none are asked for
	adminTLS    *watched[tls.Config]      // nil without TLS
	lines       throttle                  // of the access log
	began       instant
	inside      h2.Config // of connections of clients that speak HTTP/2
	outside     h2.Config // of those to endpoints
	draining    atomic.Bool
	berths      berths

	life context.Context // until the last client has gone
	end  context.CancelFunc

	mu       sync.Mutex
	doors    map[*door]struct{}
	clients  map[*clientConn]struct{}
	tunnels  map[*tunnel]struct{}
	seated   int           // clients that have been accepted and have not gone
	standing int           // that wait for a place
	stood    uint64        // that have had to
	freed    chan struct{} // told when one has gone
	idle     chan struct{} // closed when draining and the last client has gone
}

// New loads the policy file and makes a proxy that listens nowhere yet. A file with mistakes gives all of them.
func New(c Config) (*Proxy, error) {
	c.defaults()
	clients, more := roomFor(openFiles(), c.MaxConnections)
	c.MaxConnections = clients
	p := &Proxy{
		config: c, registry: prometheus.NewRegistry(), kept: stale.New(c.StaleMemory), began: newInstant(),
		doors: map[*door]struct{}{}, clients: map[*clientConn]struct{}{}, tunnels: map[*tunnel]struct{}{}, idle: make(chan struct{}),
		freed: make(chan struct{}, 1), berths: berths{stock: int64(more), freed: make(chan struct{}, 1)},
	}
	metrics, err := abateprom.New(p.registry)
	if err != nil {
		return nil, fmt.Errorf("proxy: metrics: %w", err)
	}
	if err := p.registry.Register(ownMetrics{p}); err != nil {
		return nil, fmt.Errorf("proxy: metrics: %w", err)
	}
	p.metrics, p.trees.most = metrics, c.CallTrees
	p.page = p.newPage()
	adjust := []func(string, *abate.Policy){metrics.Adjust, p.page.Adjust}
	if c.Adjust != nil {
		adjust = append([]func(string, *abate.Policy){c.Adjust}, adjust...) // the others keep the Observer that they find
	}
	protect := []func(string, *abate.Protection){metrics.AdjustProtection, p.page.AdjustProtection, p.instances.adjust, p.keyFiles.AdjustProtection}
	if p.policies, err = policyfile.LoadWith(c.Policy, policyfile.Hooks{Policy: adjust, Protection: protect}); err != nil {
		return nil, errors.Join(err, p.keyFiles.Close())
	}
	if err := errors.Join(p.keyFiles.Err(), p.prepareEntrances()); err != nil {
		p.instances.close()
		return nil, errors.Join(err, p.keyFiles.Close())
	}
	p.prepareHTTP2()
	p.prepare()
	p.life, p.end = context.WithCancel(context.Background())
	go p.tick()
	return p, nil
}

// prepareEntrances reads certificates and tokens for the first time, and begins to share what is shared: here what does not
// go is a mistake.
func (p *Proxy) prepareEntrances() error {
	p.entrances.doors = map[string]*door{}
	if c := &p.config; c.AdminTokens != "" {
		p.adminTokens = watchTokens(c.AdminTokens)
	}
	if c := &p.config; c.AdminTLS.Enabled() {
		p.adminTLS = watchTLS(c.AdminTLS, tls.VerifyClientCertIfGiven)
	}
	p.entrances.mu.Lock()
	defer p.entrances.mu.Unlock()
	return errors.Join(append(p.readSecrets(), p.followRedis())...)
}

// prepare makes what belongs to each service before its first request, so that metrics, /guards and the page show all of them.
func (p *Proxy) prepare() {
	for _, name := range p.policies.Names() {
		if d, ok := p.policies.Service(name); ok {
			p.service(d.Guard, nil).fleetOf(&d)
			p.page.Add(d.Guard)
		}
	}
	for _, name := range p.policies.GateNames() {
		if g, ok := p.policies.Gate(name); ok {
			p.addGate(g)
			p.page.AddGate(g)
		}
	}
}

// Policies are the guards of the file, for reloading and watching it.
func (p *Proxy) Policies() *policyfile.Set { return p.policies }

// Watch reloads the policy file when it changes, until ctx ends.
func (p *Proxy) Watch(ctx context.Context) error { return p.policies.Watch(ctx) }

// Reload reads the policy file now. One with mistakes changes nothing and gives all of them.
func (p *Proxy) Reload() error {
	err := p.policies.Reload()
	if err == nil {
		p.prepare()
		p.follow()
	}
	return err
}

// tick does what is done once a second: look for what the policy file has new, close connections that nobody uses.
func (p *Proxy) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-p.life.Done():
			return
		case <-t.C:
			p.prepare()
			p.follow()
			p.trees.sweep()
			now := abate.Now()
			p.services.Range(func(_, kept any) bool {
				s := kept.(*service)
				if s.listed() {
					s.sweep(now - p.config.UpstreamIdleTimeout)
				} else {
					s.sweep(now) // nothing is sent to it any more
					p.page.Remove(s.guard)
				}
				return true
			})
			p.posts.Range(func(g, _ any) bool {
				if _, ok := p.policies.Gate(g.(*abate.Gate).Name()); !ok {
					p.page.RemoveGate(g.(*abate.Gate))
				}
				return true
			})
		}
	}
}

// Ready tells whether the proxy takes requests: until Shutdown.
func (p *Proxy) Ready() bool { return !p.draining.Load() }

// Shutdown takes no new clients, tells those there are to go after the request under way, and returns when the last has
// gone, and all that was done under idempotency keys is recorded, or when ctx ends: then those that are left are cut off, and
// the error is ctx's.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.draining.Store(true)
	p.mu.Lock()
	for d := range p.doors {
		d.dismiss()
	}
	if len(p.clients) == 0 {
		p.emptied()
	}
	p.mu.Unlock()
	var err error
	select {
	case <-p.idle:
	case <-ctx.Done():
		err = ctx.Err()
		p.cutOff()
	}
	if undone := holding.Drain(ctx); err == nil { // before the fleet is left, through which they are recorded
		err = undone
	}
	p.end()
	p.page.Close()
	p.services.Range(func(_, s any) bool {
		s.(*service).close()
		return true
	})
	p.entrances.mu.Lock()
	defer p.entrances.mu.Unlock()
	p.instances.close()
	return errors.Join(err, p.keyFiles.Close())
}

func (p *Proxy) cutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.clients {
		c.cut()
	}
	for t := range p.tunnels {
		t.close()
	}
}

// emptied notes that the last client of a draining proxy has gone. mu is held.
func (p *Proxy) emptied() {
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// enter and leave keep the list of clients.
func (p *Proxy) enter(c *clientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[c] = struct{}{}
}

func (p *Proxy) leave(c *clientConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clients, c)
	if len(p.clients) == 0 && p.draining.Load() {
		p.emptied()
	}
}
