// Package inbound is the receiving side: a Gate stands in front of one service and decides which requests it gets to
// do, under one Protection. An Arrival is one request there, as a state machine that reads no clock, for authors of
// adapters: package abatehttp's Handler and the proxy drive it.
package inbound

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/caught"
	"github.com/abate-go/abate/internal/chance"
	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/comeback"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// Gate stands in front of one service and decides what it gets to do, under one Protection: the receiving side, as
// Guard is the calling one. It holds the state that requests share (buckets, concurrency limit, idempotency keys), so
// make one per service, once, and keep it. It is safe for concurrent use, has no goroutine and needs no closing.
//
// A nil *Gate, and one that NewGate has not made, lets every request pass: it is called "unguarded", and Update is an
// error.
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
	panics  caught.Panics
	load    comeback.Line   // of those who were refused for load
	tokens  *comeback.Lines // of those who were refused by the rate limit, for each bucket; nil before there is one
}

// inForce returns the settings that a request arrives under.
func (g *Gate) inForce() *gateSettings {
	if g != nil {
		if s := g.current.Load(); s != nil {
			return s
		}
	}
	return ungated
}

// ungated is what is in force where nobody has made a gate.
var ungated = func() *gateSettings {
	g := &Gate{name: "unguarded"}
	return g.compile(Protection{}.WithDefaults(), 0)
}()

// gateSettings is a protection in the form that requests use. It is immutable; a part that is off is nil.
type gateSettings struct {
	gate       *Gate
	protection Protection
	rnd        func() uint64
	observer   GateObserver
	limiter    *ratelimit.Limiter
	tokens     *comeback.Lines
	fleet      FleetLimiter
	shedder    *shed.Shedder
	cpu        bool // the processor is looked at
	store      idempotency.Store
	earlier    []earlierStore // where keys were kept before
	trusted    []netip.Prefix
	sockets    bool // peers on Unix sockets are trusted
}

// FleetLimiter decides a rate limit that several instances share. TryTake answers at once when what this instance holds
// is enough; Take asks the others and returns within a limit of its own. Both always decide: what holds while nobody
// can be asked is the limiter's to know.
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
	g.parts.panics.Log = caught.Log
	g.nextCPU.Store(math.MinInt64) // at once, also on a clock that is before its origin
	if err := g.Update(p); err != nil {
		return nil, err
	}
	return g, nil
}

var errUnmade = errors.New("abate: this gate was not made by NewGate: " +
	"it lets everything pass, and there is nothing to change")

// orNew returns the part, made if it is not there yet.
func orNew[T any](part **T, make func() *T) *T {
	if *part == nil {
		*part = make()
	}
	return *part
}

// Name returns the name given to NewGate.
func (g *Gate) Name() string { return g.inForce().gate.name }

// Update puts another protection in force. Requests that are being handled finish under the one they arrived at;
// buckets, limits and keys carry over. An invalid protection changes nothing.
func (g *Gate) Update(p Protection) error { return g.UpdateAt(clock.Now(), p) }

// UpdateAt is Update at a time of the caller's clock, for those that drive Arrivals themselves.
func (g *Gate) UpdateAt(now time.Duration, p Protection) error {
	if g == nil || g.name == "" {
		return errUnmade
	}
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
	s := &gateSettings{gate: g, protection: p, rnd: p.Rand, observer: p.Observer, store: p.Store,
		trusted: prefixes(p.TrustedPeers), sockets: slices.Contains(p.TrustedPeers, unixPeers)}
	if s.rnd == nil {
		s.rnd = chance.Source
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
		s.limiter = orNew(&k.limiter, func() *ratelimit.Limiter { return ratelimit.New(p.RateLimit.Config, chance.Seed) })
	}
	if p.RateLimit.Enabled() && k.tokens == nil {
		k.tokens = new(comeback.Lines)
	}
	s.tokens = k.tokens
	if p.Shed.Enabled() || k.shedder != nil { // one that was on counts on, so that it can be switched on again
		s.shedder = orNew(&k.shedder, func() *shed.Shedder { return shed.New(p.Shed) })
	}
	s.cpu = p.Shed.Enabled() && (p.CPU != nil || p.Shed.CPU > 0)
	switch {
	case s.store != nil || !p.Idempotency.Enabled():
	case p.Idempotency.Fleet:
		s.store = noStore{errNoFleet}
	case p.Idempotency.File != "":
		s.store = noStore{errNoFile}
	default:
		s.store = orNew(&k.memory, func() *idempotency.Memory {
			return idempotency.NewMemory(p.Idempotency.MaxMemory, clock.Now)
		})
		k.memory.Reconfigure(p.Idempotency.MaxMemory)
		k.memory.Shorten(p.Idempotency.Floor(), g.keysForgotten)
	}
	s.earlier = s.earlierThan(g.current.Load(), now)
	return s
}

