package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/core"
)

type replaying struct {
	d       *Desk
	r       Replay
	session string
	ends    map[int32]int64
	targets map[string]target
	goals   map[string]bool // the topics that letters go to
	failed  map[string]bool // topics in which they say that they failed; some, for whoever writes a letter may name any
	watch   *watcher
	out     *outlook
	judged  bool // all of it
	gone    int  // letters of which was known before that their topic is gone
	unsure  int  // letters behind their group's commits of which nobody knows whether they have failed again
	chunk   []*Entry
	records []*kgo.Record
	next    time.Time // when the next chunk may go

	mu sync.Mutex
	p  Progress // changed by one goroutine, read by another
}

// errStopped ends the reading: why stands in the progress.
var errStopped = errors.New("stopped")

// Replay replays, and returns at the end. A cancelled context cancels it; what was stopped or cancelled can be resumed.
// The error is nil however it ends, unless it could not begin or could not go on: the filter is wrong, another replay
// is under way, a broker is away.
func (d *Desk) Replay(ctx context.Context, r Replay) (Progress, error) {
	x := &replaying{d: d, r: r, session: random("s-"), targets: map[string]target{}, out: newOutlook()}
	if err := x.begin(ctx); err != nil {
		return x.p, err
	}
	if r.DryRun {
		return x.dry(ctx)
	}
	if err := x.acquire(ctx); err != nil {
		return x.p, err
	}
	inside, cancel := context.WithCancelCause(ctx)
	var kept sync.WaitGroup
	kept.Go(func() { x.keep(inside, cancel) })
	err := x.run(inside)
	if taken := x.still(); err == nil && errors.Is(taken, errTaken) {
		err = taken // the other one has sent what this one found no more
	}
	cause := cmp.Or(context.Cause(inside), x.still())
	cancel(nil)
	kept.Wait()
	return x.end(ctx, err, cause)
}

// begin checks what was asked for and fills in the defaults, or what the audit says of the replay that is resumed.
func (x *replaying) begin(ctx context.Context) error {
	if err := x.d.audit.sync(ctx); err != nil {
		return err
	}
	x.p = Progress{ID: random("r-"), Phase: Counting, Started: time.Now().UTC(), By: x.d.by(ctx), DryRun: x.r.DryRun}
	if x.r.Resume != "" {
		if err := x.resume(); err != nil {
			return err
		}
	}
	r := &x.r
	var wrong []error
	set := func(what string, v, def, lo, hi float64) float64 {
		v = cmp.Or(v, def)
		if !(v >= lo && v <= hi) {
			wrong = append(wrong, fmt.Errorf("dlq: %s %v is out of range: write %v to %v", what, v, lo, hi))
		}
		return v
	}
	r.Rate = set("Rate", r.Rate, 100, 0.01, 1e6)
	r.Settle = time.Duration(set("Settle", float64(r.Settle), float64(5*time.Second), 0, float64(24*time.Hour)))
	r.Patience = time.Duration(set("Patience", float64(r.Patience), float64(5*time.Minute), 0, float64(24*time.Hour)))
	r.MaxFailures = set("MaxFailures", r.MaxFailures, 0.1, -1, 1)
	r.MaxReplays = int(set("MaxReplays", float64(r.MaxReplays), 3, 1, 1e6))
	if r.To == x.d.config.Topic || r.To == x.d.config.Audit {
		wrong = append(wrong, fmt.Errorf("dlq: To is %s: that is the dead-letter topic or its audit; give another, or leave "+
			"it empty for the original one", r.To))
	}
	_, err := x.d.sieve(r.Filter)
	if err = errors.Join(append(wrong, err)...); err != nil || x.ends != nil {
		return err
	}
	bounds, err := x.d.bounds(ctx, x.d.config.Topic)
	x.ends = make(map[int32]int64, len(bounds))
	for partition, b := range bounds {
		x.ends[partition] = b.to
	}
	return err
}

