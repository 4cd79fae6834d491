package abateredis

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

// bucket is a bucket in Redis as this instance sees it. What is decided about it is the lease's.
type bucket struct {
	id     identity
	redis  [16]byte // its key in Redis, hashed
	lease  ratelimit.Lease
	flight atomic.Pointer[flight]

	waiting atomic.Int64            // what requests that wait for a flight need
	by      atomic.Pointer[Limiter] // that asked last, or decided alone; nil before

	stray bool        // not in the table: of one request
	held  atomic.Bool // among the buckets whose leases and debts are looked after
}

// decide decides a request by what is known here, if that is possible.
func (l *Limiter) decide(b *bucket, now time.Duration, need int64) (ratelimit.Decision, bool) {
	d, ok, low := b.lease.Take(now, l.terms, need)
	if low {
		l.fetch(b, now)
	}
	return d, ok
}

// fetch has the next batch fetched in the background, unless that is happening already.
func (l *Limiter) fetch(b *bucket, now time.Duration) {
	if b.flight.Load() != nil {
		return
	}
	f, mine := b.depart()
	if !mine {
		return
	}
	if !l.dispatch(b, f) { // whoever needs the tokens asks
		b.lease.Busy(now)
		b.arrive(f, nil)
	}
}

// dispatch leaves a flight to the background, unless there are too many before it.
func (l *Limiter) dispatch(b *bucket, f *flight) bool {
	select {
	case l.fleet.refills <- refill{limiter: l, bucket: b, flight: f}:
		return true
	default:
		return false
	}
}

// flight is one round trip for a bucket, under way.
type flight struct {
	done chan struct{}
	err  error
}

// join waits until a flight has ended. The next one to begin counts in what is needed.
func (b *bucket) join(ctx context.Context, f *flight, need int64) error {
	b.waiting.Add(need)
	defer b.waiting.Add(-need)
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// depart begins a flight, or returns the one that is under way.
func (b *bucket) depart() (f *flight, mine bool) {
	for {
		if f = b.flight.Load(); f != nil {
			return f, false
		}
		if f = (&flight{done: make(chan struct{})}); b.flight.CompareAndSwap(nil, f) {
			return f, true
		}
	}
}

func (b *bucket) arrive(f *flight, err error) {
	f.err = err
	b.flight.Store(nil)
	close(f.done)
}

// question is what is asked about a bucket.
type question struct {
	limiter *Limiter
	bucket  *bucket
	ratelimit.Question
}

// question works out what to ask for.
func (l *Limiter) question(b *bucket, now time.Duration, need int64) question {
	return question{l, b, b.lease.Ask(now, l.terms, need, b.waiting.Load(), l.fleet.living.Instances())}
}

// answer takes in what Redis said. It returns the decision about the request that asked.
func (l *Limiter) answer(now time.Duration, q question, reply taken) ratelimit.Decision {
	b := q.bucket
	b.by.Store(l)
	over := !l.fleet.keepsToItsShare(now)
	d := b.lease.Answered(now, l.terms, q.Question, reply.tokens, reply.left, over, rand.Uint64())
	if b.lease.InHand() > 0 || b.lease.Owes(now) {
		l.watch(b)
	}
	return d
}
