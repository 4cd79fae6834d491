package abate

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/policy/throttle"
)

// Guard is one named dependency under one policy. It holds the state that calls share (breaker, budget, bulkhead), so
// make one per dependency, once, and keep it: a guard made per call limits nothing. It is safe for concurrent use, has
// no goroutine and needs no closing.
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
	budget   *budget.Budget
	breaker  *breaker.Breaker
	bulkhead *bulkhead.Bulkhead
	limiter  *ratelimit.Limiter
	pacer    *pacing.Pacer
	throttle *throttle.Throttle
	hedge    *hedge.Policy
	typical  typicalLatency
	peer     peer
	opening  opening
}

// settings is a policy in the form that calls use. It is immutable; the parts it points to are the guard's. A part that
// is off is nil.
type settings struct {
	name     string
	policy   Policy  // under the override
	written  *Policy // without it; nil while there is none
	rnd      func() uint64
	observer Observer
	retries  retryLists

	retry    *retry.Policy
	budget   *budget.Budget
	breaker  *breaker.Breaker
	bulkhead *bulkhead.Bulkhead
	limiter  *ratelimit.Limiter
	pacer    *pacing.Pacer
	throttle *throttle.Throttle
	hedge    *hedge.Policy
	typical  *typicalLatency
	peer     *peer

	override Override
	backsOff bool // a retry waits even when nobody asked for it
	obeys    bool // an allowance counts
	timed    bool // some part needs to know when an attempt ended
	opening  *opening
}

// New makes the guard of the dependency called name. The name is the label in errors, events and metrics. An invalid
// policy gives an error that joins one *FieldError per mistake.
func New(name string, p Policy) (*Guard, error) {
	if name == "" {
		return nil, fmt.Errorf("abate: a guard needs a name: it is what errors and metrics call the dependency")
	}
	g := &Guard{name: name}
	if err := g.Update(p); err != nil {
		return nil, err
	}
	return g, nil
}

// Name returns the name given to New.
func (g *Guard) Name() string { return g.name }

// Update puts another policy in force. Calls that are running finish under the one they began with; breaker, budget,
// bulkhead and latency estimate carry their state over, and a budget is not refilled. An invalid policy changes nothing.
func (g *Guard) Update(p Policy) error { return g.UpdateAt(clock(), p) }

// UpdateAt is Update at a time of the caller's clock, for those that drive Calls themselves.
func (g *Guard) UpdateAt(now time.Duration, p Policy) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("abate: policy of %q: %w", g.name, err)
	}
	g.change(now, "", func() { g.written = p.clone() })
	return nil
}

// change edits what is written or the override, and puts the policy that comes of it in force. detail is for the observer.
func (g *Guard) change(now time.Duration, detail string, edit func()) {
	g.update.Lock()
	edit()
	before := g.current.Load()
	next, change := g.compile(g.override.apply(g.written.clone()).WithDefaults(), now)
	if g.override != NoOverride {
		written := g.written.clone().WithDefaults()
		next.written = &written
	}
	g.current.Store(next)
	g.update.Unlock()
	if before != nil {
		next.emit(Event{Kind: PolicyChanged, At: now, Detail: detail})
	}
	if change.From != change.To {
		g.breakerChanged(change)
	}
}

// clone cuts the policy loose from the caller's slices.
func (p Policy) clone() Policy {
	p.RetryOn, p.NeverRetryOn = slices.Clone(p.RetryOn), slices.Clone(p.NeverRetryOn)
	p.RetryMethods, p.Upstreams, p.Routes = slices.Clone(p.RetryMethods), slices.Clone(p.Upstreams), slices.Clone(p.Routes)
	p.Kafka = p.Kafka.Clone()
	return p
}

