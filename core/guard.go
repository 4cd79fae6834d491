package core

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/caught"
	"github.com/abate-go/abate/internal/chance"
	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/comeback"
	"github.com/abate-go/abate/policy/retry"
)

// Guard is one named dependency under one policy. It holds the state that calls share (breaker, budget, bulkhead), so
// make one per dependency, once, and keep it: a guard made per call limits nothing. It is safe for concurrent use, has
// no goroutine and needs no closing.
//
// A nil *Guard, and one that New has not made, lets every call pass as it is, wherever a guard is taken, so that a
// program whose guard is an option needs no second path. It is called "unguarded", and has no observer but that of a
// context; Update and Override are errors.
type Guard struct {
	name     string
	current  atomic.Pointer[settings]
	update   sync.Mutex // held by Update, never on the way of a call
	parts    parts      // guarded by update
	written  Policy     // as Update got it, before an override; guarded by update
	override Override   // guarded by update
}

// parts are what calls share. Once made they stay with the guard, also while the policy has them switched off, so that
// switching a budget off and on again does not refill it.
type parts struct {
	policies
	typical typicalLatency
	peer    peer
	opening opening
	panics  caught.Panics
	line    comeback.Line
}

// inForce returns the settings that a call begins under.
func (g *Guard) inForce() *settings {
	if g != nil {
		if s := g.current.Load(); s != nil {
			return s
		}
	}
	return unguarded
}

// unguarded is what is in force where nobody has made a guard.
var unguarded = func() *settings {
	g := &Guard{name: "unguarded"}
	g.parts.panics.Log = caught.Log
	s, _ := g.compile(Policy{RetryOwner: OwnerNone}.WithDefaults(), 0)
	return s
}()

var errUnmade = errors.New("abate: this guard was not made by New: it lets everything pass, and there is nothing to " +
	"change")

// settings is a policy in the form that calls use. It is immutable; the parts it points to are the guard's. A policy
// that is off is nil.
type settings struct {
	name     string
	policy   Policy  // under the override
	written  *Policy // without it; nil while there is none
	rnd      func() uint64
	observer Observer
	retries  retryLists

	policies
	retry   *retry.Policy
	shared  *budget.Budget // with other guards, beside the budget of policies
	typical *typicalLatency
	peer    *peer

	override Override
	budgeted bool // there is a budget, or two
	backsOff bool // a retry waits even when nobody asked for it
	obeys    bool // an allowance counts
	timed    bool // some part needs to know when an attempt ended
	limited  bool // the policy sets a time limit
	opening  *opening
	panics   *caught.Panics
	line     *comeback.Line
}

// New makes the guard of the dependency called name. The name is the label in errors, events and metrics. An invalid
// policy gives an error that joins one *FieldError per mistake.
func New(name string, p Policy) (*Guard, error) {
	if name == "" {
		return nil, fmt.Errorf("abate: a guard needs a name: it is what errors and metrics call the dependency")
	}
	g := &Guard{name: name}
	g.parts.panics.Log = caught.Log
	if err := g.Update(p); err != nil {
		return nil, err
	}
	return g, nil
}

// Name returns the name given to New.
func (g *Guard) Name() string { return g.inForce().name }

// Update puts another policy in force. Calls that are running finish under the one they began with; breaker, budget,
// bulkhead and latency estimate carry their state over, and a budget is not refilled. An invalid policy changes
// nothing.
func (g *Guard) Update(p Policy) error { return g.UpdateAt(clock.Now(), p) }

// UpdateAt is Update at a time of the caller's clock, for those that drive Calls themselves.
func (g *Guard) UpdateAt(now time.Duration, p Policy) error {
	if g == nil || g.name == "" {
		return errUnmade
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("abate: policy of %q: %w", g.name, err)
	}
	g.change(now, "", func() { g.written = p.clone() })
	return nil
}

// change edits what is written or the override, and puts the policy that comes of it in force. detail is for the
// observer.
func (g *Guard) change(now time.Duration, detail string, edit func()) {
	before, next, change := g.replace(now, edit)
	if before != nil {
		next.emit(Event{Kind: PolicyChanged, At: now, Detail: detail})
	}
	if change.From != change.To {
		g.breakerChanged(change)
	}
}

// replace swaps the settings, and tells what that did to the breaker.
func (g *Guard) replace(now time.Duration, edit func()) (before, next *settings, change breaker.Change) {
	g.update.Lock()
	defer g.update.Unlock()
	edit()
	before = g.current.Load()
	next, change = g.compile(g.override.apply(g.written.clone()).WithDefaults(), now)
	if g.override != NoOverride {
		written := g.written.clone().WithDefaults()
		next.written = &written
	}
	g.current.Store(next)
	return before, next, change
}

// clone cuts the policy loose from the caller's slices.
func (p Policy) clone() Policy {
	p.RetryOn, p.NeverRetryOn = slices.Clone(p.RetryOn), slices.Clone(p.NeverRetryOn)
	p.RetryMethods = slices.Clone(p.RetryMethods)
	p.Fallback.Identity = slices.Clone(p.Fallback.Identity)
	return p
}