func (x *replaying) resume() error {
	p, spec, ok := x.d.ledger.replay(x.r.Resume, time.Now())
	switch {
	case !ok:
		return fmt.Errorf("dlq: there is no replay %q of %s to resume: \"abate dlq audit\" shows them", x.r.Resume,
			x.d.config.Topic)
	case x.r.DryRun:
		return errors.New("dlq: a resumed replay cannot be a dry run: run it again with its filter instead")
	case x.r.To != "" && x.r.To != spec.To:
		return fmt.Errorf("dlq: replay %s goes to %s, not to %s: leave To away to resume it, or begin another", p.ID,
			cmp.Or(spec.To, "the topic where each letter came from"), x.r.To)
	case p.Phase == Done:
		return fmt.Errorf("dlq: replay %s is done: there is nothing to resume", p.ID)
	}
	r := &x.r
	r.Filter, r.To = spec.Filter, spec.To
	r.Rate, r.MaxFailures = cmp.Or(r.Rate, spec.Rate), cmp.Or(r.MaxFailures, spec.MaxFailures)
	r.Settle, r.MaxReplays = cmp.Or(r.Settle, spec.Settle), cmp.Or(r.MaxReplays, spec.MaxReplays)
	if r.Watch == nil {
		r.Watch = spec.Watch
	}
	r.Reader, r.Patience = cmp.Or(r.Reader, spec.Reader), cmp.Or(r.Patience, spec.Patience)
	r.Unjudged = r.Unjudged || spec.Unjudged
	x.ends = spec.Ends
	x.p.ID, x.p.Started, x.p.By, x.p.Sent = p.ID, p.Started, p.By, x.d.ledger.sentBy(p.ID)
	return nil
}

// run counts, then sends.
func (x *replaying) run(ctx context.Context) error {
	left, enough := x.r.Filter, false
	if left.Max > 0 {
		left.Max -= x.p.Sent
		enough = left.Max <= 0
	}
	n, targets := 0, map[string]bool{}
	if !enough {
		var err error
		if n, targets, err = x.choose(ctx, left); err != nil {
			return err
		}
	}
	if x.r.Resume != "" {
		if err := x.again(ctx); err != nil {
			return err
		}
		for _, to := range x.out.open {
			targets[to.topic] = true
		}
	}
	x.change(func(p *Progress) { p.Chosen = n + p.Sent })
	if x.r.To != "" {
		targets = map[string]bool{x.r.To: true}
	}
	delete(targets, "")
	x.goals = targets
	topics := x.r.Watch
	if topics == nil {
		var err error
		if topics, err = x.d.forwards(ctx, targets, x.failed); err != nil {
			return err
		}
	}
	done, err := x.begins(ctx, topics)
	if err != nil {
		return err
	}
	defer done()
	if err := x.d.audit.append(ctx, &Action{Kind: ReplayAlive, ID: x.p.ID, Session: x.session,
		Watched: x.watch.begun()}); err != nil {
		return err
	}
	if n == 0 {
		return x.after(ctx)
	}
	return x.send(ctx, left)
}

// choose counts the letters, and finds where they came from and where they failed.
func (x *replaying) choose(ctx context.Context, f Filter) (n int, from map[string]bool, err error) {
	from, x.failed = map[string]bool{}, map[string]bool{}
	err = x.each(ctx, f, func(e *Entry) error {
		if from[e.Letter.Original.Topic] = true; n%1000 == 0 {
			x.change(func(p *Progress) { p.Chosen = n + p.Sent })
		}
		for _, past := range e.Letter.History {
			if len(x.failed) < mostTopics {
				x.failed[past.Topic] = true
			}
		}
		n++
		return nil
	})
	return n, from, err
}

// begins to watch for messages that fail again. done ends it.
func (x *replaying) begins(ctx context.Context, topics []string) (done func(), err error) {
	if !slices.Contains(topics, x.d.config.Topic) {
		topics = append([]string{x.d.config.Topic}, topics...)
	}
	from, err := x.offsets(ctx, topics)
	if err != nil {
		return nil, fmt.Errorf("dlq: ask where the replay began in the topics that it watches: %w", err)
	}
	watching, cancel := context.WithCancel(ctx)
	x.watch = &watcher{d: x.d, id: x.p.ID, ramp: &ramp{limit: max(x.r.MaxFailures, 0), allSent: x.p.Sent},
		batch: map[spot]bool{}, seen: map[spot]bool{}, woken: make(chan struct{}, 1)}
	ended, err := x.watch.start(watching, topics, from)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() { cancel(); <-ended }, nil
}

