package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/redelivery"
)

// Deduper recognises messages that were handled before: the store that it keeps them in, and what names them. It is
// safe for concurrent use, and one may serve several consumers.
//
// A delivery claims the message's key for a lease, which it renews while the handler runs. Handled, the key is
// remembered; failed, it is let go, so that the next delivery runs. A message that was handled is done without a
// delivery (event Duplicate). While another delivery has the key, and while the store cannot be asked, the message is
// held: the service is not touched and no retry topic is used up. A delivery whose process died leaves its lease, and
// the one after that is told by [Claim].TakenOver that the effect may have happened.
//
// A record of what was handled that is not committed together with the effect can only narrow the gap between the two,
// never close it. If the effect is in a SQL database, record the message's [Message.ID] in the effect's own transaction
// instead (abatesql.Store.Once): that closes it, and no Deduper is needed.
//
// Either way a dead letter that is replayed keeps its ID: what was handled is not handled again, and what failed, of
// which nothing was recorded, is.
type Deduper struct {
	Store idempotency.Store
	// Header is the name of the header with the event's id; Field a field of a JSON value, "id" or "event.id", a string
	// or a number. The first that a message has counts; without either, or if a message has none, it is the message's
	// own [Message.ID].
	Header, Field string
	// TrustIDs takes a message for the same event as another with its id, whatever its value. Else a message with an id
	// that another value was handled under is a dead letter of class "event-id-reused": two events with one id would be
	// one effect too few.
	TrustIDs bool
	// Retention is how long a handled message is remembered. It must be at least as long as the chain of retry topics;
	// with dead letters that are replayed, longer than those are kept. Zero: what the policy's chain, Outage and
	// DLTRetention come to.
	Retention time.Duration
	// Lease is how long a delivery that gives no sign of life keeps others away. Zero: 30 s, or the policy's
	// HandlerTimeout if that is shorter.
	Lease time.Duration
}

// Once makes a Deduper by record identity: processing → done, or failed, which lets the next delivery run.
func Once(store idempotency.Store) *Deduper { return &Deduper{Store: store} }

// storeLimit is how long the store gets for one answer.
const storeLimit = 5 * time.Second

// wrap puts the deduper around a whole delivery: deliver is the handler under its guard, and returns nil for what is
// done, an answer (abate.Ignore) included. duplicate is called for a message that was handled before; the wrapped
// handler returns nil for it. c is the policy's section with its defaults. log gets what people should know and no
// error carries; nil for slog.Default().
//
// Of the errors that are not deliver's own, refusedFor reports those that mean "later, and nothing was attempted", and
// reused the only other, a permanent one. It recovers from no panic, but lets the key go.
func (d *Deduper) wrap(
	group string, c redelivery.Config, log *slog.Logger, deliver Handler, duplicate func(*Message),
) Handler {
	if log == nil {
		log = slog.Default()
	}
	w := &onceHandler{
		d: d, group: group, log: log, deliver: deliver, duplicate: duplicate,
		lease: d.lease(c), retention: d.retention(c),
	}
	return w.handle
}

func (d *Deduper) lease(c redelivery.Config) time.Duration {
	switch {
	case d.Lease > 0:
		return d.Lease
	case c.HandlerTimeout > 0:
		return min(c.HandlerTimeout, 30*time.Second)
	}
	return 30 * time.Second
}

// required is the least retention that makes sense: how long a message is on its way through the retry topics if nobody
// ever waits for a consumer. Preflight refuses a shorter one.
func (d *Deduper) required(c redelivery.Config) (chain time.Duration) {
	for _, hop := range redelivery.NewPlan(c).Hops() {
		chain += hop.Delay * time.Duration(hop.Deliveries)
	}
	return chain
}

// retention is how long a handled message is remembered.
func (d *Deduper) retention(c redelivery.Config) time.Duration {
	if d.Retention > 0 {
		return d.Retention
	}
	c = c.WithDefaults()
	total := d.required(c) + c.Outage
	if c.DLTStrategy == redelivery.DeadLetters || c.DLTStrategy == "" {
		total += c.DLTRetention
	}
	return max(total, 24*time.Hour) // a Config that is off says nothing
}

