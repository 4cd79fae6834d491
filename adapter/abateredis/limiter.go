package abateredis

import (
	"context"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
)

// Limiter is a rate limit of the whole fleet, an inbound.FleetLimiter. Make one with Fleet.Limiter.
//
// A key that is asked for now and then costs a round trip for each request. For a busy one this instance takes a batch
// of tokens out of the bucket in Redis, as many as it used in the last 200 ms, and decides by itself while they last;
// the next batch is fetched in the background before that. So most decisions take well below a microsecond, and a busy
// key asks Redis a few times per second: four times the number of instances at most, where burst is what limit grants
// in a second.
//
// What is admitted has been taken out of the one bucket before, so over any time from the first request on the fleet
// admits at most burst + limit × time. What lies in batches makes a difference only to windows that begin later: it is
// at most a quarter of burst in all instances together, so any window sees at most 1¼ × burst + limit × window, and
// never longer than half a second, after which it is brought back. The other way round, what lies unused in one
// instance for that time can be missing in another.
//
// A refusal is remembered until the bucket can have what was asked for, for a second at most, and for up to 100 ms or a
// quarter of the time in which the bucket fills, whichever is less, even if it has: a key over its limit costs a few
// round trips per second, however often it is asked for.
//
// While Redis is away WhenAway decides. With "local" each instance has its share, limit and burst divided by the
// instances seen last, at least one token of burst; a bucket that was known begins with its share of what it last held.
// An instance that has never reached Redis takes itself for the only one. When an answer does not come in time nobody
// knows whether tokens were taken: they are counted as lost, so there can be fewer for a moment, never more.
//
// What is spent of a share is a debt. It is taken out of the bucket when Redis is back, which may bring that below
// zero, and until the others are back as well, for ratelimit.ShareAfter (3 s), an instance keeps to its share. So the
// bound above, 1¼ × burst + limit × window, holds over any window, however often Redis comes and goes, also if it loses
// its data: a bucket that is not there begins from what the asker knows of it. The exceptions: when the network parts,
// those that still reach Redis have the whole limit, and each of the others its share on top, until it is back and has
// paid; an outage too short for an instance to notice, less than a second in which it does not ask, costs up to one
// burst more and what the limit grants in 2 s; and more keys than MaxKeys (65,536 at most) that owe something at once
// share one bucket in each instance, which is not paid for.
type Limiter struct {
	*buckets
	terms    *ratelimit.Terms
	whenAway string
}

var _ inbound.FleetLimiter = (*Limiter)(nil)

// TryTake decides with what this instance holds. It takes no lock and allocates nothing. False: ask with Take.
func (l *Limiter) TryTake(now time.Duration, key string, cost float64) (ratelimit.Decision, bool) {
	need := l.terms.Need(cost)
	if d, ok := l.terms.Settled(need); ok {
		return d, true
	}
	b := l.table.find(l.fleet.identify(key))
	if b != nil {
		if d, ok := l.decide(b, now, need); ok {
			return d, true
		}
	}
	if l.fleet.keepsToItsShare(now) {
		return l.withoutRedis(now, b, key, cost), true
	}
	return ratelimit.Decision{}, false
}

// Take decides with a round trip to Redis, or with the one that is under way for this key. It returns within the
// fleet's Timeout, and allocates.
func (l *Limiter) Take(ctx context.Context, key string, cost float64) ratelimit.Decision {
	if d, ok := l.TryTake(core.Now(), key, cost); ok {
		return d
	}
	b, need := l.bucket(key), l.terms.Need(cost)
	f, mine := b.depart()
	if mine {
		return l.ask(b, f, need, key, cost)
	}
	ctx, cancel := context.WithTimeout(ctx, l.fleet.link.Load().config.Timeout)
	defer cancel()
	for { // the flight may have begun before this request came; the next one counts it in
		err := b.join(ctx, f, need)
		now := core.Now()
		if err != nil {
			return l.withoutRedis(now, b, key, cost)
		}
		if d, ok := l.TryTake(now, key, cost); ok {
			return d
		}
		if f, mine = b.depart(); mine && !l.dispatch(b, f) {
			return l.ask(b, f, need, key, cost)
		}
	}
}

// ask makes the round trip for a request and those that wait beside it.
func (l *Limiter) ask(b *bucket, f *flight, need int64, key string, cost float64) ratelimit.Decision {
	q := l.question(b, core.Now(), need)
	reply, err := l.fleet.take(q)
	now := core.Now()
	if err != nil {
		b.arrive(f, err)
		return l.withoutRedis(now, b, key, cost)
	}
	d := l.answer(now, q, reply)
	b.arrive(f, nil)
	return d
}
