package abatekafka_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

var errDown = errors.New("connection refused")

// desk is a deduper with its store on a clock of its own, and what its consumer hears of it.
type desk struct {
	*abatekafka.Deduper
	store      *flaky
	log        bytes.Buffer
	mu         sync.Mutex
	duplicates []string
}

// newDesk is for a synctest bubble, whose clock is the store's.
func newDesk() *desk {
	began := time.Now()
	d := &desk{store: &flaky{Store: idempotency.NewMemory(1<<20, func() time.Duration { return time.Since(began) })}}
	d.Deduper = abatekafka.Once(d.store)
	d.Lease = 10 * time.Second
	return d
}

// handle delivers m once.
func (d *desk) handle(ctx context.Context, m *abatekafka.Message, handler abatekafka.Handler) error {
	wrapped := d.Wrap("billing", redelivery.Config{}, slog.New(slog.NewTextHandler(&d.log, nil)), handler,
		func(m *abatekafka.Message) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.duplicates = append(d.duplicates, m.ID())
		})
	return wrapped(ctx, m)
}

// runs delivers m and tells how often the handler was called, which ends with err.
func (d *desk) runs(t *testing.T, m *abatekafka.Message, err error) (n int, result error) {
	t.Helper()
	result = d.handle(t.Context(), m, func(context.Context, *abatekafka.Message) error { n++; return err })
	return n, result
}

// flaky is a store that can be away, wholly or for one method.
type flaky struct {
	idempotency.Store
	mu    sync.Mutex
	away  map[string]int // failures left of each method; negative: for good
	calls map[string]int
}

func (s *flaky) fails(method string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away == nil {
		s.away = map[string]int{}
	}
	s.away[method] = times
}

func (s *flaky) asked(ctx context.Context, method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[method]++
	if s.away[method] != 0 {
		s.away[method]--
		return errDown
	}
	return ctx.Err()
}

func (s *flaky) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	idempotency.Begun, error) {
	if err := s.asked(ctx, "begin"); err != nil {
		return idempotency.Begun{}, err
	}
	return s.Store.Begin(ctx, key, fp, lease)
}

func (s *flaky) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	if err := s.asked(ctx, "renew"); err != nil {
		return err
	}
	return s.Store.Renew(ctx, key, token, lease)
}

func (s *flaky) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	if err := s.asked(ctx, "complete"); err != nil {
		return err
	}
	return s.Store.Complete(ctx, key, token, r, retention)
}

func (s *flaky) Fail(ctx context.Context, key string, token uint64) error {
	if err := s.asked(ctx, "fail"); err != nil {
		return err
	}
	return s.Store.Fail(ctx, key, token)
}

func message(offset int64, value string, headers ...string) *abatekafka.Message {
	m := &abatekafka.Message{Topic: "payments", Partition: 3, Offset: offset, Delivery: 1, Value: []byte(value)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return m
}

func TestAHandledMessageIsNotDeliveredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.Retention = time.Hour
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Fatalf("first delivery: %d runs, %v", n, err)
		}
		time.Sleep(59 * time.Minute)
		if n, err := d.runs(t, message(7, ""), nil); n != 0 || err != nil {
			t.Errorf("second delivery: %d runs, %v", n, err)
		}
		if n, _ := d.runs(t, message(8, ""), nil); n != 1 {
			t.Errorf("another message: %d runs", n)
		}
		if got := strings.Join(d.duplicates, " "); got != message(7, "").ID() {
			t.Errorf("duplicates told: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if n, _ := d.runs(t, message(7, ""), nil); n != 1 {
			t.Errorf("after the retention: %d runs", n)
		}
	})
}

func TestAFailedMessageIsDeliveredAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		for range 3 {
			if n, err := d.runs(t, message(7, ""), errDown); n != 1 || !errors.Is(err, errDown) {
				t.Errorf("%d runs, %v", n, err)
			}
		}
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Errorf("at last: %d runs, %v", n, err)
		}
		if n, _ := d.runs(t, message(7, ""), nil); n != 0 {
			t.Errorf("after that: %d runs", n)
		}
	})
}

func TestAPanicLetsTheKeyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		func() {
			defer func() {
				if got := recover(); got != "bad day" {
					t.Errorf("recovered %v", got)
				}
			}()
			_ = d.handle(t.Context(), message(7, ""), func(context.Context, *abatekafka.Message) error { panic("bad day") })
		}()
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Errorf("afterwards: %d runs, %v", n, err)
		}
	})
}

// A delivery that the end of the process interrupts fails with its context's error; the store is asked all the same.
func TestAnInterruptedDeliveryLetsTheKeyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		ctx, cancel := context.WithCancel(t.Context())
		err := d.handle(ctx, message(7, ""), func(ctx context.Context, _ *abatekafka.Message) error {
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Errorf("afterwards: %d runs, %v", n, err)
		}
	})
}

// The handler runs ten leases long; every second somebody else comes with the same message.
func TestALongDeliveryKeepsItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		done := make(chan error)
		go func() {
			done <- d.handle(t.Context(), message(7, ""), func(context.Context, *abatekafka.Message) error {
				time.Sleep(100 * time.Second)
				return nil
			})
		}()
		for range 99 {
			time.Sleep(time.Second)
			synctest.Wait()
			n, err := d.runs(t, message(7, ""), nil)
			wait, refused := abatekafka.RefusedFor(err)
			if n != 0 || !refused || wait <= 0 || wait > 10*time.Second {
				t.Fatalf("%d runs, %v: wait %v, refused %v", n, err, wait, refused)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("the long delivery: %v", err)
		}
		if n, err := d.runs(t, message(7, ""), nil); n != 0 || err != nil {
			t.Errorf("afterwards: %d runs, %v", n, err)
		}
		if left := d.store.calls["renew"]; left < 20 || left > 40 {
			t.Errorf("%d renewals in ten leases", left)
		}
	})
}

// A delivery that dies neither completes nor fails.
func TestTheNextAfterACrashIsToldThatTheEffectMayHaveHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		for _, method := range []string{"renew", "fail", "complete"} {
			d.store.fails(method, -1)
		}
		first := abatekafka.Claim{}
		crash := func(ctx context.Context, _ *abatekafka.Message) error {
			first, _ = abatekafka.ClaimOf(ctx)
			return errDown
		}
		if err := d.handle(t.Context(), message(7, ""), crash); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		d.store.fails("complete", 0)
		n, err := d.runs(t, message(7, ""), nil)
		if wait, refused := abatekafka.RefusedFor(err); n != 0 || !refused || wait != 10*time.Second {
			t.Fatalf("within the lease: %d runs, %v, wait %v", n, err, wait)
		}
		time.Sleep(10*time.Second + 1)
		err = d.handle(t.Context(), message(7, ""), func(ctx context.Context, _ *abatekafka.Message) error {
			c, ok := abatekafka.ClaimOf(ctx)
			if !ok || !c.TakenOver || c.Token <= first.Token || c.Key != first.Key || first.TakenOver {
				t.Errorf("claims %+v, then %+v, %v", first, c, ok)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(d.log.String(), "waits for the end of the lease") {
			t.Errorf("nothing was said of the key that could not be let go: %s", d.log.String())
		}
	})
}

// The one that sleeps through its lease is ended as soon as it can be known, and is not counted as a failure of the
// message.
func TestADeliveryThatWasTakenOverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.store.fails("renew", 3) // the third is at 10 s
		slow := make(chan error)
		go func() {
			slow <- d.handle(t.Context(), message(7, ""), func(ctx context.Context, _ *abatekafka.Message) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		time.Sleep(10*time.Second + 1)
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Fatalf("taking over: %d runs, %v", n, err)
		}
		err := <-slow
		if _, refused := abatekafka.RefusedFor(err); !refused {
			t.Errorf("the one that was taken over: %v", err)
		}
	})
}

