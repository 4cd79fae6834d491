package abateredis

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

// buckets is what all limiters of one name share, so that it outlives a reload.
type buckets struct {
	fleet *Fleet
	name  string
	kind  string // in keys
	table *table

	mu      sync.Mutex // guards what follows
	watched []*bucket  // those with a lease, perhaps

	local atomic.Pointer[share] // decides while Redis is away; nil until then
}

// share is a limiter for the part of a limit that is this instance's.
type share struct {
	config  ratelimit.Config
	limiter *ratelimit.Limiter
}

// bucket returns the bucket of a key, made if there is none.
func (bs *buckets) bucket(key string) *bucket {
	id := bs.fleet.identify(key)
	if b := bs.table.find(id); b != nil {
		return b
	}
	return bs.table.add(id, digest(bs.kind, bs.name, key))
}

// watch remembers to bring back what the bucket's lease will not have used.
func (bs *buckets) watch(b *bucket) {
	if b.held.CompareAndSwap(false, true) {
		bs.mu.Lock()
		bs.watched = append(bs.watched, b)
		bs.mu.Unlock()
	}
}

// overdue takes the leases whose time is over, all of them if everything is set.
func (bs *buckets) overdue(now time.Duration, everything bool) []refill {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var all []refill
	kept := bs.watched[:0]
	for _, b := range bs.watched {
		k := b.known.Load()
		if now < k.expires && !everything {
			kept = append(kept, b)
			continue
		}
		f, mine := b.depart()
		if !mine { // somebody is asking
			kept = append(kept, b)
			continue
		}
		b.held.Store(false)
		if b.inHand() == 0 {
			b.land(f, nil)
			continue
		}
		all = append(all, refill{limiter: k.limiter, bucket: b, flight: f, giveBack: true})
	}
	clear(bs.watched[len(kept):])
	bs.watched = kept
	return all
}

// withoutRedis decides while Redis is away. b may be nil.
func (l *Limiter) withoutRedis(now time.Duration, b *bucket, key string, cost float64) ratelimit.Decision {
	l.fleet.fellBack("rateLimit")
	s := l.limit
	switch s.whenAway {
	case "open":
		return s.allowed(float64(s.burst))
	case "closed":
		return s.refused(0, max(l.fleet.retryIn(now), time.Second))
	}
	n := l.fleet.instances()
	local := l.ours(now, s.config, n)
	if b != nil {
		if k := b.known.Load(); k != nil && b.seeded.Swap(k) != k { // go on where Redis was
			excess := float64(local.Allow(now, key, 0).Remaining) - (k.have(now, s)+float64(b.inHand()))/micro/float64(n)
			if excess > 0 {
				local.Allow(now, key, excess)
			}
		}
	}
	d := local.Allow(now, key, cost)
	if d.Over && d.RetryAfter == ratelimit.Never { // its share never has as much, Redis will
		d.RetryAfter = max(l.fleet.retryIn(now), time.Second)
	}
	return d
}

// ours is the limiter for this instance's share among n.
func (bs *buckets) ours(now time.Duration, c ratelimit.Config, n int64) *ratelimit.Limiter {
	c.Limit.Tokens /= float64(n)
	c.Burst = max(1, c.Burst/int(n))
	if have := bs.local.Load(); have != nil && have.config == c {
		return have.limiter
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	next := &share{config: c}
	if have := bs.local.Load(); have != nil {
		next.limiter = have.limiter
		next.limiter.Reconfigure(now, c)
	} else {
		next.limiter = ratelimit.New(c, bs.fleet.seeds[0])
	}
	bs.local.Store(next)
	return next.limiter
}
