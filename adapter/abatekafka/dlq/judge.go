package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	judgeEvery = 250 * time.Millisecond // how often the group's commits are asked for
	catchUp    = 15 * time.Second       // at most, for reading what was forwarded before a commit
)

// watched is what a look at the groups tells.
type watched struct {
	members string // why a group does not go on, for people: it has no members; empty if it has
	absent  bool   // nobody reads
}

// look asks what the groups have committed, and forgets the letters that are behind it.
func (x *replaying) look(ctx context.Context) (w watched, err error) {
	now := time.Now()
	if err := x.vanished(ctx); err != nil {
		return w, err
	}
	all := x.out.lanes()
	present := len(all) == 0 // while one of the groups reads, it is waited for
	for group, lanes := range all {
		names := []string{group}
		if group == "" {
			if names, err = x.readers(ctx, lanes); err != nil {
				return w, err
			}
		}
		committed, err := x.commits(ctx, names, lanes)
		if err != nil {
			return w, err
		}
		for _, at := range lanes {
			x.out.committed(at, committed[at], now)
		}
		switch members(ctx, x.d.admin, names) {
		case nobody:
			w.members = "which has no members now"
			if len(all) > 1 {
				w.members = "of which " + cmp.Or(group, "another") + " has no members now"
			}
		case notTold:
			present = present || len(x.out.unread()) == 0
		default:
			present = true
		}
	}
	w.absent = !present
	x.out.settle()
	return w, nil
}

// vanished looks whether the topics that letters were sent to are still the same.
func (x *replaying) vanished(ctx context.Context) error {
	names := x.out.topics()
	if len(names) == 0 {
		return nil
	}
	topics, err := x.d.admin.ListTopics(asking(ctx), names...)
	if err != nil {
		return fmt.Errorf("dlq: look for the topics that letters were sent to: %w", err)
	}
	ids := map[string]string{}
	for name, t := range topics {
		ids[name] = topicID(t)
	}
	x.out.vanish(ids)
	return nil
}

// commits are the offsets that all of these groups have committed, the least of them; -1 where none has.
func (x *replaying) commits(ctx context.Context, groups []string, lanes []lane) (map[lane]int64, error) {
	found := make(map[lane]int64, len(lanes))
	for _, at := range lanes {
		found[at] = -1
	}
	for _, group := range groups {
		offsets, err := x.d.admin.FetchOffsets(ctx, group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("dlq: ask what group %s has committed: %w", group, err)
		}
		for _, at := range lanes {
			if o, ok := offsets.Lookup(at.topic, at.partition); ok && o.Err == nil && o.At >= 0 &&
				(found[at] < 0 || o.At < found[at]) {
				found[at] = o.At
			}
		}
	}
	return found, nil
}