func TestAStoreThatIsAwayHoldsMessagesAndLeavesTheServiceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.store.fails("begin", 1)
		n, err := d.runs(t, message(7, ""), nil)
		if wait, refused := abatekafka.RefusedFor(err); n != 0 || !refused || wait != 0 || !errors.Is(err, errDown) {
			t.Errorf("%d runs, %v", n, err)
		}
		if _, refused := abatekafka.RefusedFor(errDown); refused {
			t.Error("any error counts as a refusal")
		}
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Errorf("when it is back: %d runs, %v", n, err)
		}
	})
}

func TestAHandledMessageIsDoneThoughTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.store.fails("complete", 3)
		if n, err := d.runs(t, message(7, ""), nil); n != 1 || err != nil {
			t.Errorf("away for a moment: %d runs, %v", n, err)
		}
		if n, _ := d.runs(t, message(7, ""), nil); n != 0 {
			t.Errorf("it was not remembered: %d runs", n)
		}
		if d.log.Len() > 0 {
			t.Errorf("needless words: %s", d.log.String())
		}
		d.store.fails("complete", -1)
		if n, err := d.runs(t, message(8, ""), nil); n != 1 || err != nil {
			t.Errorf("away for good: %d runs, %v", n, err)
		}
		if got := d.log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "offset=8") ||
			!strings.Contains(got, "connection refused") {
			t.Errorf("nobody was told: %s", got)
		}
	})
}

func TestEventsAreRecognisedWhereverTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.Header = "event-id"
		value := `{"amount":1}`
		if n, _ := d.runs(t, message(7, value, "event-id", "e1"), nil); n != 1 {
			t.Fatal("the first was not handled")
		}
		if n, err := d.runs(t, message(9, value, "event-id", "e1"), nil); n != 0 || err != nil {
			t.Errorf("the producer's copy: %d runs, %v", n, err)
		}
		n, err := d.runs(t, message(10, `{"amount":2}`, "event-id", "e1"), nil)
		classed, _ := err.(interface{ Class() string })
		if n != 0 || !abatekafka.Reused(err) || classed == nil || classed.Class() != "event-id-reused" ||
			abatekafka.Reused(errDown) {
			t.Errorf("the id with another value: %d runs, %v", n, err)
		}
		d.TrustIDs = true
		if n, err := d.runs(t, message(20, `1`, "event-id", "e2"), nil); n != 1 || err != nil {
			t.Errorf("trusted: %d runs, %v", n, err)
		}
		if n, err := d.runs(t, message(21, `2`, "event-id", "e2"), nil); n != 0 || err != nil {
			t.Errorf("trusted, again with another value: %d runs, %v", n, err)
		}
	})
}

func TestKeysAreOfTheirGroupAndTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.Header = "id"
		keys := map[string]bool{}
		see := func(ctx context.Context, _ *abatekafka.Message) error {
			c, _ := abatekafka.ClaimOf(ctx)
			keys[c.Key] = true
			return errDown
		}
		for _, group := range []string{"billing", "mail"} {
			for _, topic := range []string{"payments", "refunds"} {
				for _, id := range []string{"1", "2", ""} {
					m := message(7, "", "id", id)
					m.Topic = topic
					_ = d.Wrap(group, redelivery.Config{}, nil, see, nil)(t.Context(), m)
				}
			}
		}
		if len(keys) != 12 {
			t.Errorf("%d keys for 12 different things", len(keys))
		}
	})
}

func TestMessagesWithoutAnEventIDAreToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.Header = "event-id"
		handle := d.Wrap("billing", redelivery.Config{}, slog.New(slog.NewTextHandler(&d.log, nil)),
			func(context.Context, *abatekafka.Message) error { return nil }, func(*abatekafka.Message) {})
		for offset := range int64(1000) {
			if err := handle(t.Context(), message(offset, "")); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(d.log.String(), "without the event id"); n != 10 {
			t.Errorf("told %d times", n)
		}
	})
}
