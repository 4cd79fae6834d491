package dlq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

const (
	look  = time.Second      // how often a replay looks whether it may go on
	alive = 10 * time.Second // how often it says that it is alive
	lost  = 40 * time.Second // after so long without a word from the audit it gives up, before others may start
)

// Why a replay ends before its end.
var (
	errTaken = errors.New("another replay has taken its place: " +
		"it was told to, or this one gave no sign of life for a minute")
	errLost = errors.New("the audit topic could not be read or written for 40 s, and another replay might begin")
)

type cancelError struct{ by string }

func (e *cancelError) Error() string { return "cancelled by " + e.by }

// random is a name that nobody else has: the prefix and 8 hexadecimal digits.
func random(prefix string) string {
	var b [4]byte
	rand.Read(b[:]) // it never fails
	return prefix + hex.EncodeToString(b[:])
}

// acquire asks for the dead-letter topic: it writes that the replay starts, and reads whether it was granted.
func (x *replaying) acquire(ctx context.Context) error {
	spec := &Spec{Filter: x.r.Filter, To: x.r.To, Rate: x.r.Rate, Settle: x.r.Settle, MaxFailures: x.r.MaxFailures,
		MaxReplays: x.r.MaxReplays, Watch: x.r.Watch, Reader: x.r.Reader, Patience: x.r.Patience,
		Unjudged: x.r.Unjudged, Ends: x.ends}
	if err := x.d.audit.append(ctx, &Action{Kind: ReplayStart, ID: x.p.ID, Session: x.session, TakeOver: x.r.TakeOver,
		Spec: spec}); err != nil {
		return err
	}
	if granted, _ := x.d.ledger.holds(x.p.ID, x.session); granted {
		return nil
	}
	holder, ok := x.d.ledger.holder(time.Now())
	if !ok {
		return errors.New("dlq: another replay has just begun or ended: look at \"abate dlq audit\" and try again")
	}
	return fmt.Errorf("dlq: %s is being replayed by %s since %s (%s, %d of %d sent): wait for its end, or end it with "+
		"\"abate dlq cancel %s\"; if its process is dead, wait for a minute, or take over",
		x.d.config.Topic, holder.By, holder.Started.Format(time.RFC3339), holder.ID, holder.Sent, holder.Chosen, holder.ID)
}

// keep says that the replay is alive and looks whether it may go on; if not it cancels it and says why. It ends with
// ctx.
func (x *replaying) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	said, heard := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, done := context.WithTimeout(ctx, lost/2)
		err := x.d.audit.sync(limited)
		if err == nil && time.Since(said) >= alive {
			p := x.snapshot()
			if err = x.d.audit.append(limited, &Action{Kind: ReplayAlive, ID: x.p.ID, Session: x.session,
				Progress: &p}); err == nil {
				said = time.Now()
			}
		}
		done()
		if err == nil {
			heard = time.Now()
		}
		if err := x.still(); err != nil {
			cancel(err)
		} else if time.Since(said) > lost || time.Since(heard) > lost {
			cancel(errLost)
		}
	}
}

// still reports why the replay may not go on, as far as the audit was read.
func (x *replaying) still() error {
	granted, by := x.d.ledger.holds(x.p.ID, x.session)
	switch {
	case !granted:
		return errTaken
	case by != "":
		return &cancelError{by}
	}
	return nil
}

// Cancel ends a replay, wherever it runs: it stops within a second or two. It is an error if it has ended.
func (d *Desk) Cancel(ctx context.Context, id string) error {
	if err := d.audit.sync(ctx); err != nil {
		return err
	}
	// as the audit says: by this machine's clock, which may be wrong, it may seem silent
	p, _, ok := d.ledger.replay(id, time.Time{})
	switch {
	case !ok:
		return fmt.Errorf("dlq: there is no replay %q of %s: \"abate dlq audit\" shows them", id, d.config.Topic)
	case p.Phase.Ended():
		return fmt.Errorf("dlq: replay %s has ended already: %s %s", id, p.Phase, p.Why)
	}
	return d.audit.append(ctx, &Action{Kind: CancelAsked, ID: id})
}

// Replays lists the replays that the audit knows, the newest first, with how far they are: also those that run
// elsewhere, as of their last sign of life, which they give every 10 s.
func (d *Desk) Replays(ctx context.Context) ([]Progress, error) {
	if err := d.audit.sync(ctx); err != nil {
		return nil, err
	}
	return d.ledger.replays(time.Now()), nil
}