// compile builds the settings for p and brings the guard's parts up to it. It returns what that did to the breaker.
func (g *Guard) compile(p Policy, now time.Duration) (*settings, breaker.Change) {
	s := &settings{
		name:     g.name,
		policy:   p,
		rnd:      p.Rand,
		observer: p.Observer,
		retry:    retry.New(p.Retry),
		retries:  retryLists{on: compileConditions(p.RetryOn), never: compileConditions(p.NeverRetryOn)},
		typical:  &g.parts.typical,
		override: g.override,
		peer:     &g.parts.peer,
		opening:  &g.parts.opening,
		panics:   &g.parts.panics,
		line:     &g.parts.line,
	}
	if s.rnd == nil {
		s.rnd = chance.Source
	}
	change := g.parts.reconfigure(&p, now)
	if p.CircuitBreaker.Enabled() {
		if forced := g.openCircuit(p, now); forced.From != forced.To {
			change = forced
		}
	}
	s.policies = g.parts.enabled(&p, s.rnd, g.breakerChanged)
	if s.shared = p.SharedBudget; s.shared == s.budget {
		s.shared = nil
	}
	s.budgeted = s.budget != nil || s.shared != nil
	s.obeys, s.backsOff = p.RetryOwner != OwnerNone, p.Backoff != retry.NoBackoff || p.Delay != nil
	s.limited = p.Timeout > 0 || p.AttemptTimeout > 0
	s.timed = s.timesAttempts() || s.budgeted || s.observer != nil || s.limited || p.MaxElapsed > 0
	return s, change
}

// openCircuit notes why a circuit that p forces open is open, before there is a breaker for it. It returns the change
// of a breaker that begins so.
func (g *Guard) openCircuit(p Policy, now time.Duration) (change breaker.Change) {
	switch forced := p.CircuitBreaker.Mode == breaker.ForcedOpen; {
	case forced:
		if g.parts.breaker == nil && g.current.Load() != nil {
			change = breaker.Change{From: breaker.Closed, To: breaker.Open, At: now, Reason: forcedOpen}
		}
		g.parts.opening.begin(g.name, forcedOpen)
	case g.parts.breaker == nil:
		g.parts.opening.begin(g.name, "")
	}
	return change
}

// delays reports whether a retry after o waits, for which it needs the time and a random number.
func (s *settings) delays(o *Outcome) bool {
	return s.backsOff || o.RetryAfter > 0
}

// breakerChanged passes the breaker's transitions on to the pacer, for which a recovery is a new beginning, and to
// whichever observer is in force at that moment.
func (g *Guard) breakerChanged(c breaker.Change) {
	if c.To == breaker.Open {
		g.parts.opening.begin(g.name, c.Reason)
	}
	if s := g.current.Load(); s != nil {
		if c.To == breaker.Closed {
			s.opening.end(s.name, s.breaker)
		}
		if s.pacer != nil && recovered(c) && !(c.From == breaker.HalfOpen && s.shadowed()) {
			s.pacer.Restart(c.At, s.rnd())
		}
		s.emit(Event{Kind: BreakerChanged, At: c.At, From: c.From, To: c.To, Detail: c.Reason})
	}
}

// shadowed reports that the circuit breaker keeps nobody out, whatever its state.
func (s *settings) shadowed() bool { return s.policy.CircuitBreaker.Mode == breaker.Shadow }

// recovered reports a change after which attempts pass that did not before, also if somebody opened and closed the
// circuit by hand.
func recovered(c breaker.Change) bool {
	shut := func(s breaker.State) bool { return s == breaker.Open || s == breaker.HalfOpen }
	return shut(c.From) && !shut(c.To)
}

// Hedges reports whether the policy sends hedges.
func (g *Guard) Hedges() bool { return g.inForce().hedge != nil }

// Describe returns the policy in force with every default written out, without an Override, of which State tells. It is
// shared: do not change it.
func (g *Guard) Describe() *Policy {
	s := g.inForce()
	if s.written != nil {
		return s.written
	}
	return &s.policy
}

// Budget is the guard's retry budget, nil while the policy has none: for adapters that share it with other instances.
func (g *Guard) Budget() *budget.Budget { return g.inForce().budget }

// Breaker is the guard's circuit breaker, nil while the policy has none: for adapters that share it with other
// instances.
func (g *Guard) Breaker() *breaker.Breaker { return g.inForce().breaker }

// ComeBack is how long a client should stay away whose call the guard has ended for this reason: for whoever serves
// requests by guarded calls, and says so with a 503. While the circuit is open it is until a probe may pass, and those
// who are told come at 20 a second from then on, at most as much later as the circuit will have been open by then, and
// half a minute. Else it is a second, and so on.
func (g *Guard) ComeBack(reason error) time.Duration { return g.ComeBackAt(clock.Now(), reason) }

// State reads the guard's state. It takes no permit and changes nothing, but the breaker and budget catch up with the
// time.
func (g *Guard) State() State { return g.StateAt(clock.Now()) }
