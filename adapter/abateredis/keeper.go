package abateredis

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/ratelimit"
)

const (
	tick           = 50 * time.Millisecond
	sweepEvery     = 2 * tick
	exchangeEvery  = 4 * tick
	heartbeatEvery = time.Second
)

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
		v, err := aliveScript.Run(ctx, l.client, keys, f.id, ratelimit.AliveFor.Milliseconds(), here).Result()
		if err == nil {
			n, err = parseCount(v, int64(here), 1<<31)
		}
		return err
	})
	if err != nil {
		n = 0
	}
	if alive {
		f.living.Count(core.Now(), n)
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