// onceHandler is a Deduper around the deliveries of one consumer.
type onceHandler struct {
	d                *Deduper
	group            string
	log              *slog.Logger
	deliver          Handler
	duplicate        func(*Message)
	lease, retention time.Duration
	nameless         atomic.Int64 // messages without an event id
}

func (w *onceHandler) handle(ctx context.Context, m *Message) error {
	id := w.d.eventOf(m)
	if id.problem != nil {
		if n := w.nameless.Add(1); n&(n-1) == 0 { // 1, 2, 4, ...: all of them would be a flood
			w.log.Warn("message without the event id that Once is to go by, its own place counts instead",
				append(where(m), "error", id.problem, "so_far", n)...)
		}
	}
	key := idempotency.StoreKey(w.group, id.topic, id.key)
	begun, err := w.begin(ctx, key, id)
	switch {
	case err != nil:
		return &busyError{err: fmt.Errorf("the store of handled messages did not answer, so %s waits: %w", m.ID(), err)}
	case begun.State == idempotency.Run:
		return w.run(ctx, m, key, begun)
	case begun.State == idempotency.Replay:
		w.duplicate(m)
		return nil
	case begun.State == idempotency.Mismatch:
		return &reusedIDError{id: id.text, message: m.ID()}
	}
	return &busyError{wait: begun.Lease, err: fmt.Errorf(
		"another delivery of %s has been begun, and may be running for %v more", m.ID(), begun.Lease)}
}

func (w *onceHandler) begin(ctx context.Context, key string, id eventID) (idempotency.Begun, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	return w.d.Store.Begin(ctx, key, id.fingerprint, w.lease)
}

func (w *onceHandler) run(ctx context.Context, m *Message, key string, begun idempotency.Begun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &Claim{Key: key, Token: begun.Token, TakenOver: begun.TakenOver}
	r := &renewal{store: w.d.Store, claim: c, lease: w.lease, lost: cancel}
	r.start()
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit
			r.stop()
			w.fail(ctx, m, c)
		}
	}()
	err := w.deliver(context.WithValue(ctx, claimKey{}, c), m)
	returned = true
	r.stop()
	if err != nil {
		if lost := context.Cause(ctx); errors.Is(lost, idempotency.ErrLost) {
			return &busyError{err: fmt.Errorf("another delivery has taken %s over, while this one failed with: %w", m.ID(), err)}
		}
		w.fail(ctx, m, c)
		return err
	}
	w.complete(ctx, m, c)
	return nil
}

// complete remembers a message that was handled. That it cannot is no failure of the message, whose effect is there: it
// is told, and a second copy of the message would run.
func (w *onceHandler) complete(ctx context.Context, m *Message, c *Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	pause := 50 * time.Millisecond
	for {
		err := w.d.Store.Complete(ctx, c.Key, c.Token, idempotency.Response{}, w.retention)
		if err == nil {
			return
		}
		if errors.Is(err, idempotency.ErrLost) || !waits(ctx, pause) {
			w.log.Error("handled message is not remembered as handled: a second copy of it would run again; "+
				"look after the store that Once was given", append(where(m), "error", err)...)
			return
		}
		pause *= 2
	}
}

// fail lets the key go. If it cannot, the lease ends by itself.
func (w *onceHandler) fail(ctx context.Context, m *Message, c *Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	if err := w.d.Store.Fail(ctx, c.Key, c.Token); err != nil && !errors.Is(err, idempotency.ErrLost) {
		w.log.Warn("failed message could not be let go in the store that Once was given: "+
			"its next delivery waits for the end of the lease", append(where(m), "lease", w.lease, "error", err)...)
	}
}

// waits returns false if ctx is done before the pause is over.
func waits(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// where names a message in logs.
func where(m *Message) []any {
	return []any{"topic", m.Topic, "partition", m.Partition, "offset", m.Offset, "delivery", m.Delivery}
}
