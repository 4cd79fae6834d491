package abateredis

import (
	"context"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// Store keeps idempotency keys where all instances see them: an idempotency.Restorer. Make one with Fleet.Store.
//
// Each method is one round trip and one script, on the clock of the server. Redis must not forget keys by itself: its
// maxmemory-policy has to be noeviction, else a forgotten key is a request done twice; ErrFull is what a full one gives
// then.
//
// A master passes on what it has written after it has answered. One that dies before that, behind Sentinels or in a
// Cluster, takes along what it had confirmed: answers that were given out already, whose requests are then done again.
// So with replicas, set Config.Replicas: a step counts only when so many of them have it, which the store waits for
// with WAIT, in the same round trip; a replay counts as such a step, since it too gives an answer out. It holds as long
// as the replica that is promoted is one of those that had it. Set to the number of all replicas, that is always so,
// and keys are away while one is down; set to less, it depends on which one is promoted: the most advanced that is
// there. Without it, with Replicas 0, idempotency in Redis is as durable as one Redis server: a failover can lose the
// last writes, and a restart what its append-only file has not (appendfsync always loses none).
//
// What a failover lost while the request was being done, its holder reports to the new master with Restore. Tokens
// follow the server's clock, and never come below the greatest one that this instance has seen.
//
// Begin has Config.Timeout, and is not sent while Redis is known to be away. The other methods, which report what has
// happened, are always sent, on connections of their own, and have up to a second: a stutter of Redis delays answers
// and refuses none.
type Store struct {
	fleet   *Fleet
	place   *place // nil if the fleet was closed before
	maxBody int
}

var _ idempotency.Restorer = (*Store)(nil)

// Store returns a store whose answers have bodies of up to maxBody bytes. It gives large ones more time than
// Config.Timeout: a second for 20 MB. Its keys are in the Redis that the fleet uses now, and stay there: see
// Reconfigure.
func (f *Fleet) Store(maxBody int) *Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Store{f, f.keys, maxBody}
}

// SameKeys reports whether another store keeps its keys where s does: by the addresses, the master, the database and
// the prefix. A gate asks whose policy changes: see Gate.EarlierStores.
func (s *Store) SameKeys(other idempotency.Store) bool {
	o, ok := other.(*Store)
	if !ok || s.place == nil || o.place == nil {
		return ok && s.place == o.place
	}
	return s.place == o.place || s.place.link.Load().config.sameKeys(o.place.link.Load().config)
}

// headers is what an answer may have besides its body.
const headers = 64 << 10

// Begin implements idempotency.Store.
func (s *Store) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	idempotency.Begun, error) {
	var begun idempotency.Begun
	err := s.about(ctx, key, func(ctx context.Context, l *link, name string) error {
		timeout := l.config.Timeout + transfer(s.maxBody)
		return s.fleet.askFor(ctx, l, "idempotency", timeout, func(ctx context.Context, l *link) error {
			waits := ""
			if l.config.Replicas > 0 {
				waits = "1"
			}
			seen := s.fleet.token.Load()
			v, err := l.run(ctx, l.client, beginScript, name, string(fp[:]), micros(lease), micros(idempotency.Abandoned),
				seen, waits)
			if err == nil {
				begun, err = parseBegun(v)
			}
			return err
		})
	})
	s.fleet.saw(begun.Token)
	if isReply(err, "OOM") {
		return idempotency.Begun{}, idempotency.ErrFull
	}
	return begun, err
}

// Renew implements idempotency.Store.
func (s *Store) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	return s.end(ctx, key, 0, "renew", token, micros(lease), micros(idempotency.Abandoned), "")
}

// Complete implements idempotency.Store. An answer that is too large is kept as truncated.
func (s *Store) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	answer := r.AppendTo(nil)
	if len(answer) > s.maxBody+headers {
		answer = idempotency.Response{Status: r.Status, Truncated: true}.AppendTo(nil)
	}
	return s.end(ctx, key, len(answer), "complete", token, micros(retention), 0, answer)
}

// Fail implements idempotency.Store.
func (s *Store) Fail(ctx context.Context, key string, token uint64) error {
	return s.end(ctx, key, 0, "fail", token, 0, micros(idempotency.Abandoned), "")
}

// Restore implements idempotency.Restorer.
func (s *Store) Restore(ctx context.Context, key string, fp idempotency.Fingerprint, was idempotency.Begun,
	lease time.Duration) error {
	over := "0"
	if was.TakenOver {
		over = "1"
	}
	return s.end(ctx, key, 0, "restore", was.Token, micros(lease), micros(idempotency.Abandoned), "", string(fp[:]), over)
}

// end runs end.lua. It reports what has happened, and its caller has nothing else to give out: so it does not go
// through the guard, which would refuse it for as long as it takes to come back after a stutter, and it has more time
// than Config.Timeout.
func (s *Store) end(ctx context.Context, key string, size int, args ...any) error {
	held := int64(0)
	err := s.about(ctx, key, func(ctx context.Context, l *link, name string) error {
		return l.send(ctx, "idempotency", l.config.patience()+transfer(size), func(ctx context.Context, l *link) error {
			v, err := l.run(ctx, l.holders, endScript, name, args...)
			if err == nil {
				held, err = parseCount(v, 0, 1)
			}
			return err
		})
	})
	if err == nil && held == 0 {
		return idempotency.ErrLost
	}
	return err
}

// about checks what is asked about a key, and notes if there is no answer.
func (s *Store) about(ctx context.Context, key string,
	ask func(ctx context.Context, l *link, name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := idempotency.CheckKey(key); err != nil {
		return err
	}
	if s.place == nil {
		return errClosed
	}
	name := digest("idempotency", key)
	l := s.place.link.Load()
	err := ask(ctx, l, l.key(name, ":key"))
	if now := s.place.link.Load(); err != nil && ctx.Err() == nil && now != l { // l was closed meanwhile
		err = ask(ctx, now, now.key(name, ":key"))
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if now := s.fleet.leftFor(s.place); now != nil && !isReply(err, "OOM") {
		err = ask(ctx, now, now.key(name, ":key"))
	}
	if err != nil && ctx.Err() == nil {
		s.fleet.fellBack("idempotency")
	}
	return err
}

// transfer is the time that so many bytes take.
func transfer(size int) time.Duration { return time.Duration(size) * (time.Second / (20 << 20)) }

// saw notes a token that a server gave out. What is above all that Lua can count exactly is no token.
func (f *Fleet) saw(token uint64) {
	if token >= 1<<53-1 {
		return
	}
	for seen := f.token.Load(); token > seen && !f.token.CompareAndSwap(seen, token); {
		seen = f.token.Load()
	}
}

// micros is d in microseconds, at least none and at most 100 years.
func micros(d time.Duration) int64 { return min(max(d, 0), 876_000*time.Hour).Microseconds() }
