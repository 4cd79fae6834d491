package abatekafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// partition drives the lane of one assigned partition: the poll loop pushes records, workers take them out, and the
// acknowledgements of what was forwarded finish them. No lock is held while a handler runs, and none while an observer
// is called.
type partition struct {
	*reporter
	deliverer *deliverer
	c         redelivery.Config // as it was when the partition was assigned
	cut       context.CancelFunc
	produce   func(*outgoing) // sends a record, and calls sent

	mu      sync.Mutex
	waiting sync.Cond // workers that have nothing to do
	window  window
	intake  intake
	pauses  pauses
	alarm   alarm

	workers  []*worker
	sleeping int
	flying   int           // deliveries under way
	outgoing int           // records on their way to other topics
	closing  bool          // nothing is started any more, but what stands between finished records
	gone     bool          // not ours any more: whatever comes late is ignored
	quiet    chan struct{} // closed when nothing is under way; nil unless somebody waits

	forwards  backoff
	committed int64 // by us, -1 for nothing yet
	before    int64 // by others before us, if nothing since; for the state only
}

// newPartition makes the partition of a deliverer. It is stopped while the keys that are parked are not known.
func newPartition(l *deliverer, c redelivery.Config, i intake, produce func(*outgoing)) *partition {
	p := &partition{
		reporter: l.reporter, deliverer: l, c: c, produce: produce,
		window: newWindow(c), intake: i, committed: -1, before: -1,
	}
	l.ctx, p.cut = context.WithCancel(l.shared.ctx)
	p.waiting.L = &p.mu
	p.alarm.ring = p.alarmRings
	p.mu.Lock() // built waits until it is stopped
	defer p.mu.Unlock()
	if l.parking != nil && l.parking.whenBuilt(p.built) {
		p.stop(rebuilding, redelivery.Forever)
	}
	return p
}

// built lets the partition go on, because the keys that are parked are known.
func (p *partition) built() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop(rebuilding, 0)
	p.wake()
}

// push takes what was fetched. end is the offset behind the last record of the log.
func (p *partition) push(records []*kgo.Record, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return
	}
	p.window.take(records, end)
	p.fill(core.Now())
	p.wake()
}

// fill moves records from the backlog into the lane, as far as the window goes. The lock is held.
func (p *partition) fill(now time.Duration) {
	for rec, ok := p.window.next(); ok; rec, ok = p.window.next() {
		p.window.admit(p.deliverer.pending(rec, now))
	}
	p.intake.holds(p.window.backlog.bytes)
}

// wake lets one more worker look for something to do. The lock is held.
func (p *partition) wake() {
	switch {
	case p.sleeping > 0:
		p.waiting.Signal()
	case p.closing:
	case len(p.workers) < p.c.Concurrency:
		w := &worker{p: p}
		p.workers = append(p.workers, w)
		p.sleeping++ // it is about to look
		go w.work()
	}
}

// next waits for a record that may be started. False: the partition is gone. The lock is held, but not while it waits.
func (p *partition) next() (seq uint64, now time.Duration, ok bool) {
	for {
		now = core.Now()
		if p.closing {
			if seq, ok = p.gap(now); ok {
				return seq, now, true
			}
			if p.settle(); p.gone {
				return 0, 0, false
			}
			p.sleep()
			continue
		}
		p.watchCircuit(now)
		seq, ok, wait := p.window.lane.Next(now)
		if ok {
			if pause := p.deliverer.shared.pace.Start(now); pause > 0 {
				p.window.lane.Hold(seq, now+pause)
				p.stop(pacing, now+pause)
				continue
			}
			return seq, now, true
		}
		if p.paused(now) {
			continue
		}
		p.alarm.set(now, wait)
		p.sleep()
	}
}

// sleep waits to be woken. The lock is held, but not meanwhile.
func (p *partition) sleep() {
	p.sleeping++
	p.waiting.Wait()
	p.sleeping--
}

