package abateredis

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/ratelimit"
)

// Fleet is what the instances of a service have in common through one Redis: rate limits, retry budgets, what their
// breakers found out, and idempotency keys. Make one per process and Close it at the end. It is safe for concurrent
// use.
type Fleet struct {
	id      string
	seeds   [2]maphash.Seed
	link    atomic.Pointer[link]
	living  ratelimit.Census
	refills chan refill
	outage  ratelimit.Outage
	token   atomic.Uint64 // the greatest that was given out for an idempotency key

	ctx     context.Context
	close   context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex // guards what follows
	limits    map[limitName]*buckets
	guards    map[string]*sharing
	listening bool
	places    []*place // where keys are or were kept
	keys      *place   // where they are kept now; nil once the fleet is closed
}

// limitName returns the name of a limit in Redis. A limit in shadow mode has buckets of its own.
type limitName struct {
	name   string
	shadow bool
}

// Open makes a fleet. It fails on a mistake in the configuration, not when Redis is away: a service must be able to
// start without it. Whether it is there, State says.
func Open(c Config) (*Fleet, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l, err := connect(c.withDefaults())
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		id: rand.Text(), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, refills: make(chan refill, queued),
		limits: make(map[limitName]*buckets), guards: make(map[string]*sharing),
	}
	f.link.Store(l)
	f.keys = f.placeOf(l)
	f.ctx, f.close = context.WithCancel(context.Background())
	f.running.Go(f.refilling)
	f.running.Go(f.keeping)
	return f, nil
}

// Reconfigure goes over to another configuration; with the same one it does nothing. What is under way with the old
// Redis ends within the timeout; leases taken there are used up. A Store keeps its keys where they were: make another
// one for the new Redis, and update its gate, which looks for earlier keys in the one before.
func (f *Fleet) Reconfigure(c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	c = c.withDefaults()
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.link.Load()
	if f.ctx.Err() != nil || old.config.same(c) {
		return nil
	}
	l, err := connect(c)
	if err != nil {
		return err
	}
	before := f.keys
	f.link.Store(l)
	if f.keys = f.placeOf(l); f.keys != before {
		old = before.retire()
	}
	if old == nil {
		return nil
	}
	f.running.Go(func() {
		select {
		case <-f.ctx.Done():
		case <-time.After(2 * old.config.Timeout):
		}
		old.close()
	})
	return nil
}

// same reports whether two configurations lead to the same Redis in the same way. Observers cannot be compared: they
// count as the same.
func (c Config) same(other Config) bool {
	c.Observe, c.OnFallback, other.Observe, other.OnFallback = nil, nil, nil, nil
	sameTLS := c.TLSConfig == other.TLSConfig
	c.TLSConfig, other.TLSConfig = nil, nil
	return sameTLS && reflect.DeepEqual(c, other)
}

// Close brings back what this instance has leased, says that it leaves, and ends all that runs in the background.
// Limiters of a closed fleet go on as if Redis were away. Its stores still find the keys that they have, and record how
// runs end that they began: for that they connect again.
func (f *Fleet) Close() {
	f.mu.Lock()
	first := f.ctx.Err() == nil
	f.close()
	f.keys = nil
	f.mu.Unlock()
	f.running.Wait()
	if !first {
		return
	}
	f.abandon()
	f.leave()
	f.link.Load().close()
	for _, p := range f.places {
		if l := p.retire(); l != nil {
			l.close()
		}
	}
}

// leave is the last round trips.
func (f *Fleet) leave() {
	l := f.link.Load()
	if l.away(core.Now()) {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), 5*l.config.Timeout)
	defer done()
	if all := f.overdue(core.Now(), true); len(all) > 0 {
		f.refill(ctx, all)
	}
	f.heartbeat(ctx, false)
}

// overdue are the leases that have to be brought back.
func (f *Fleet) overdue(now time.Duration, everything bool) []refill {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []refill
	for _, bs := range f.limits {
		all = append(all, bs.overdue(now, everything)...)
	}
	return all
}

// ask is the way to Redis for all that has an answer of its own without it: through the guard, within the timeout,
// observed.
func (f *Fleet) ask(ctx context.Context, op string, send func(context.Context, *link) error) error {
	l := f.link.Load()
	return f.askFor(ctx, l, op, l.config.Timeout, send)
}