// compile builds the settings for p and brings the guard's parts up to it. It returns what that did to the breaker.
func (g *Guard) compile(p Policy, now time.Duration) (*settings, breaker.Change) {
	s := &settings{
		name: g.name, policy: p, rnd: p.Rand, observer: p.Observer,
		retry:   retry.New(p.Retry),
		retries: retryLists{on: compileConditions(p.RetryOn), never: compileConditions(p.NeverRetryOn)},
		typical: &g.parts.typical, override: g.override,
		peer:    &g.parts.peer,
		opening: &g.parts.opening,
	}
	if s.rnd == nil {
		s.rnd = globalRandom
	}
	change := g.parts.reconfigure(p, now)
	switch {
	case p.Budget != nil:
		s.budget = p.Budget
	case p.RetryBudget.Enabled():
		s.budget = orNew(&g.parts.budget, func() *budget.Budget { return budget.New(p.RetryBudget) })
	}
	if p.CircuitBreaker.Enabled() {
		switch forced := p.CircuitBreaker.Mode == breaker.ForcedOpen; {
		case forced:
			if g.parts.breaker == nil && g.current.Load() != nil {
				change = breaker.Change{From: breaker.Closed, To: breaker.Open, At: now, Reason: forcedOpen} // it begins so
			}
			g.parts.opening.begin(g.name, forcedOpen)
		case g.parts.breaker == nil:
			g.parts.opening.begin(g.name, "")
		}
		s.breaker = orNew(&g.parts.breaker, func() *breaker.Breaker { return breaker.New(p.CircuitBreaker, s.rnd, g.breakerChanged) })
	}
	if p.Bulkhead.Enabled() || g.parts.bulkhead != nil { // one that was on counts on, so that it can be switched on again
		s.bulkhead = orNew(&g.parts.bulkhead, func() *bulkhead.Bulkhead { return bulkhead.New(p.Bulkhead) })
	}
	if p.RateLimit.Enabled() {
		s.limiter = orNew(&g.parts.limiter, func() *ratelimit.Limiter { return ratelimit.New(p.RateLimit.Config, hashSeed) })
	}
	if p.Pacing.Enabled() {
		s.pacer = orNew(&g.parts.pacer, func() *pacing.Pacer { return pacing.New(p.Pacing) })
	}
	if p.Throttle.Enabled() {
		s.throttle = orNew(&g.parts.throttle, func() *throttle.Throttle { return throttle.New(p.Throttle) })
	}
	if p.Hedge.Enabled() {
		s.hedge = orNew(&g.parts.hedge, func() *hedge.Policy { return hedge.New(p.Hedge) })
	}
	s.obeys = p.RetryOwner != OwnerNone
	s.backsOff = p.Backoff != retry.NoBackoff
	s.timed = s.breaker != nil || s.throttle != nil || s.hedge != nil || s.budget != nil || s.observer != nil ||
		p.Timeout > 0 || p.AttemptTimeout > 0 || p.MaxElapsed > 0
	return s, change
}

// reconfigure brings the parts that exist up to p. They keep their state.
func (k *parts) reconfigure(p Policy, now time.Duration) (change breaker.Change) {
	if k.budget != nil {
		k.budget.Reconfigure(now, p.RetryBudget)
	}
	if k.breaker != nil {
		change = k.breaker.Reconfigure(now, p.CircuitBreaker)
	}
	if k.bulkhead != nil {
		k.bulkhead.Reconfigure(p.Bulkhead)
	}
	if k.limiter != nil {
		k.limiter.Reconfigure(now, p.RateLimit.Config)
	}
	if k.pacer != nil {
		k.pacer.Reconfigure(p.Pacing)
	}
	if k.throttle != nil {
		k.throttle.Reconfigure(now, p.Throttle)
	}
	if k.hedge != nil {
		k.hedge.Reconfigure(now, p.Hedge)
	}
	return change
}

// orNew returns the part, made if it is not there yet.
func orNew[T any](part **T, make func() *T) *T {
	if *part == nil {
		*part = make()
	}
	return *part
}

// delays tells whether a retry after o waits, for which it needs the time and a random number.
func (s *settings) delays(o *Outcome) bool {
	return s.backsOff || o.RetryAfter > 0
}

// breakerChanged passes the breaker's transitions on to the pacer, for which a recovery is a new beginning, and to whichever
// observer is in force at that moment.
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

