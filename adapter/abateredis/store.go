package abateredis

import (
	"context"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// Store keeps idempotency keys where all instances see them: an idempotency.Store. Make one with Fleet.Store.
//
// Each method is one round trip and one script, on the clock of the server. Redis must not forget keys by itself: its
// maxmemory-policy has to be noeviction, else a forgotten key is a request done twice; ErrFull is what a full one gives then. A
// master that fails over, or restarts, without having passed a key on forgets it too: idempotency in Redis is as durable as
// that Redis is.
type Store struct {
	fleet   *Fleet
	maxBody int
}

var _ idempotency.Store = (*Store)(nil)

// Store returns a store whose answers have bodies of up to maxBody bytes. It gives large ones more time than Config.Timeout:
// a second for 20 MB.
func (f *Fleet) Store(maxBody int) *Store { return &Store{f, maxBody} }

// headers is what an answer may have besides its body.
const headers = 64 << 10

// Begin implements idempotency.Store.
func (s *Store) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (idempotency.Begun, error) {
	var begun idempotency.Begun
	err := s.ask(ctx, key, s.maxBody, func(ctx context.Context, l *link, name string) error {
		v, err := beginScript.Run(ctx, l.client, []string{name}, string(fp[:]), micros(lease), micros(idempotency.Abandoned)).Result()
		if err == nil {
			begun, err = parseBegun(v)
		}
		return err
	})
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
func (s *Store) Complete(ctx context.Context, key string, token uint64, r idempotency.Response, retention time.Duration) error {
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

// end runs end.lua.
func (s *Store) end(ctx context.Context, key string, size int, args ...any) error {
	held := int64(0)
	err := s.ask(ctx, key, size, func(ctx context.Context, l *link, name string) error {
		v, err := endScript.Run(ctx, l.client, []string{name}, args...).Result()
		if err == nil {
			held, err = parseCount(v, 0, 1)
		}
		return err
	})
	if err == nil && held == 0 {
		return idempotency.ErrLost
	}
	return err
}

// ask is Fleet.ask about a key, with the time that so many bytes take.
func (s *Store) ask(ctx context.Context, key string, size int, send func(context.Context, *link, string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := idempotency.CheckKey(key); err != nil {
		return err
	}
	f := s.fleet
	if f.ctx.Err() != nil {
		return errClosed
	}
	id := digest("idempotency", key)
	timeout := f.link.Load().config.Timeout + time.Duration(size)*(time.Second/(20<<20))
	err := f.askFor(ctx, "idempotency", timeout, func(ctx context.Context, l *link) error {
		return send(ctx, l, l.key(id, ":key"))
	})
	if err != nil && ctx.Err() == nil {
		f.fellBack("idempotency")
	}
	return err
}

// micros is d in microseconds, at least none and at most 100 years.
func micros(d time.Duration) int64 { return min(max(d, 0), 876_000*time.Hour).Microseconds() }
