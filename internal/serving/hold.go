package serving

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/idempotency"
)

// Hold is a request's hold on its idempotency key, from Begin to Complete or Fail. The gate's observer is told what becomes
// of the key. Set the first five fields before Begin, and do not copy a Hold.
type Hold struct {
	Gate   *abate.Gate
	Store  idempotency.Store
	Config *idempotency.Config
	Ctx    context.Context // of the request, without its end
	Key    string          // in the store

	Token     uint64 // as Begin got it; see idempotency.Begun
	TakenOver bool

	over  bool // guarded by mu, as is:
	lease *time.Timer
	mu    sync.Mutex
}

// Begin asks the store, until the deadline of the request (since the origin of abate.Now) or for as long as a lease.
func (h *Hold) Begin(fp idempotency.Fingerprint, until time.Duration) (idempotency.Begun, error) {
	limit := h.Config.Lease
	if until != abate.NoDeadline {
		limit = min(limit, until-abate.Now())
	}
	ctx, cancel := context.WithTimeout(h.Ctx, limit)
	defer cancel()
	begun, err := h.Store.Begin(ctx, h.Key, fp, h.Config.Lease)
	switch {
	case errors.Is(err, idempotency.ErrFull):
		h.Gate.KeyDecided("full")
	case err != nil:
		h.Gate.KeyDecided("away")
	case begun.State != idempotency.Run:
		h.Gate.KeyDecided(begun.State.String())
	}
	h.Token, h.TakenOver = begun.Token, begun.TakenOver
	return begun, err
}

// Keep begins the work that Begin said to run: the lease is renewed from now on, until Release.
func (h *Hold) Keep() {
	what := "run"
	if h.TakenOver {
		what = "taken-over"
	}
	h.Gate.KeyDecided(what)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease = time.AfterFunc(h.Config.Lease/3, h.renew)
}

// renew keeps the key for another lease. If the store cannot be reached, there are two more times to try.
func (h *Hold) renew() {
	h.mu.Lock()
	over := h.over
	h.mu.Unlock()
	if over {
		return
	}
	err := h.tell(func(ctx context.Context) error {
		return h.Store.Renew(ctx, h.Key, h.Token, h.Config.Lease)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over && !errors.Is(err, idempotency.ErrLost) {
		h.lease.Reset(h.Config.Lease / 3)
	}
}

// Release ends the renewing. It is false if that has been done. What follows is Complete or Fail, within what is left of the
// lease.
func (h *Hold) Release() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.over = true
	h.lease.Stop()
	return true
}

// Complete keeps the answer for the request's repeats.
func (h *Hold) Complete(r idempotency.Response) {
	_ = h.tell(func(ctx context.Context) error {
		return h.Store.Complete(ctx, h.Key, h.Token, r, h.Config.Retention)
	})
}

// Fail lets the key go as if nobody had asked for it.
func (h *Hold) Fail() {
	_ = h.tell(func(ctx context.Context) error { return h.Store.Fail(ctx, h.Key, h.Token) })
}

// tell tells the store something about a key that is held. By the end of a lease it is too late. The error has been told to
// the gate's observer.
func (h *Hold) tell(something func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(h.Ctx, h.Config.Lease)
	defer cancel()
	err := something(ctx)
	switch {
	case errors.Is(err, idempotency.ErrLost):
		h.Gate.KeyDecided("lost")
	case err != nil:
		h.Gate.KeyDecided("away")
	}
	return err
}
