package abateredis

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
)

const (
	tick           = 50 * time.Millisecond
	sweepEvery     = 2 * tick
	exchangeEvery  = 4 * tick
	heartbeatEvery = time.Second
	aliveFor       = 5 * time.Second // without a heartbeat
)

// census is how many instances there are.
type census struct {
	seen  atomic.Int64
	fewer time.Duration // since when all counts were lower than seen, 0 if the last was not; of the keeper only
}

// count takes in how many there are now, 0 when nobody could be asked. Fewer are believed only when they have been
// fewer for a while in which Redis was there: one that was restarted empty counts one, and then the others come back.
func (c *census) count(now time.Duration, n int64) {
	switch {
	case n == 0:
		c.fewer = 0
	case n >= c.seen.Load():
		c.seen.Store(n)
		c.fewer = 0
	case c.fewer == 0:
		c.fewer = now
	case now-c.fewer > aliveFor:
		c.seen.Store(n)
		c.fewer = 0
	}
}

// instances is how many there are as far as this one knows, at least 1.
func (f *Fleet) instances() int64 { return max(f.living.seen.Load(), 1) }

// keeping does what comes back all the time, until the fleet is closed.
func (f *Fleet) keeping() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var sweep, exchange, beat time.Duration // when each is due
	for {
		now := core.Now()
		due := func(at *time.Duration, every time.Duration) bool {
			if now < *at {
				return false
			}
			*at = now + every*3/4 + rand.N(every/2)
			return true
		}
		if due(&beat, heartbeatEvery) {
			f.heartbeat(f.ctx, true)
			if f.link.Load().guard.Breaker().State() != breaker.Closed {
				beat = now + heartbeatEvery/4 // to be back soon; how often something is sent is the breaker's to say
			}
		}
		if due(&sweep, sweepEvery) && !f.away(now) {
			for all := f.overdue(now, false); len(all) > 0; {
				part := all[:min(pipelined, len(all))]
				f.refill(f.ctx, part)
				all = all[len(part):]
			}
		}
		shared := f.shared()
		if due(&exchange, exchangeEvery) {
			f.exchange(now, shared)
		}
		f.publish(now, shared)
		select {
		case <-f.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// heartbeat says that this instance lives, or leaves, and counts the others. It is also what notices that Redis is back
// when nobody else asks.
func (f *Fleet) heartbeat(ctx context.Context, alive bool) {
	var n int64
	err := f.ask(ctx, "heartbeat", func(ctx context.Context, l *link) error {
		here := 0
		if alive {
			here = 1
		}
		keys := []string{l.key(digest("instances"), ":instances")}
		v, err := aliveScript.Run(ctx, l.client, keys, f.id, aliveFor.Milliseconds(), here).Result()
		if err == nil {
			n, err = parseCount(v, int64(here), 1<<31)
		}
		return err
	})
	if err != nil {
		n = 0
	}
	if alive {
		f.living.count(core.Now(), n)
	}
}

// runAll runs a script for many keys in one round trip; two, if the server does not know it yet.
func runAll(ctx context.Context, l *link, script *redis.Script, text string, n int,
	arguments func(i int) (key string, args []any)) []*redis.Cmd {
	results := make([]*redis.Cmd, n)
	for _, known := range []bool{true, false} {
		pipe := l.client.Pipeline()
		for i := range n {
			if !known && !isReply(results[i].Err(), "NOSCRIPT") {
				continue
			}
			key, args := arguments(i)
			if known {
				results[i] = pipe.EvalSha(ctx, script.Hash(), []string{key}, args...)
			} else {
				results[i] = pipe.Eval(ctx, text, []string{key}, args...)
			}
		}
		if pipe.Len() == 0 {
			break
		}
		_, _ = pipe.Exec(ctx) // each command has its error
	}
	return results
}