// each reads what the replay is about: up to where the topic ended when it began, as the audit is now.
func (x *replaying) each(ctx context.Context, f Filter, fn func(*Entry) error) error {
	s, spans, err := x.d.spans(ctx, f, x.ends)
	if err != nil {
		return err
	}
	left, enough, once := s.Max, false, twins{}
	for _, p := range spans {
		var stop error
		err := x.d.scan(ctx, x.d.config.Topic, []span{p}, x.d.through(s, once, func(e *Entry) bool {
			if left--; s.State != Waiting && x.d.ledger.sent(x.p.ID, spot{e.At.Partition, e.At.Offset}) {
				left++ // this replay chose it by another state, and has sent it
				return true
			}
			stop, enough = fn(e), left == 0
			return stop == nil && !enough
		}))
		if stop != nil {
			return stop
		}
		if err != nil || enough {
			return err
		}
	}
	return nil
}

// dry only tells what would be done.
func (x *replaying) dry(ctx context.Context) (Progress, error) {
	err := x.each(ctx, x.r.Filter, func(e *Entry) error {
		r, skip, err := x.prepare(ctx, e)
		if err != nil {
			return err
		}
		x.tell(e, r, skip)
		x.change(func(p *Progress) {
			if p.Chosen++; skip == "" {
				p.Sent++
			}
		})
		return nil
	})
	x.change(func(p *Progress) { p.Phase = Done })
	if err != nil {
		x.change(func(p *Progress) { p.Phase, p.Why = Stopped, err.Error() })
	}
	return x.snapshot(), err
}

// tell tells the caller of a letter, and counts it if it is left out.
func (x *replaying) tell(e *Entry, r *kgo.Record, skip string) {
	to := ""
	if skip == "" {
		to = r.Topic
	} else {
		x.skipped(skip)
	}
	if x.r.Report != nil {
		x.r.Report(e, to, skip)
	}
}

// skipped counts a letter that is left out.
func (x *replaying) skipped(why string) {
	x.change(func(p *Progress) {
		p.Skipped++
		p.Skips = maps.Clone(p.Skips)
		if p.Skips == nil {
			p.Skips = map[string]int{}
		}
		p.Skips[why]++
	})
}

// change changes the progress and tells the caller.
func (x *replaying) change(fn func(*Progress)) {
	x.mu.Lock()
	fn(&x.p)
	x.p.Updated = time.Now().UTC()
	p := x.p
	x.mu.Unlock()
	if x.r.Progress != nil {
		x.r.Progress(p)
	}
}

func (x *replaying) snapshot() Progress {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.p
}

func (x *replaying) end(ctx context.Context, err, cause error) (Progress, error) {
	var by *cancelError
	x.stand()
	x.change(func(p *Progress) {
		switch {
		case err == nil:
			if !p.Phase.Ended() {
				p.Phase = Done
			}
		case errors.As(cause, &by):
			p.Phase, p.Why, err = Cancelled, by.Error(), nil
		case ctx.Err() != nil:
			p.Phase, p.Why, err = Cancelled, "cancelled where it ran: "+context.Cause(ctx).Error(), nil
		case cause != nil:
			p.Phase, p.Why, err = Stopped, cause.Error(), fmt.Errorf("dlq: the replay stopped: %w", cause)
		default:
			p.Phase, p.Why = Stopped, err.Error()
		}
	})
	p := x.snapshot()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer done()
	if failed := x.d.audit.append(last, &Action{Kind: ReplayStop, ID: p.ID, Session: x.session, Text: p.Why,
		Progress: &p}); failed != nil {
		err = errors.Join(err, fmt.Errorf("dlq: the end of the replay is not in the audit, so that another may begin only "+
			"after a minute: %w", failed))
	}
	return p, err
}

// circuit waits while the circuit of the guard is open.
func (x *replaying) circuit(ctx context.Context) error {
	for x.r.Guard != nil && x.r.Guard.Breaker() != nil && x.r.Guard.Breaker().Rejecting(core.Now()) {
		x.change(func(p *Progress) { p.Phase, p.Why = CircuitOpen, "the circuit of "+x.r.Guard.Name()+" is open" })
		wait := max(x.r.Guard.Breaker().RetryIn(core.Now()), 10*time.Millisecond)
		if err := sleep(ctx, min(wait, time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// tooLarge reports a record that the broker or the client does not take because of its size: others may go.
func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}
