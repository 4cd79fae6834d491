package abatekafka

import (
	"context"
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// delivery is one delivery of one message: the operation that the guard repeats, with all its memory in one piece.
type delivery struct {
	by      *deliverer
	record  pending
	crowded bool // others waited for room behind it when it began
	message *Message
	own     Message
	context deliveryContext
	room    core.Workspace

	began    time.Duration
	latency  time.Duration
	attempts int
	outcome  abate.Outcome // of the last attempt
}

// run delivers the message under the guard, and under Once if there is one.
func (d *delivery) run() (err error) {
	if once := d.by.shared.once; once != nil {
		return once(&d.context, d.message)
	}
	return d.guarded(&d.context)
}

// guarded is the handler under the guard: nil for what is done, answers among it.
func (d *delivery) guarded(ctx context.Context) error {
	_, release, err := core.Run(ctx, d.by.shared.guard, core.Operation[struct{}](d))
	release.Done()
	if err == nil || d.outcome.Class == abate.Ignored && !refusal(err) && d.by.ctx.Err() == nil {
		return nil
	}
	return err
}

// refusal reports whether our own policies refused a call, so that the service has not seen it.
func refusal(err error) bool {
	var e *abate.Error
	return errors.As(err, &e) && e.Attempts == 0
}

// attempts is what Once goes around.
func attempts(ctx context.Context, _ *Message) error {
	return ctx.Value(deliveryKey{}).(*delivery).guarded(ctx)
}

// Attempt calls the handler once. A panic is an error.
func (d *delivery) Attempt(ctx context.Context, _ core.Sending) (none struct{}, err error) {
	d.attempts++
	d.outcome = abate.Outcome{}
	defer d.catch(&err)
	err = d.by.shared.handler(ctx, d.message)
	if err != nil {
		d.outcome = d.by.shared.guard.Judge(err)
	}
	return none, err
}

// Caller says that a message comes back, and whether this is its first delivery.
func (d *delivery) Caller() core.Caller {
	if d.message.Delivery > 1 {
		return core.ComesBack
	}
	return core.ComesBack | core.Fresh
}

func (d *delivery) catch(err *error) {
	if v := recover(); v != nil {
		*err = caught(v)
		d.outcome = abate.Outcome{Class: abate.Failure, Err: *err}
	}
}

// Classify judges an attempt whose error carries no mark.
func (d *delivery) Classify(_ struct{}, err error) abate.Outcome {
	if err == nil {
		return abate.Outcome{}
	}
	o := d.outcome
	o.NoRetry = o.NoRetry || !d.by.shared.guard.Retryable(0, err, true)
	return o
}

// Discard has nothing to do.
func (d *delivery) Discard(struct{}) {}

// MayHedge is false: a handler has effects.
func (d *delivery) MayHedge() bool { return false }

// Workspace saves the guard an allocation.
func (d *delivery) Workspace() *core.Workspace { return &d.room }

func (d *delivery) event(kind redelivery.EventKind) redelivery.Event {
	e := redelivery.Event{Kind: kind, Offset: d.record.rec.Offset, Delivery: d.message.Delivery, Latency: d.latency}
	if due := d.message.Letter.Due; d.by.tier != redelivery.Main && !due.IsZero() {
		e.Lateness = max(d.by.shared.date(d.began).Sub(due), 0)
	}
	return e
}
