package serving_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// diary is a store that writes down when it is asked for what, and answers as it is told: with the errors of a method
// one after the other, then nil.
type diary struct {
	began time.Time
	limit time.Duration // of the last question
	begin idempotency.Begun
	late  time.Duration // how long the answer of begin takes

	mu                    sync.Mutex // guards what follows
	renew, complete, fail []error
	lines                 []string
	answer                idempotency.Response
}

func (d *diary) note(ctx context.Context, what string, errs *[]error) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, time.Since(d.began).Round(100*time.Millisecond).String()+" "+what)
	end, _ := ctx.Deadline()
	d.limit = time.Until(end)
	if errs != nil && len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (d *diary) Begin(ctx context.Context, _ string, _ idempotency.Fingerprint, _ time.Duration) (
	idempotency.Begun, error) {
	_ = d.note(ctx, "begin", nil)
	time.Sleep(d.late)
	return d.begin, nil
}

func (d *diary) Renew(ctx context.Context, _ string, _ uint64, _ time.Duration) error {
	return d.note(ctx, "renew", &d.renew)
}

func (d *diary) Complete(ctx context.Context, _ string, _ uint64, r idempotency.Response, _ time.Duration) error {
	what := "complete"
	if r.Truncated {
		what = "mark"
	}
	err := d.note(ctx, what, &d.complete)
	if err == nil {
		d.answer = r
	}
	return err
}

func (d *diary) Fail(ctx context.Context, _ string, _ uint64) error {
	return d.note(ctx, "fail", &d.fail)
}

// told is the gate's observer.
func (d *diary) told(e inbound.GateEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, e.Detail)
}

// shop is a gate, and what its holds have in common.
type shop struct {
	*diary
	gate   *inbound.Gate
	config *idempotency.Config
}

// open makes a shop whose leases are 30 s. Its diary has the lines of its store, and what the gate's observer is told.
func open(t *testing.T, d *diary) *shop {
	d.began = time.Now()
	g, err := inbound.NewGate("shop", inbound.Protection{Observer: inbound.GateObserverFunc(d.told)})
	if err != nil {
		t.Fatal(err)
	}
	return &shop{d, g, &idempotency.Config{Lease: 30 * time.Second, Retention: time.Hour}}
}

func (s *shop) hold() *serving.Hold {
	return &serving.Hold{Gate: s.gate, Store: s.diary, Config: s.config, Ctx: context.Background(), Key: "k"}
}

// begun is a hold that does its work.
func (s *shop) begun(t *testing.T) *serving.Hold {
	t.Helper()
	h := s.hold()
	if b, err := h.Begin(idempotency.Fingerprint{}, core.NoDeadline); err != nil || b.State != idempotency.Run {
		t.Fatal(b, err)
	}
	h.Keep()
	return h
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("the diary says %q\nwant %q", d.lines, lines)
	}
}

var errRoute = errors.New("no route")

func TestAKeyIsRenewedUntilItsRequestIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{begin: idempotency.Begun{Token: 7, TakenOver: true}})
		h := s.begun(t)
		if h.Token != 7 || !h.TakenOver {
			t.Errorf("token %d, taken over %t", h.Token, h.TakenOver)
		}
		time.Sleep(25 * time.Second)
		if !h.Complete(idempotency.Response{}, core.NoDeadline) {
			t.Error("the answer is held back")
		}
		time.Sleep(time.Minute)
		s.want(t, "0s begin", "taken-over", "10s renew", "20s renew", "25s complete")
	})
}

func TestALostKeyIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{renew: []error{idempotency.ErrLost}, complete: []error{idempotency.ErrLost}})
		h := s.begun(t)
		time.Sleep(time.Minute)
		if h.Complete(idempotency.Response{}, core.NoDeadline) {
			t.Error("the answer of a try that was taken over is given out")
		}
		s.want(t, "0s begin", "run", "10s renew", "lost", "1m0s complete", "lost")
	})
}

