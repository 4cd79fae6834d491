package abateredis

import (
	"sync"
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
	watched []*bucket  // those with a lease or a debt, perhaps

	rest ratelimit.Lease // decides while Redis is away about keys that found no place
}

// bucket returns the bucket of a key, made if there is none. One that owes something is not forgotten for it: if there
// are only such, what is returned is not kept.
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
		if !everything && !b.lease.Overdue(now) {
			kept = append(kept, b)
			continue
		}
		f, mine := b.depart()
		if !mine { // somebody is asking
			kept = append(kept, b)
			continue
		}
		b.held.Store(false)
		by := b.by.Load()
		if by == nil || b.lease.InHand() == 0 && !b.lease.Owes(now) {
			b.arrive(f, nil)
			continue
		}
		all = append(all, refill{limiter: by, bucket: b, flight: f, giveBack: true})
	}
	clear(bs.watched[len(kept):])
	bs.watched = kept
	return all
}

// withoutRedis decides while Redis is away. b may be nil.
func (l *Limiter) withoutRedis(now time.Duration, b *bucket, key string, cost float64) ratelimit.Decision {
	l.fleet.fellBack("rateLimit")
	back := l.fleet.retryIn(now)
	if d, ok := l.terms.Unreachable(l.whenAway, back); ok {
		return d
	}
	if b == nil {
		b = l.bucket(key)
	}
	lease := &b.lease
	if b.stray {
		lease = &l.rest
	} else {
		b.by.Store(l)
	}
	d := lease.Alone(now, l.terms, l.terms.Need(cost), l.fleet.living.Instances(), back)
	if !b.stray && b.lease.Owes(now) {
		l.watch(b)
	}
	return d
}