// gap starts, while the partition is closing, what stands between finished records. The lock is held.
func (p *partition) gap(now time.Duration) (seq uint64, ok bool) {
	if p.gone || p.deliverer.ctx.Err() != nil {
		return 0, false
	}
	return p.window.gap(now)
}

// settle closes the channel of whoever waits for the partition to be quiet. The lock is held.
func (p *partition) settle() {
	if p.quiet != nil && p.flying == 0 && p.outgoing == 0 {
		close(p.quiet)
		p.quiet = nil
	}
}

// watchCircuit stops the partition while the service's circuit is open, before anything is started in vain.
func (p *partition) watchCircuit(now time.Duration) {
	if wait, open := p.deliverer.shared.closedOff(now); open {
		p.deliverer.shared.trouble(now)
		p.stop(circuitOpen, now+max(wait, redelivery.ProbeEvery))
	}
}

// stop starts nothing until then, for this reason. 0 lifts it. The lock is held.
func (p *partition) stop(why stopReason, until time.Duration) {
	p.window.lane.Stop(p.pauses.stop(why, until))
}

// stopped is why nothing is started now; empty if it is not so. The lock is held.
func (p *partition) stopped(now time.Duration) string {
	if p.intake.poisoned && p.window.idle() {
		return poisonBatch
	}
	why := p.pauses.longest(now)
	waits := p.window.backlog.records > 0 && p.flying == 0 && p.window.lane.Room() <= 0
	if why == "" && waits && p.tier == redelivery.Main {
		return windowFull
	}
	return why
}

// paused reports that the partition is paused, if that is new. It gives up the lock meanwhile, and returns true then.
func (p *partition) paused(now time.Duration) bool {
	why := p.stopped(now)
	idle := p.window.idle() && why != poisonBatch
	if why == "" || idle || !p.pauses.begin(why, now) { // a partition with nothing to deliver is not worth a word
		return false
	}
	p.mu.Unlock()
	p.observe(redelivery.Event{Kind: redelivery.Paused, Reason: why})
	if why != pacing.String() {
		p.log.Info("partition paused: nothing of it is delivered", "reason", why)
	}
	p.mu.Lock()
	return true
}

// resumed reports that the partition goes on. The lock is not held.
func (p *partition) resumed(why string) {
	p.observe(redelivery.Event{Kind: redelivery.Resumed, Reason: why})
	if why != pacing.String() {
		p.log.Info("partition resumed", "reason", why)
	}
}

// alarmRings is the alarm's.
func (p *partition) alarmRings() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarm.at = 0
	p.wake()
}

// finish ends a record, which leaves its topic with that. The lock is held.
func (p *partition) finish(seq uint64) {
	if s := p.window.ring.at(seq); p.deliverer.parking != nil && s.keyed {
		p.deliverer.parking.leave(p.tier, s.key)
	}
	p.window.finish(seq)
	if p.window.backlog.records > 0 {
		p.fill(core.Now())
	}
}

// hush has the client fetch the partition no more, because its next batch cannot be decoded, or again. What has been
// fetched before goes on.
func (p *partition) hush(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	if p.intake.poison(on); on {
		p.wake() // so that somebody reports it
	}
}

// fetched is the offset behind the last record that came; 0 if none has.
func (p *partition) fetched() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.window.fetched
}

// committable is the offset that is to be committed, if that is news.
func (p *partition) committable() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	offset, ok := p.window.lane.Committable()
	return offset, ok && !p.gone && offset > p.committed
}

// noteCommitted notes that the group has an offset. It never goes back.
func (p *partition) noteCommitted(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.committed = max(p.committed, offset)
}

// prefix is how far the partition would be finished if its forwards among these were, see window.prefix. False if the
// partition is not ours.
func (p *partition) prefix(queued map[*outgoing]bool, most int) (offset int64, ready []*outgoing, ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, nil, false
	}
	offset, ready = p.window.prefix(queued, most)
	return offset, ready, true
}
