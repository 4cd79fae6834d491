package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter is a token bucket for each key. It is safe for concurrent use, has no goroutine and needs no closing. It is
// shared state: one built per request limits nothing.
type Limiter struct {
	one    atomic.Pointer[cell]  // the bucket of the empty key
	others atomic.Pointer[table] // those of all others; nil before the first
	seed   maphash.Seed
	rest   atomic.Pointer[cell] // the bucket of the keys that found no place
	mu     sync.Mutex           // held while settings change
}

// New returns a limiter with full buckets. Keys are hashed with seed, which should be a random one, so that nobody can
// choose keys that share a bucket. A Config that is off allows everything.
func New(c Config, seed maphash.Seed) *Limiter {
	l := &Limiter{seed: seed}
	s := newSettings(c)
	l.one.Store(&cell{s: s})
	l.rest.Store(&cell{s: s})
	return l
}

// Allow takes cost tokens from the bucket of key if they are there, at time now, which is the time since any fixed
// origin. A now before one at which something was taken counts as that one: a clock that jumps back earns nothing, and
// nothing twice.
//
// A cost below 0 counts as 0, one that is not a number is above every burst. Parts of a token are counted in steps of
// what the limit grants in 10 ns or less, 1/100000 at 1000/s, and rounded up to them.
//
// It allocates nothing for a key it knows, and keeps nothing of the text of key. It takes a lock that 1/256 of the keys
// share, and none for the empty key.
func (l *Limiter) Allow(now time.Duration, key string, cost float64) (d Decision) {
	own := tick(now)
	a, s := l.take(own, key, cost, 0)
	if s == nil {
		d.Allowed = true
		return d
	}
	s.explain(&d, &a, own)
	return d
}

// Reserve is Allow for a caller that can wait up to maxWait: if the tokens will be there in time they are taken now,
// and wait is how long the caller has to sleep before it uses them. Whoever asks later waits longer. A reservation that
// would have to wait too long is refused and takes nothing. One that is not used is not given back: those behind it
// have been given their times, and the bound would not hold if a newcomer got the same. In shadow mode the tokens are
// taken likewise but wait is 0.
func (l *Limiter) Reserve(now time.Duration, key string, cost float64, maxWait time.Duration) (
	d Decision, wait time.Duration) {
	own := tick(now)
	a, s := l.take(own, key, cost, maxWait)
	if s == nil {
		d.Allowed = true
		return d, 0
	}
	s.explain(&d, &a, own)
	if !a.over && !s.shadow {
		wait = a.lack
	}
	return d, wait
}

// take takes from the bucket of key. The settings are those it was done with; nil is off.
func (l *Limiter) take(own uint64, key string, cost float64, maxWait time.Duration) (answer, *settings) {
	one := l.one.Load()
	if !one.s.on {
		return answer{}, nil
	}
	if key == "" {
		if a, ok := one.take(own, cost, maxWait); ok {
			return a, one.s
		}
		return l.takeAgain(&l.one, own, cost, maxWait)
	}
	t := l.others.Load()
	if t == nil {
		t = l.table()
	}
	hash := hashOf(l.seed, key)
	a, s, ok := t.take(hash, own, cost, maxWait)
	if !ok && t.sweep(own) {
		a, s, ok = t.take(hash, own, cost, maxWait)
	}
	if ok {
		return a, s
	}
	t.shared.Add(1)
	rest := l.rest.Load()
	if a, ok := rest.take(own, cost, maxWait); ok {
		return a, rest.s
	}
	return l.takeAgain(&l.rest, own, cost, maxWait)
}

// takeAgain takes from the cell at p after Reconfigure has replaced the one that was there.
func (l *Limiter) takeAgain(p *atomic.Pointer[cell], own uint64, cost float64, maxWait time.Duration) (
	answer, *settings) {
	for {
		l.mu.Lock() // until Reconfigure has put the next one there
		c := p.Load()
		l.mu.Unlock()
		if a, ok := c.take(own, cost, maxWait); ok {
			return a, c.s
		}
	}
}

// table makes the table when it is needed first: limiters without keys do not pay for it.
func (l *Limiter) table() *table {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.others.Load(); t != nil {
		return t
	}
	t := newTable(l.one.Load().s)
	l.others.Store(t)
	return t
}

// Reconfigure puts c into effect. Every bucket keeps the tokens it holds, cut to the new burst: a raised burst has to
// be earned, also by keys that are not kept. A limit that is switched off and on again goes on with its buckets. It
// goes through all buckets, a few milliseconds for a million, and holds up a request for 1/256 of that at most.
func (l *Limiter) Reconfigure(now time.Duration, c Config) {
	own := tick(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.one.Load().s
	s := newSettings(c)
	switch {
	case s.unit == 0: // no limit at all: the old one goes on counting, without being asked
		off := *old
		off.on, s = false, &off
	case s.sameBucket(old):
		s.fresh = old.fresh
	default:
		s.fresh = s.adopt(old, own, 0)
	}
	l.one.Store(l.one.Load().replaced(s, own))
	l.rest.Store(l.rest.Load().replaced(s, own))
	if t := l.others.Load(); t != nil {
		t.reconfigure(s, own)
	}
}

// State is what a limiter looks like at one moment.
type State struct {
	Keys   int   // buckets that are kept, except that of the empty key; some may be full again
	Shared int64 // requests so far that found no place for a bucket of their own
}

// State returns how many buckets there are.
func (l *Limiter) State() State {
	t := l.others.Load()
	if t == nil {
		return State{}
	}
	return State{Keys: int(t.keys.Load()), Shared: t.shared.Load()}
}
