package proxy

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/policy/reach"
	"github.com/abate-go/abate/policyfile"
)

// The names under which what goes past the policy is counted, as if each were a service. Their guards let everything
// pass.
const (
	passName   = "(pass-through)"
	tunnelName = "(tunnels)"
)

// outside is what programs reach beside the services of the policy file: hosts that plain requests are passed on to,
// and those that CONNECT may open a tunnel to. No policy guards it. All of it is counted.
type outside struct {
	services     *services
	pass, tunnel *abate.Guard
	in           atomic.Pointer[allowed]

	mu       sync.Mutex
	passages map[target]*passage // under in
	others   int64               // requests to hosts that are no longer among them
	stray    map[string]int64    // see Outside.NoService
}

// allowed is what one load of the policy file lets through.
type allowed struct {
	from          *policyfile.Outside
	connect, pass reach.List
}

// target is where a request is passed on to.
type target struct {
	scheme, authority string
	to                netip.AddrPort // of a connection that was redirected here; else the zero one
}

// mostPassages is how many of them are known at once. The one that was used least lately makes room.
const mostPassages = 1000

// passage is the way to one host that the policy file does not list.
type passage struct {
	route
	calls int64
	last  time.Duration
}

// init makes the guards. adjust has them observed.
func (o *outside) init(s *services, adjust func(name string, p *abate.Policy)) error {
	o.services, o.passages = s, map[target]*passage{}
	for name, into := range map[string]**abate.Guard{passName: &o.pass, tunnelName: &o.tunnel} {
		var p abate.Policy
		adjust(name, &p)
		g, err := abate.New(name, p)
		if err != nil {
			return err
		}
		*into = g
	}
	return nil
}

// lists returns what is allowed now. own is where requests are passed on to besides, since the proxy began.
func (o *outside) lists(own []string) *allowed {
	now := o.services.policies.Outside()
	if a := o.in.Load(); a != nil && a.from == now {
		return a
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.in.Load(); a != nil && a.from == now {
		return a
	}
	a := &allowed{from: now}
	a.connect, a.pass = policyfile.Outside{Connect: now.Connect, PassThrough: slices.Concat(now.PassThrough, own)}.Lists()
	for to := range o.passages { // perhaps it is not allowed any more
		o.drop(to)
	}
	o.in.Store(a)
	return a
}

// drop forgets a passage. mu is held.
func (o *outside) drop(to target) {
	p := o.passages[to]
	o.others += p.calls
	p.service.close()
	delete(o.passages, to)
}

// passOn has a request go to a host that the policy file does not list, and reports whether the file lets it.
func (o *outside) passOn(r *route, a *allowed, to target) bool {
	list := a.pass
	host, port := to.hostPort()
	if to.to.IsValid() && !list.Decide(to.to.Addr().String(), port, to.to.Addr()).Allowed {
		to = to.byName(host, port)
	}
	if !list.May(host, port) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.in.Load(); now != a { // the file has just been loaded: what stays must be what it allows
		if list = now.pass; !list.May(host, port) {
			return false
		}
	}
	p := o.passages[to]
	if p == nil {
		if len(o.passages) >= mostPassages {
			o.drop(o.oldest())
		}
		to.authority = strings.Clone(to.authority) // it lies in the memory of the request
		p = o.newPassage(to, &screen{list, "outside.passThrough", strings.Clone(host), port})
		o.passages[to] = p
	}
	p.calls, p.last = p.calls+1, core.Now()
	*r = p.route
	return true
}

func (o *outside) oldest() (oldest target) {
	var last time.Duration = core.NoDeadline
	for to, p := range o.passages {
		if p.last < last {
			oldest, last = to, p.last
		}
	}
	return oldest
}

// hostPort is the host without brackets and the port.
func (t *target) hostPort() (host string, port uint16) {
	port = 80
	if t.scheme == "https" {
		port = 443
	}
	host = t.authority
	if h, p, err := net.SplitHostPort(t.authority); err == nil {
		host = h
		if n, err := strconv.ParseUint(p, 10, 16); err == nil {
			port = uint16(n)
		}
	}
	if t.to.IsValid() {
		port = t.to.Port()
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
}

// byName is the target of a redirected connection without the address that it was meant for. Who sends a request writes
// what he likes into its Host: a name that the list has says nothing of that address. So the name is looked up.
func (t target) byName(host string, port uint16) target {
	t.to = netip.AddrPort{}
	if _, named := t.hostPort(); named != port {
		t.authority = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	return t
}

// newPassage makes the way to a host: a service with one endpoint. mu is held.
func (o *outside) newPassage(to target, s *screen) *passage {
	policy := policyfile.Policy{Upstreams: []string{to.scheme + "://" + to.authority}}
	policy.InternalHeaders = core.OmitInternal
	policy = policy.WithDefaults()
	d := policyfile.Destination{Guard: o.pass, Policy: &policy, Label: passName, Upstream: true}
	svc := &service{services: o.services, guard: o.pass}
	way, _ := svc.newFleet(&policy, 0, new(fleet), new(approach))
	e := way.endpoints[0]
	if e.screen = s; to.to.IsValid() {
		e.addr = to.to.String()
	}
	svc.put(way, new(fleet))
	return &passage{route: route{d, svc, o.stats(), nil}}
}

func (o *outside) stats() *metrics.Endpoint { return o.services.metrics.Endpoint(passName, passName) }

// tick closes connections that nobody uses.
func (o *outside) tick(then time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.passages {
		p.service.sweep(then)
	}
}

func (o *outside) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for to := range o.passages {
		o.drop(to)
	}
}

// Passed is how many requests were passed on to a host that the policy file does not list.
type Passed struct {
	Host  string `json:"host"` // with its scheme
	Calls int64  `json:"calls"`
}

// report lists the hosts, those with most requests first.
func (o *outside) report() []Passed {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]Passed, 0, len(o.passages)+1)
	for to, p := range o.passages {
		all = append(all, Passed{to.scheme + "://" + to.authority, p.calls})
	}
	sort.SliceStable(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[j].Calls, all[i].Calls), cmp.Compare(all[i].Host, all[j].Host)) < 0
	})
	if o.others > 0 {
		all = append(all, Passed{"(others)", o.others})
	}
	return all
}

// strayed counts a request that belongs to no service, and strays tells how many did.
func (o *outside) strayed(meant string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stray == nil {
		o.stray = map[string]int64{}
	}
	o.stray[meant]++
}

func (o *outside) strays() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.stray)
}
