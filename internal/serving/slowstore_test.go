package serving_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
)

// hanging is a store that answers nothing until it is well, or its caller gives up.
type hanging struct {
	idempotency.Store
	well chan struct{}
}

func (h *hanging) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	if err := h.wait(ctx); err != nil {
		return err
	}
	return h.Store.Complete(ctx, key, token, r, retention)
}

func (h *hanging) Fail(ctx context.Context, key string, token uint64) error {
	if err := h.wait(ctx); err != nil {
		return err
	}
	return h.Store.Fail(ctx, key, token)
}

func (h *hanging) wait(ctx context.Context) error {
	select {
	case <-h.well:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Nobody waits for a store that hangs for longer than he has time: what it is to be told it is told in the background.
func TestAStoreThatHangsHoldsNobodyUpForLongerThanHeWaits(t *testing.T) {
	for name, c := range map[string]struct {
		most time.Duration
		fate idempotency.Fate
	}{
		"an answer":            {time.Second, idempotency.Recorded},
		"one nobody waits for": {0, idempotency.Recorded},
		"none":                 {3 * time.Second, idempotency.LetGo},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, &diary{})
				store := &hanging{s.diary, make(chan struct{})}
				h := s.hold()
				h.Store = store
				if b, err := h.Begin(idempotency.Fingerprint{}, core.NoDeadline); err != nil || b.State != idempotency.Run {
					t.Fatal(b, err)
				}
				h.Keep()
				began := time.Now()
				if c.fate == idempotency.LetGo {
					h.Fail()
				} else if h.Complete(idempotency.Response{Status: 201}, core.Now()+c.most) {
					t.Error("the answer is given out, and nobody has recorded it")
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("it took %v", took)
				}
				close(store.well)
				time.Sleep(time.Minute)
				if got := h.Fate(); got != c.fate {
					t.Errorf("when the store is well: %v", got)
				}
			})
		})
	}
}
