package abatekafka

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partition drives the lane of one assigned partition: the poll loop pushes records, workers take them out, and the acknowledgements of what was
// forwarded finish them. No lock is held while a handler runs, and none while an observer is told.
type partition struct {
	s    *session
	at   place
	tier int
	way  *route
	log  *slog.Logger
	c    redelivery.Config // as it was when the partition was assigned
	ctx  context.Context   // of its handlers
	cut  context.CancelFunc

	mu       sync.Mutex
	waiting  sync.Cond // workers that have nothing to do
	lane     *redelivery.Lane
	ring     ring
	pushed   uint64 // how many records have been put into the lane
	last     int64  // the offset of the last of them
	finished uint64 // the number behind the newest that is finished
	backlog  backlog
	inLane   int64 // bytes of the unfinished records of the lane
	recent   recent

	workers  []*worker
	sleeping int
	flying   int           // deliveries under way
	outgoing int           // records on their way to other topics
	closing  bool          // nothing is started any more, but what stands between finished records
	gone     bool          // not ours any more: whatever comes late is ignored
	quiet    chan struct{} // closed when nothing is under way; nil unless somebody waits

	stops     [stopReasons]time.Duration
	alarm     *time.Timer
	alarmAt   time.Duration
	paused    string
	since     time.Duration // of paused
	unfetched bool          // the client does not fetch it

	forwards  backoff
	committed int64 // what the group has been told, -1 for nothing yet
	before    int64 // what the group had been told before us, if nothing since; for the state only
	end       int64 // of the log, as far as known
	fetched   int64 // the offset behind the last record that came
	parking   *parked
}

// stopReason is why a partition starts nothing.
type stopReason int

const (
	circuitOpen stopReason = iota
	pacing
	forwardFailed
	rebuilding
	poisonBatch
	stopReasons
)

func (r stopReason) String() string {
	return [...]string{"circuit-open", "pace", "forward-failed", "rebalance", "poison-batch"}[r]
}

// windowFull is the other reason.
const windowFull = "window-full"

// maxBacklog and minBacklog bound what waits in memory behind a full window, in bytes of one partition; sharedBacklog is for all of a group's.
// maxInLane bounds a window in bytes: a retry topic holds its records until they are due.
const (
	maxInLane     = 32 << 20
	maxBacklog    = 16 << 20
	minBacklog    = 1 << 20
	sharedBacklog = 256 << 20
)

func newPartition(s *session, at place) *partition {
	src := s.topics[at.topic]
	c := s.r.view().c
	p := &partition{
		s: s, at: at, tier: src.tier, way: src.way, c: c, committed: -1, before: -1, end: -1,
		log:  s.r.log.With("topic", at.topic, "partition", at.partition),
		lane: redelivery.NewLane(redelivery.LaneConfig{Concurrency: c.Concurrency, Window: c.Window, Order: c.Order}),
	}
	p.waiting.L = &p.mu
	p.ctx, p.cut = context.WithCancel(s.r.handlers)
	return p
}

// push takes what was fetched. end is the offset behind the last record of the log.
func (p *partition) push(records []*kgo.Record, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return
	}
	p.end = max(p.end, end)
	p.backlog.push(records)
	p.fetched = records[len(records)-1].Offset + 1
	p.fill(abate.Now())
	if !p.unfetched && p.backlog.bytes > p.s.backlog.Load() {
		p.unfetched = true
		p.s.client.PauseFetchPartitions(p.at.single())
	}
	p.wake()
}

func (at place) single() map[string][]int32 { return map[string][]int32{at.topic: {at.partition}} }

// fill moves records from the backlog into the lane, as far as its window goes. The lock is held.
func (p *partition) fill(now time.Duration) {
	for room := p.lane.Room(); room > 0 && p.backlog.records > 0 && p.inLane < maxInLane; room-- {
		rec := p.backlog.pop()
		p.inLane += sizeOf(rec)
		p.admit(rec, now)
	}
	if p.unfetched && p.backlog.bytes <= p.s.backlog.Load()/2 && !p.gone {
		p.unfetched = false
		if p.stops[poisonBatch] > 0 {
			return
		}
		p.s.client.ResumeFetchPartitions(p.at.single())
	}
}

// admit puts one record into the lane.
func (p *partition) admit(rec *kgo.Record, now time.Duration) {
	s := slot{rec: rec, ready: now}
	item := redelivery.Item{Offset: rec.Offset}
	if !nothing(rec) {
		if p.c.Order != redelivery.Unordered && p.c.Order != "" && rec.Key != nil {
			item.Key, item.Keyed = maphash.Bytes(keySeed, rec.Key), true
			s.key, s.keyed = item.Key, true
		}
		if p.tier != redelivery.Main {
			s.message = p.read(rec)
			if l := &s.message.Letter; !l.Due.IsZero() {
				item.Ready = now + p.s.r.view().plan.Remaining(p.tier, l.Wait(p.s.r.date(now), p.way.chain.Hops[p.tier].Delay))
				s.ready = item.Ready
			}
		}
	}
	first := p.lane.First()
	seq := p.lane.Push(item)
	p.ring.put(first, seq, s)
	p.pushed, p.last = seq+1, rec.Offset
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
		now = abate.Now()
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
		seq, ok, wait := p.lane.Next(now)
		if ok {
			if pause := p.s.r.pace.Start(now); pause > 0 {
				p.lane.Hold(seq, now+pause)
				p.stop(pacing, now+pause)
				continue
			}
			return seq, now, true
		}
		if p.tell(now) {
			continue
		}
		p.wakeAt(now, wait)
		p.sleep()
	}
}