func (f *Fleet) askFor(ctx context.Context, l *link, op string, timeout time.Duration,
	send func(context.Context, *link) error) error {
	_, err := abate.Do(ctx, l.guard, func(asker context.Context) (struct{}, error) {
		return struct{}{}, l.send(asker, op, timeout, send)
	})
	if ctx.Err() == nil && l == f.link.Load() {
		if now := core.Now(); err == nil {
			f.outage.Answered(now)
		} else {
			inbound.FleetMissed(&f.outage, l.guard, op == "heartbeat")
		}
	}
	return err
}

// send is one round trip, within the timeout, observed.
func (l *link) send(asker context.Context, op string, timeout time.Duration,
	send func(context.Context, *link) error) error {
	ctx, done := context.WithTimeout(asker, timeout)
	defer done()
	began := core.Now()
	err := send(ctx, l)
	if err != nil && asker.Err() != nil { // whoever asked has left, which says nothing about Redis
		return asker.Err()
	}
	err = explain(l, err, timeout)
	l.lastErr.Store(&err)
	if l.config.Observe != nil {
		l.config.Observe(op, core.Now()-began, err)
	}
	return err
}

// away reports whether Redis is known to be away and it is not yet time to look again. It costs a few loads.
func (l *link) away(now time.Duration) bool {
	return inbound.FleetAway(l.guard, now)
}

// keepsToItsShare reports whether limits are decided by this instance's share: Redis is away, or was just now.
func (f *Fleet) keepsToItsShare(now time.Duration) bool {
	return f.ctx.Err() != nil || inbound.FleetApart(f.link.Load().guard, &f.outage, &f.living, now)
}

func (f *Fleet) away(now time.Duration) bool { return f.link.Load().away(now) || f.ctx.Err() != nil }

// retryIn is when somebody will look again whether Redis is there.
func (f *Fleet) retryIn(now time.Duration) time.Duration {
	return f.link.Load().guard.Breaker().RetryIn(now)
}

func (f *Fleet) fellBack(what string) {
	if report := f.link.Load().config.OnFallback; report != nil {
		report(what)
	}
}

// Limiter returns the limit called name as c has it. Limiters of one name share their buckets, here and with the other
// instances, also when c changes; in shadow mode they have others. c.Key and c.Cost are the gate's to follow.
func (f *Fleet) Limiter(name string, c inbound.ArrivalLimit) *Limiter {
	l := &Limiter{terms: ratelimit.NewTerms(c.Config), whenAway: c.WhenAway}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := limitName{name, c.Shadow}
	if l.buckets = f.limits[id]; l.buckets == nil {
		hashed := "limit"
		if c.Shadow {
			hashed = "shadow limit"
		}
		l.buckets = &buckets{fleet: f, name: name, kind: hashed, table: newTable(c.Config.WithDefaults().MaxKeys)}
		f.limits[id] = l.buckets
	}
	return l
}

// AdjustProtection makes the parts of a protection that say "fleet: true" the fleet's. It is a hook for policyfile.
func (f *Fleet) AdjustProtection(name string, p *inbound.Protection) {
	if p.RateLimit.Fleet && p.RateLimit.Enabled() {
		p.Fleet = f.Limiter(name, p.RateLimit)
	}
	if p.Idempotency.Fleet && p.Idempotency.Enabled() {
		p.Store = f.Store(p.Idempotency.WithDefaults().MaxAnswer)
	}
}

// State is what a fleet looks like at one moment, for dashboards and people.
type State struct {
	// Instances is how many were alive when Redis was last asked, this one included.
	Instances int
	// Breaker is the one in front of Redis: closed while Redis is there.
	Breaker breaker.Snapshot
	// Err is what the last round trip came to, and what to do about it; nil if all was well, and before the first.
	Err error
}

// Away reports whether Redis is not used at the moment.
func (s State) Away() bool {
	return s.Breaker.State != breaker.Closed && s.Breaker.State != breaker.RampUp
}

// State reads the fleet's state. It asks nobody.
func (f *Fleet) State() State {
	l := f.link.Load()
	s := State{Instances: int(f.living.Instances()), Breaker: l.guard.State().Breaker}
	if err := l.lastErr.Load(); err != nil {
		s.Err = *err
	}
	return s
}

// errClosed is what a store says that a closed fleet has made.
var errClosed = errors.New("abateredis: the fleet is closed")