// hash tells keys of the rate limit apart.
func (s *gateSettings) hash(key string) uint64 { return maphash.String(chance.Seed, key) }

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

// unixPeers is what stands in trustedPeers for all peers on Unix sockets, which have no address.
const unixPeers = "unix"

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
func (g *Gate) Describe() *Protection { return &g.inForce().protection }

// Trusts reports whether the headers of a peer are believed.
func (g *Gate) Trusts(peer netip.Addr) bool {
	if !peer.IsValid() {
		return g.inForce().sockets
	}
	peer = peer.Unmap().WithZone("")
	for _, p := range g.inForce().trusted {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

// noStore is where keys are that are to be shared or to survive, while nobody has opened that place. It cannot be
// reached: in the memory of each instance, a request would be done once by each, and once again after a restart.
type noStore struct{ why error }

var (
	errNoFleet = errors.New("abate: idempotency.fleet is set, and there is nothing to share keys through; " +
		"set Protection.Store, as AdjustProtection of an abateredis.Fleet does")
	errNoFile = errors.New("abate: idempotency.file is set, and nobody has opened it; " +
		"set Protection.Store, as AdjustProtection of abatebolt.Files does")
)

func (s noStore) Begin(context.Context, string, idempotency.Fingerprint, time.Duration) (idempotency.Begun, error) {
	return idempotency.Begun{}, s.why
}

func (s noStore) Renew(context.Context, string, uint64, time.Duration) error { return s.why }

func (s noStore) Complete(context.Context, string, uint64, idempotency.Response, time.Duration) error {
	return s.why
}

func (s noStore) Fail(context.Context, string, uint64) error { return s.why }

// Idempotency returns where the keys are kept and how, and whether keys are looked at.
func (g *Gate) Idempotency() (idempotency.Store, *idempotency.Config, bool) {
	s := g.inForce()
	c := &s.protection.Idempotency
	return s.store, c, c.Enabled()
}

// KeyDecided tells the gate's observer what became of an idempotency key. Drivers call it.
func (g *Gate) KeyDecided(detail string) {
	g.inForce().emit(GateEvent{Kind: KeyDecided, At: clock.Now(), Detail: detail})
}

// ComeBack is how long a client should stay away that is refused for another reason than the gate's own: its
// idempotency key is in use, or the store of the keys is away. Those who are told come back one after the other, in one
// line with those who are refused for load.
func (g *Gate) ComeBack() time.Duration { return g.ComeBackAt(clock.Now()) }

// keysForgotten tells the gate's observer that its store of idempotency keys was full and has forgotten finished ones
// early.
func (g *Gate) keysForgotten(s idempotency.Shortened) {
	g.current.Load().emit(GateEvent{Kind: KeysForgotten, At: clock.Now(), Delay: s.Held})
}

// KeysUsage returns how full the gate's store of idempotency keys is, if keys are looked at and the store can tell.
func (g *Gate) KeysUsage() (u idempotency.Usage, ok bool) {
	s := g.inForce()
	if m, measured := s.store.(idempotency.Measured); measured && s.protection.Idempotency.Enabled() {
		return m.Usage(), true
	}
	return u, false
}

// Scarce reports whether little is left of what the gate's service can do at once, see shed.Shedder. So a gate is the
// core.Places of the guards of what its service calls: who waits must not hold the last of them. A gate that sheds
// nothing knows nothing. It takes no lock.
func (g *Gate) Scarce() bool {
	s := g.inForce()
	return s.shedder != nil && s.shedder.Scarce()
}

// GateState is a gate's state at one moment, for dashboards and people. Parts that are off are zero.
type GateState struct {
	Shed      shed.State
	RateLimit ratelimit.State
	Panics    uint64 // panics of observers that were caught so far; they are logged, see Observer
}

// State reads the gate's state. It changes nothing.
func (g *Gate) State() GateState { return g.StateAt(clock.Now()) }

// StateAt is State at a time of the caller's clock, for those that drive Arrivals themselves.
func (g *Gate) StateAt(now time.Duration) GateState {
	s := g.inForce()
	st := GateState{Panics: s.gate.parts.panics.Count()}
	if s.protection.Shed.Enabled() {
		st.Shed = s.shedder.State(now)
	}
	if s.limiter != nil {
		st.RateLimit = s.limiter.State()
	}
	return st
}
