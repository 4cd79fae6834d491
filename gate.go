package abate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// Gate stands in front of one service and decides what it gets to do, under one Protection: the receiving side, as Guard is
// the calling one. It holds the state that requests share (buckets, concurrency limit, idempotency keys), so make one per
// service, once, and keep it. It is safe for concurrent use, has no goroutine and needs no closing.
type Gate struct {
	name    string
	current atomic.Pointer[gateSettings]
	update  sync.Mutex
	parts   gateParts // guarded by update
	nextCPU atomic.Int64
}

// gateParts are what requests share. Once made they stay, also while they are switched off.
type gateParts struct {
	limiter *ratelimit.Limiter
	shedder *shed.Shedder
	memory  *idempotency.Memory
}

// gateSettings is a protection in the form that requests use. It is immutable; a part that is off is nil.
type gateSettings struct {
	gate       *Gate
	protection Protection
	rnd        func() uint64
	observer   GateObserver
	limiter    *ratelimit.Limiter
	fleet      FleetLimiter
	shedder    *shed.Shedder
	cpu        func() float64
	store      idempotency.Store
	trusted    []netip.Prefix
}

// FleetLimiter decides a rate limit that several instances share. TryTake answers at once when what this instance holds is
// enough; Take asks the others and returns within a limit of its own. Both always decide: what holds while nobody can be
// asked is the limiter's to know.
type FleetLimiter interface {
	TryTake(now time.Duration, key string, cost float64) (ratelimit.Decision, bool)
	Take(ctx context.Context, key string, cost float64) ratelimit.Decision
}

// NewGate makes the gate of the service called name. The name is the label in answers, events and metrics. An invalid
// protection gives an error that joins one *FieldError per mistake.
func NewGate(name string, p Protection) (*Gate, error) {
	if name == "" {
		return nil, fmt.Errorf("abate: a gate needs a name: it is what answers and metrics call the service")
	}
	g := &Gate{name: name}
	g.nextCPU.Store(math.MinInt64) // at once, also on a clock that is before its origin
	if err := g.Update(p); err != nil {
		return nil, err
	}
	return g, nil
}

// Name returns the name given to NewGate.
func (g *Gate) Name() string { return g.name }

// Update puts another protection in force. Requests that are being handled finish under the one they arrived at; buckets,
// limits and keys carry over. An invalid protection changes nothing.
func (g *Gate) Update(p Protection) error { return g.UpdateAt(clock(), p) }

// UpdateAt is Update at a time of the caller's clock, for those that drive Arrivals themselves.
func (g *Gate) UpdateAt(now time.Duration, p Protection) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("abate: protection of %q: %w", g.name, err)
	}
	g.update.Lock()
	defer g.update.Unlock()
	g.current.Store(g.compile(p.clone().WithDefaults(), now))
	return nil
}

// compile builds the settings for p and brings the gate's parts up to it.
func (g *Gate) compile(p Protection, now time.Duration) *gateSettings {
	s := &gateSettings{gate: g, protection: p, rnd: p.Rand, observer: p.Observer, cpu: p.CPU, store: p.Store, trusted: prefixes(p.TrustedPeers)}
	if s.rnd == nil {
		s.rnd = globalRandom
	}
	k := &g.parts
	if k.limiter != nil {
		k.limiter.Reconfigure(now, p.RateLimit.Config)
	}
	if k.shedder != nil {
		k.shedder.Reconfigure(now, p.Shed)
	}
	switch {
	case !p.RateLimit.Enabled():
	case p.Fleet != nil:
		s.fleet = p.Fleet
	default:
		s.limiter = orNew(&k.limiter, func() *ratelimit.Limiter { return ratelimit.New(p.RateLimit.Config, hashSeed) })
	}
	if p.Shed.Enabled() || k.shedder != nil { // one that was on counts on, so that it can be switched on again
		s.shedder = orNew(&k.shedder, func() *shed.Shedder { return shed.New(p.Shed) })
	}
	switch {
	case !p.Shed.Enabled():
		s.cpu = nil
	case s.cpu == nil && p.Shed.CPU > 0:
		s.cpu = processCPU
	}
	switch {
	case s.store != nil || !p.Idempotency.Enabled():
	case p.Idempotency.Fleet:
		s.store = noStore{}
	default:
		s.store = orNew(&k.memory, func() *idempotency.Memory { return idempotency.NewMemory(p.Idempotency.MaxMemory, clock) })
		k.memory.Reconfigure(p.Idempotency.MaxMemory)
	}
	return s
}

// prefixes reads addresses and CIDRs that Validate has checked.
func prefixes(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if p, ok := parsePrefix(text); ok {
			all = append(all, p)
		}
	}
	return all
}

func parsePrefix(text string) (netip.Prefix, bool) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, false
		}
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), err == nil
}

// Describe returns the protection in force with every default written out. It is shared: do not change it.
func (g *Gate) Describe() *Protection { return &g.current.Load().protection }

// Trusts tells whether the headers of a peer are believed.
func (g *Gate) Trusts(peer netip.Addr) bool {
	peer = peer.Unmap().WithZone("")
	for _, p := range g.current.Load().trusted {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

// noStore is where keys are that are to be shared, while there is nothing to share them through. It cannot be reached: in
// the memory of each instance, a request would be done once by each.
type noStore struct{}

var errNoStore = errors.New("abate: idempotency.fleet is set, and there is nothing to share keys through; set Protection.Store, as AdjustProtection of an abateredis.Fleet does")

func (noStore) Begin(context.Context, string, idempotency.Fingerprint, time.Duration) (idempotency.Begun, error) {
	return idempotency.Begun{}, errNoStore
}

func (noStore) Renew(context.Context, string, uint64, time.Duration) error { return errNoStore }

func (noStore) Complete(context.Context, string, uint64, idempotency.Response, time.Duration) error {
	return errNoStore
}

func (noStore) Fail(context.Context, string, uint64) error { return errNoStore }

// Idempotency returns where the keys are kept and how, and whether keys are looked at.
func (g *Gate) Idempotency() (idempotency.Store, *idempotency.Config, bool) {
	s := g.current.Load()
	c := &s.protection.Idempotency
	return s.store, c, c.Enabled()
}

// KeyDecided tells the gate's observer what became of an idempotency key. Drivers call it.
func (g *Gate) KeyDecided(detail string) {
	g.current.Load().emit(GateEvent{Kind: KeyDecided, At: clock(), Detail: detail})
}

// GateState is a gate's state at one moment, for dashboards and people. Parts that are off are zero.
type GateState struct {
	Shed      shed.State
	RateLimit ratelimit.State
}

// State reads the gate's state. It changes nothing.
func (g *Gate) State() GateState { return g.StateAt(clock()) }

// StateAt is State at a time of the caller's clock, for those that drive Arrivals themselves.
func (g *Gate) StateAt(now time.Duration) GateState {
	var st GateState
	s := g.current.Load()
	if s.protection.Shed.Enabled() {
		st.Shed = s.shedder.State(now)
	}
	if s.limiter != nil {
		st.RateLimit = s.limiter.State()
	}
	return st
}