// shadowed tells that the circuit breaker keeps nobody out, whatever its state.
func (s *settings) shadowed() bool { return s.policy.CircuitBreaker.Mode == breaker.Shadow }

// recovered tells of a change after which attempts pass that did not before, also if somebody opened and closed the circuit by hand.
func recovered(c breaker.Change) bool {
	shut := func(s breaker.State) bool { return s == breaker.Open || s == breaker.HalfOpen }
	return shut(c.From) && !shut(c.To)
}

func (s *settings) emit(e Event) {
	if s.observer != nil {
		e.Guard = s.name
		s.observer.Observe(e)
	}
}

// Describe returns the policy in force with every default written out, without an Override, of which State tells. It is shared:
// do not change it.
func (g *Guard) Describe() *Policy {
	s := g.current.Load()
	if s.written != nil {
		return s.written
	}
	return &s.policy
}

// Budget is the guard's retry budget, nil while the policy has none: for adapters that share it with other instances.
func (g *Guard) Budget() *budget.Budget { return g.current.Load().budget }

// Breaker is the guard's circuit breaker, nil while the policy has none: for adapters that share it with other instances.
func (g *Guard) Breaker() *breaker.Breaker { return g.current.Load().breaker }

// Retryable applies the policy's retryOn and neverRetryOn to an adapter's own judgement of a failed attempt. status is
// the answer's HTTP status, or 0 when there was none; err is the attempt's error, or nil.
func (g *Guard) Retryable(status int, err error, byDefault bool) bool {
	return g.current.Load().retries.allow(status, err, byDefault)
}

// RetryableCode is Retryable for a gRPC status code.
func (g *Guard) RetryableCode(code uint32, byDefault bool) bool {
	return g.current.Load().retries.allowCode(code, byDefault)
}

// State is a guard's state at one moment, for dashboards and people. Parts that are off are zero.
type State struct {
	Breaker  breaker.Snapshot
	Budget   float64 // extra attempts that could be sent now
	Bulkhead bulkhead.State
	Pacing   pacing.State
	Throttle throttle.State
	Hedge    hedge.State
	Typical  time.Duration // what a successful attempt usually takes, 0 until one is known
	Override Override      // what somebody has put above the policy by hand
	Speaks   bool          // the dependency has shown that it knows what an allowance is, see CallTree
}

// State reads the guard's state. It takes no permit and changes nothing, but the breaker and budget catch up with the time.
func (g *Guard) State() State { return g.StateAt(clock()) }

// StateAt is State at a time of the caller's clock, for those that drive Calls themselves.
func (g *Guard) StateAt(now time.Duration) State {
	s := g.current.Load()
	st := State{Typical: s.typical.load(), Override: s.override, Speaks: s.peer.speaks()}
	if s.breaker != nil {
		st.Breaker = s.breaker.Snapshot(now)
	}
	if s.budget != nil {
		st.Budget = s.budget.Balance(now)
	}
	if s.bulkhead != nil {
		st.Bulkhead = s.bulkhead.State()
	}
	if s.pacer != nil {
		st.Pacing = s.pacer.State(now)
	}
	if s.throttle != nil {
		st.Throttle = s.throttle.State(now)
	}
	if s.hedge != nil {
		st.Hedge = s.hedge.State()
	}
	return st
}

// typicalLatency is about what the quicker successful attempts take, so that a retry is not begun that cannot end in
// time. It falls by an eighth of the way and rises by a thirty-second of itself: a few slow answers, or a slow endpoint
// beside quick ones, must not talk the others out of their retries. A value within an eighth is not written: in the
// steady state callers only read.
type typicalLatency struct{ ns atomic.Int64 }

func (t *typicalLatency) load() time.Duration { return time.Duration(t.ns.Load()) }

func (t *typicalLatency) record(latency time.Duration) {
	old := t.ns.Load()
	switch diff := int64(latency) - old; {
	case old == 0:
		t.ns.Store(int64(latency))
	case diff > old/8:
		t.ns.Store(old + old/32 + 1)
	case diff < -old/8:
		t.ns.Store(old + diff/8)
	}
}