func TestACompletionThatFailsIsToldAgainAndTheClientWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{complete: []error{errRoute, errRoute, errRoute}})
		h := s.begun(t)
		began := time.Now()
		if !h.Complete(idempotency.Response{Status: 201}, core.NoDeadline) || s.answer.Status != 201 {
			t.Error("it was not stored")
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if err := serving.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// away are so many failures.
func away(n int) (errs []error) { return slices.Repeat([]error{errRoute}, n) }

func TestAnAnswerThatIsNotRecordedWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{renew: away(1000), complete: away(1000)})
		h := s.begun(t)
		began := time.Now()
		if h.Complete(idempotency.Response{Status: 201, Body: []byte("done")}, core.Now()+5*time.Second) {
			t.Error("the answer is given out, and nobody has recorded it")
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the client waited for %v", took)
		}
		time.Sleep(2 * time.Minute) // the lease is long over, and the store would let anybody run
		repeat := s.hold()
		if b, err := repeat.Begin(idempotency.Fingerprint{}, core.NoDeadline); err != nil || b.State != idempotency.Running {
			t.Errorf("a repeat is told %v, %v", b.State, err)
		}
		if b, err := repeat.Begin(idempotency.Fingerprint{1}, core.NoDeadline); err != nil ||
			b.State != idempotency.Mismatch {
			t.Errorf("another request is told %v, %v", b.State, err)
		}
		hurry, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := serving.Drain(hurry); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drained with a completion under way: %v", err)
		}
		s.mu.Lock()
		s.renew, s.complete = nil, nil
		s.mu.Unlock()
		if err := serving.Drain(t.Context()); err != nil || string(s.answer.Body) != "done" {
			t.Errorf("%v, stored %q", err, s.answer.Body)
		}
		if b, err := repeat.Begin(idempotency.Fingerprint{}, core.NoDeadline); err != nil || b.State != idempotency.Run {
			t.Errorf("when all is recorded, the store is asked: %v, %v", b.State, err)
		}
	})
}

func TestARepeatGetsTheAnswerWhenItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{complete: away(4)})
		h := s.begun(t)
		go h.Complete(idempotency.Response{Status: 201}, core.Now())
		synctest.Wait()
		if b, err := s.hold().Begin(idempotency.Fingerprint{}, core.NoDeadline); err != nil ||
			b.State != idempotency.Replay || b.Response.Status != 201 {
			t.Errorf("a repeat is told %+v, %v", b, err)
		}
	})
}

func TestWhoTakesTheRiskGetsTheAnswerAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{renew: away(10), complete: away(10)})
		s.config.WhenAway = "open"
		h := s.begun(t)
		began := time.Now()
		if !h.Complete(idempotency.Response{Status: 201}, core.NoDeadline) || time.Since(began) != 3*time.Second {
			t.Errorf("held back for %v", time.Since(began))
		}
		if err := serving.Drain(t.Context()); err != nil || s.answer.Status != 201 {
			t.Errorf("%v, stored %d", err, s.answer.Status)
		}
	})
}

func TestWhoTakesTheRiskGetsNoPartOfTheAnswerOfALostTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{complete: []error{idempotency.ErrLost, idempotency.ErrLost}})
		s.config.WhenAway = "open"
		h := s.begun(t)
		if h.Mark(200, core.NoDeadline) {
			t.Error("a part of the answer goes out though another try has taken over")
		}
		if h.Complete(idempotency.Response{Status: 200}, core.NoDeadline) {
			t.Error("the answer goes out though another try has taken over")
		}
	})
}

func TestAnAnswerThatDoesNotPassIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := errors.New("too large")
		s := open(t, &diary{})
		h := s.begun(t)
		store := &picky{diary: s.diary, large: large}
		h.Store = store
		if h.Complete(idempotency.Response{Status: 201, Body: []byte("too large")}, core.Now()+5*time.Second) {
			t.Error("recorded")
		}
		if err := serving.Drain(t.Context()); err != nil || s.answer.Status != 201 || !s.answer.Truncated {
			t.Errorf("%v, stored %+v", err, s.answer)
		}
	})
}

