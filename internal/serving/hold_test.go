package serving_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// diary is a store that writes down when it is asked for what, and answers as it is told.
type diary struct {
	begin    idempotency.Begun
	renew    []error // one after the other; then nil
	complete error
	began    time.Time
	lines    []string
	limit    time.Duration // of the last question
}

func (d *diary) note(ctx context.Context, what string) {
	d.lines = append(d.lines, time.Since(d.began).String()+" "+what)
	end, _ := ctx.Deadline()
	d.limit = time.Until(end)
}

func (d *diary) Begin(ctx context.Context, _ string, _ idempotency.Fingerprint, _ time.Duration) (idempotency.Begun, error) {
	d.note(ctx, "begin")
	return d.begin, nil
}

func (d *diary) Renew(ctx context.Context, _ string, _ uint64, _ time.Duration) (err error) {
	d.note(ctx, "renew")
	if len(d.renew) > 0 {
		err, d.renew = d.renew[0], d.renew[1:]
	}
	return err
}

func (d *diary) Complete(ctx context.Context, _ string, _ uint64, _ idempotency.Response, _ time.Duration) error {
	d.note(ctx, "complete")
	return d.complete
}

func (d *diary) Fail(ctx context.Context, _ string, _ uint64) error {
	d.note(ctx, "fail")
	return nil
}

// holding is a hold with a lease of 30 s. Its diary has the lines of its store, and what the gate's observer is told.
func holding(t *testing.T, d *diary) *serving.Hold {
	d.began = time.Now()
	g, err := abate.NewGate("shop", abate.Protection{Observer: abate.GateObserverFunc(func(e abate.GateEvent) { d.lines = append(d.lines, e.Detail) })})
	if err != nil {
		t.Fatal(err)
	}
	c := &idempotency.Config{Lease: 30 * time.Second, Retention: time.Hour}
	return &serving.Hold{Gate: g, Store: d, Config: c, Ctx: context.Background(), Key: "k"}
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("the diary says %q\nwant %q", d.lines, lines)
	}
}

func TestAKeyIsRenewedUntilItsRequestIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{begin: idempotency.Begun{Token: 7, TakenOver: true}, renew: []error{errors.New("no route")}, complete: idempotency.ErrLost}
		h := holding(t, d)
		if _, err := h.Begin(idempotency.Fingerprint{}, abate.NoDeadline); err != nil || h.Token != 7 || !h.TakenOver {
			t.Errorf("token %d, taken over %t, error %v", h.Token, h.TakenOver, err)
		}
		h.Keep()
		time.Sleep(25 * time.Second)
		if !h.Release() || h.Release() {
			t.Error("only the first release ends the renewing")
		}
		h.Complete(idempotency.Response{})
		time.Sleep(time.Minute)
		d.want(t, "0s begin", "taken-over", "10s renew", "away", "20s renew", "25s complete", "lost")
	})
}

func TestALostKeyIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{renew: []error{idempotency.ErrLost}}
		h := holding(t, d)
		_, _ = h.Begin(idempotency.Fingerprint{}, abate.NoDeadline)
		h.Keep()
		time.Sleep(time.Minute)
		h.Release()
		h.Fail()
		d.want(t, "0s begin", "run", "10s renew", "lost", "1m0s fail")
	})
}

func TestTheStoreIsAskedForNoLongerThanTheRequestMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{begin: idempotency.Begun{State: idempotency.Running}}
		h := holding(t, d)
		for until, want := range map[time.Duration]time.Duration{
			abate.NoDeadline: 30 * time.Second, abate.Now() + time.Minute: 30 * time.Second, abate.Now() + time.Second: time.Second,
		} {
			if _, _ = h.Begin(idempotency.Fingerprint{}, until); d.limit != want {
				t.Errorf("until %v: asked for %v, want %v", until, d.limit, want)
			}
		}
		d.want(t, "0s begin", "running", "0s begin", "running", "0s begin", "running")
	})
}