// sleep waits to be woken. The lock is held, but not meanwhile.
func (p *partition) sleep() {
	p.sleeping++
	p.waiting.Wait()
	p.sleeping--
}

// gap starts, while the partition is closing, what stands between records that are finished already: those could not be committed without it, and would
// be delivered again. The lock is held.
func (p *partition) gap(now time.Duration) (seq uint64, ok bool) {
	if p.gone || p.ctx.Err() != nil || p.lane.First() >= p.finished {
		return 0, false
	}
	if seq, ok, _ = p.lane.Next(now); ok && seq >= p.finished {
		p.lane.Hold(seq, now)
		return 0, false
	}
	return seq, ok
}

// watchCircuit stops the partition while the service's circuit is open, before anything is started in vain. During the ramp-up
// after that, what may pass is the breaker's to say.
func (p *partition) watchCircuit(now time.Duration) {
	b := p.s.r.c.Guard.Breaker()
	if b == nil || !b.ClosedOff(now) {
		return
	}
	p.s.r.trouble(now)
	p.stop(circuitOpen, now+max(b.RetryIn(now), 100*time.Millisecond))
}

// stop starts nothing until then, for this reason. 0 lifts it. The lock is held.
func (p *partition) stop(why stopReason, until time.Duration) {
	p.stops[why] = until
	latest := time.Duration(0)
	for _, t := range p.stops[:poisonBatch] {
		latest = max(latest, t)
	}
	p.lane.Stop(latest)
}

// stopped is why nothing is started now; empty if it is not so.
func (p *partition) stopped(now time.Duration) string {
	worst, until := "", now
	if p.stops[poisonBatch] > 0 && p.pushed == p.lane.First() {
		return poisonBatch.String()
	}
	for why, t := range p.stops[:poisonBatch] {
		if t > until {
			worst, until = stopReason(why).String(), t
		}
	}
	if worst == "" && p.backlog.records > 0 && p.flying == 0 && p.lane.Room() <= 0 && p.tier == redelivery.Main {
		return windowFull
	}
	return worst
}

// tell says that the partition has been paused, if that is new. It gives up the lock meanwhile, and returns true then.
func (p *partition) tell(now time.Duration) bool {
	why := p.stopped(now)
	idle := p.lane.First() == p.pushed && why != poisonBatch.String()
	if why == "" || why == p.paused || idle { // a partition with nothing to deliver is not worth a word
		return false
	}
	if p.paused == "" {
		p.since = now
	}
	p.paused = why
	p.mu.Unlock()
	p.observe(redelivery.Event{Kind: redelivery.Paused, Reason: why})
	if why != pacing.String() {
		p.log.Info("partition paused: nothing of it is delivered", "reason", why)
	}
	p.mu.Lock()
	return true
}

// wakeAt wakes a worker then. The lock is held.
func (p *partition) wakeAt(now, wait time.Duration) {
	if wait == redelivery.Forever {
		return
	}
	at := now + max(wait, 0)
	switch {
	case p.alarm == nil:
		p.alarm = time.AfterFunc(at-now, p.alarmRings)
	case p.alarmAt > now && p.alarmAt <= at: // it rings before
		return
	default:
		p.alarm.Reset(at - now)
	}
	p.alarmAt = at
}

// alarmRings is the alarm's.
func (p *partition) alarmRings() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarmAt = 0
	p.wake()
}

// finish ends a record. The lock is held.
func (p *partition) finish(seq uint64) {
	p.finished = max(p.finished, seq+1)
	p.leaves(p.ring.at(seq))
	if rec := p.ring.at(seq).rec; rec != nil {
		p.inLane -= sizeOf(rec)
	}
	p.lane.Finish(seq)
	*p.ring.at(seq) = slot{done: true}
	if p.backlog.records > 0 {
		p.fill(abate.Now())
	}
}

// settle tells whoever waits for the partition to be quiet. The lock is held.
func (p *partition) settle() {
	if p.quiet != nil && p.flying == 0 && p.outgoing == 0 {
		close(p.quiet)
		p.quiet = nil
	}
}

// observe tells the observer, who must not be told while the lock is held.
func (p *partition) observe(e redelivery.Event) {
	if o := p.s.r.c.Observer; o != nil {
		e.Service, e.Group = p.s.r.c.Guard.Name(), p.s.r.c.Group
		e.Topic, e.Partition, e.Tier = p.at.topic, p.at.partition, p.tier
		o.ObserveRedelivery(e)
	}
}