// picky takes no answers.
type picky struct {
	*diary
	large error
}

func (p *picky) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	if !r.Truncated {
		return p.large
	}
	return p.diary.Complete(ctx, key, token, r, retention)
}

func TestAMarkedTryCannotFailAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{})
		h := s.begun(t)
		if !h.Mark(200, core.NoDeadline) {
			t.Error("not marked")
		}
		time.Sleep(time.Minute)
		h.Fail()
		s.want(t, "0s begin", "run", "0s mark")
	})
}

func TestAnAnswerOfBeginThatCameTooLateIsRenewedFirst(t *testing.T) {
	for want, renew := range map[idempotency.State][]error{
		idempotency.Run: nil, idempotency.Running: {idempotency.ErrLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, &diary{late: 31 * time.Second, renew: renew})
			if b, err := s.hold().Begin(idempotency.Fingerprint{}, core.NoDeadline); err != nil || b.State != want {
				t.Errorf("%v, %v, want %v", b.State, err, want)
			}
		})
	}
}

func TestAFailureIsToldUntilTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{fail: away(1000)})
		h := s.begun(t)
		began := time.Now()
		h.Fail()
		if time.Since(began) != 0 {
			t.Error("the client waits for it")
		}
		if err := serving.Drain(t.Context()); err != nil || time.Since(began) < 30*time.Second ||
			time.Since(began) > 35*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestTheStoreIsAskedForNoLongerThanTheRequestMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &diary{begin: idempotency.Begun{State: idempotency.Running}})
		for until, want := range map[time.Duration]time.Duration{
			core.NoDeadline: 30 * time.Second, core.Now() + time.Minute: 30 * time.Second, core.Now() + time.Second: time.Second,
		} {
			if _, _ = s.hold().Begin(idempotency.Fingerprint{}, until); s.limit != want {
				t.Errorf("until %v: asked for %v, want %v", until, s.limit, want)
			}
		}
	})
}

// What waits for a store that is away is bounded: beyond 64 MiB a repeat is told that its request was done, and no
// more.
func TestAnswersThatWaitForTheStoreAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, body := 0, make([]byte, 1<<20)
		var shops []*shop
		for i := range 80 {
			s := open(t, &diary{renew: away(100), complete: away(100)})
			h := s.hold()
			h.Key = fmt.Sprint(i)
			_, _ = h.Begin(idempotency.Fingerprint{}, core.NoDeadline)
			h.Keep()
			h.Complete(idempotency.Response{Status: 200, Body: body}, core.Now())
			shops = append(shops, s)
		}
		if err := serving.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, s := range shops {
			if !s.answer.Truncated {
				whole++
			}
		}
		if whole != 64 {
			t.Errorf("%d answers of 1 MiB waited, want 64", whole)
		}
	})
}

// However many answers are held back while they come, beyond 64 KiB each they take 64 MiB in all.
func TestAnswersThatAreHeldBackAreBoundedInAll(t *testing.T) {
	const free, all = 64 << 10, 64 << 20
	var first, second serving.Hold
	if !first.Grow(0, free) || !first.Grow(free, free+all) {
		t.Error("there is no room though nobody else has any")
	}
	if !second.Grow(0, free) || second.Grow(free, free+1) || first.Grow(free+all, free+all+1) {
		t.Error("not what is common is free, or there is more than that")
	}
	first.Shrink()
	if !second.Grow(free, free+all) {
		t.Error("what was given back is not there")
	}
	second.Shrink()
	second.Shrink()
	if second.Grow(0, free+all+1) || !second.Grow(0, free+all) {
		t.Error("what was refused counts, or what was given back counts twice")
	}
	second.Shrink()
}