// caughtUp waits until the watcher has read what stood in the retry and dead-letter topics when the commits were seen:
// a message is forwarded before it is committed, so that what has failed again is known then. If it cannot, behind says
// why: nobody reads on behind a transaction that another producer has left open.
func (x *replaying) caughtUp(ctx context.Context) (behind string, err error) {
	var topics []string
	if x.r.Watch == nil {
		var err error
		if topics, err = x.d.forwards(ctx, x.goals, x.failed); err != nil {
			return "", err
		}
	}
	if err := x.watch.more(ctx, topics); err != nil {
		return "", err
	}
	ends, err := x.d.admin.ListEndOffsets(asking(ctx), x.watch.topics...)
	if err != nil {
		return "", fmt.Errorf("dlq: ask where the retry topics end: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, min(catchUp, x.r.Patience))
	defer cancel()
	for {
		at := x.watch.short(ends)
		if at == "" {
			return "", nil
		}
		if err := sleep(limited, 10*time.Millisecond); err != nil {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			return "whether they have failed again cannot be seen: " + at + " is not readable to its end, because of a " +
				"transaction that was left open; resume the replay later", nil
		}
	}
}

// uncertain takes back that letters were handled: those of the batch of which nobody can say whether they have failed
// again.
func (x *replaying) uncertain() {
	_ = x.watch.ask(func(r *ramp) {
		x.unsure = max(r.sent-r.back-x.out.waiting(x.watch.seen)-x.out.lost(x.watch.seen), 0)
	})
	x.change(x.count().tell)
}

// settle waits until each letter of the batch was handled or has failed again, and judges it. Silence is no verdict:
// while nobody has got to a letter it waits, and where nobody reads, the replay ends with what is known.
func (x *replaying) settle(ctx context.Context, last bool) error {
	x.change(func(p *Progress) { p.Phase = Settling })
	began := time.Now()
	x.out.begin(began)
	tick := time.NewTimer(0)
	defer tick.Stop()
	read, heard := began, began // when somebody was last known to read, and when the broker answered
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-x.watch.woken:
		case <-tick.C:
			tick.Reset(min(judgeEvery, max(x.r.Settle, time.Millisecond)))
		}
		seen, err := x.look(ctx)
		now := time.Now()
		switch {
		case err == nil:
			heard = now
		// a coordinator that moves, or is only made now
		case now.Sub(heard) < lost && (!x.r.Unjudged || kerr.IsRetriable(err)):
			continue
		case !x.r.Unjudged:
			return err
		}
		if !seen.absent || x.out.moved.After(read) {
			read = now
		}
		if x.note(seen, now) == 0 && err == nil {
			behind, err := x.caughtUp(ctx)
			if err != nil {
				return err
			}
			if x.note(seen, now); behind != "" {
				x.uncertain()
			}
			return x.verdict(last, behind)
		}
		if _, stop, err := x.tooMany(); err != nil || stop {
			return errors.Join(err, x.verdict(last, ""))
		}
		switch {
		case x.r.Unjudged && now.Sub(began) >= x.r.Settle:
			return x.verdict(last, "")
		case x.r.Unjudged:
		case now.Sub(read) >= x.r.Settle, now.Sub(x.out.moved) >= x.r.Patience:
			return x.verdict(last, x.snapshot().Why)
		}
	}
}

// note reports how the letters stand, and returns how many nobody has got to.
func (x *replaying) note(seen watched, now time.Time) (waiting int) {
	count := x.count()
	waiting = count.waiting
	eta, _ := x.out.eta(now)
	x.change(func(p *Progress) {
		count.tell(p)
		p.ETASeconds, p.Why = 0, ""
		if waiting > 0 {
			p.ETASeconds, p.Why = eta.Seconds(), x.out.why(waiting, seen, now)
		}
	})
	return waiting
}

// standing is how the letters that were sent stand.
type standing struct{ back, waiting, gone int }

func (x *replaying) count() (s standing) {
	_ = x.watch.ask(func(r *ramp) {
		s = standing{back: r.allBack, waiting: x.out.waiting(x.watch.seen), gone: x.out.lost(x.watch.seen)}
	})
	s.waiting += x.unsure
	return s
}

func (s standing) tell(p *Progress) {
	p.Back, p.Waiting, p.Gone = s.back, s.waiting, s.gone
	p.Handled = max(p.Sent-s.back-s.waiting-s.gone, 0)
}

// stand says at the end how the letters stand, also if the end came before a verdict.
func (x *replaying) stand() {
	if x.watch == nil {
		return
	}
	count := x.count()
	x.change(count.tell)
}

// tooMany reports whether more of the batch have failed again than may.
func (x *replaying) tooMany() (why string, stop bool, err error) {
	err = x.watch.ask(func(r *ramp) { why, stop = r.verdict() })
	return why, stop, err
}

// verdict ends a batch. unread says why it cannot be judged; the last one has nothing to stop any more.
func (x *replaying) verdict(last bool, unread string) error {
	why, stop, err := x.tooMany()
	if err != nil {
		return err
	}
	anew := len(x.out.gone) > x.gone // since it began
	x.change(func(p *Progress) {
		switch {
		case anew:
			p.Phase, p.Why = Stopped, goneText(p.Gone)
		case stop && !last:
			p.Phase, p.Why = Stopped, why
		case unread != "" && !last:
			p.Phase, p.Why = Stopped, unread
		case last && p.Waiting > 0:
			if p.Phase = Pending; unread != "" {
				p.Why = unread
			}
			if stop {
				p.Why = why + "; " + p.Why
			}
		case stop:
			p.Phase, p.Why = Done, why
		default:
			p.Why = goneText(p.Gone)
		}
	})
	if anew || !last && (stop || unread != "") {
		return errStopped
	}
	return nil
}

// goneText says that letters went to a topic that is not there any more; nothing if none did.
func goneText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d were sent to a topic that was deleted and made anew since, and nobody can say whether they "+
		"were handled: restore them, and replay them again", n)
}
