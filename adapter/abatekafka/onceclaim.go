package abatekafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// Claim is what a handler may know of the claim it runs under, see [ClaimOf].
type Claim struct {
	// Key is the message's key in the store.
	Key string
	// Token is greater than those of all earlier deliveries under the key: hand it on to whatever can refuse writes
	// with a smaller one.
	Token uint64
	// TakenOver reports that an earlier delivery began and never ended: its effect may have happened.
	TakenOver bool
}

type claimKey struct{}

// ClaimOf returns the claim that a handler runs under. False if its consumer has no Once.
func ClaimOf(ctx context.Context) (Claim, bool) {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	if !ok {
		return Claim{}, false
	}
	return *c, true
}

// renewal keeps a claim while its delivery runs: three times in each lease. If somebody else has taken over, it ends
// the delivery's context.
type renewal struct {
	store idempotency.Store
	claim *Claim
	lease time.Duration
	lost  context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  bool
}

func (r *renewal) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(r.lease/3, r.renew)
}

// stop ends it. A renewal that is on its way finds the key completed or let go, and changes nothing.
func (r *renewal) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.timer.Stop()
}

// renew is the timer's. A store that does not answer is asked again: as long as nobody has taken over, the key can
// still be renewed.
func (r *renewal) renew() {
	if r.ended() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	err := r.store.Renew(ctx, r.claim.Key, r.claim.Token, r.lease)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
	case errors.Is(err, idempotency.ErrLost):
		r.lost(err)
	default:
		r.timer.Reset(r.lease / 3)
	}
}

func (r *renewal) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}
