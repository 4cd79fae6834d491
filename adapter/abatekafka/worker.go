package abatekafka

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// worker delivers the records of a partition, one after the other, on a goroutine of its own.
type worker struct {
	p *partition

	// Guarded by the partition's lock.
	began  time.Duration // when the delivery under way began; 0 when there is none
	offset int64
	told   time.Duration // when somebody was told that it is stuck
}

// work is the worker's life: it ends with the partition.
func (w *worker) work() {
	p := w.p
	p.mu.Lock()
	p.sleeping--
	for {
		seq, now, ok := p.next()
		if !ok {
			p.mu.Unlock()
			return
		}
		w.one(seq, now)
	}
}

// one delivers a record that has been started. The lock is held, but not meanwhile.
func (w *worker) one(seq uint64, now time.Duration) {
	p := w.p
	d := &delivery{p: p, began: now, slot: *p.ring.at(seq)}
	resumed := p.paused
	p.paused = ""
	p.flying++
	w.began, w.offset, w.told = now, d.slot.rec.Offset, 0
	if p.sleeping > 0 || len(p.workers) < p.c.Concurrency {
		p.wake() // there may be more
	}
	p.mu.Unlock()
	if resumed != "" {
		p.resumed(resumed)
	}
	returned := false
	defer func() {
		if !returned {
			w.died(seq, d)
		}
	}()
	end := p.deliver(d)
	returned = true
	w.landed(seq, end)
}

// landed does what the end of a delivery asks for. It comes back with the lock.
func (w *worker) landed(seq uint64, end ending) {
	p := w.p
	p.mu.Lock()
	w.began = 0
	p.flying--
	if !p.gone {
		p.carryOut(seq, end)
	}
}

// died takes over from a handler that has ended its own goroutine, as the FailNow of a test does: that is a failure, and another worker goes on.
func (w *worker) died(seq uint64, d *delivery) {
	p := w.p
	d.context.end()
	w.landed(seq, p.failed(d, abate.Now(), errGoexit))
	p.sleeping++
	p.mu.Unlock()
	go w.work()
}

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit: return an error instead")

func (p *partition) resumed(why string) {
	p.observe(redelivery.Event{Kind: redelivery.Resumed, Reason: why})
	if why != pacing.String() {
		p.log.Info("partition resumed", "reason", why)
	}
}

// ending is what becomes of a record after its delivery.
type ending struct {
	action  endAction
	delay   time.Duration // of hold
	refused bool          // the hold follows a refusal of our own policies
	flooded bool          // the hold is for as long as a flood of dead letters lasts
	stop    time.Duration // how long nothing else of the partition is started, either
	why     stopReason    // of stop
	instead *Message      // of hold: what is delivered the next time, if it is not the same
	out     *outgoing     // of send
}

type endAction uint8

const (
	done endAction = iota
	hold
	send
	left // unfinished: the consumer is on its way out
)

// carryOut does what the end of a delivery asks for. The lock is held, but not while something is sent.
func (p *partition) carryOut(seq uint64, end ending) {
	switch end.action {
	case done:
		p.finish(seq)
	case hold:
		s, now := p.ring.at(seq), abate.Now()
		if end.refused {
			s.refused++
		} else {
			s.held++
		}
		s.flooded = end.flooded
		if end.instead != nil {
			p.inLane += sizeOf(end.instead.Record) - sizeOf(s.rec)
			s.rec, s.message, s.held, s.refused = end.instead.Record, end.instead, 0, 0
			s.ready = now + end.delay // it is not overdue meanwhile
		}
		p.lane.Hold(seq, now+end.delay)
		if end.stop > 0 {
			p.stop(end.why, now+end.stop)
		}
	case send:
		p.ring.at(seq).out = end.out
		p.lane.Release(seq)
		p.outgoing++
		end.out.seq = seq
		p.entered(end.out)
		p.mu.Unlock()
		p.send(end.out)
		p.mu.Lock()
	}
}

// deliver makes one delivery: it asks nobody for leave, that has been done.
func (p *partition) deliver(d *delivery) ending {
	if nothing(d.slot.rec) {
		p.s.r.pace.Done(d.began, 0, false)
		return ending{}
	}
	d.context.parent, d.context.delivery, d.context.deadline = p.ctx, d, d.began+p.s.r.view().c.HandlerTimeout
	d.message = p.message(d.slot, &d.own)
	end, over := p.beforehand(d)
	if !over {
		end, over = p.whole(d)
	}
	if over {
		p.s.r.pace.Done(d.began, 0, false) // the service does not see it
		return end
	}
	observed := p.s.r.c.Observer != nil
	if observed {
		p.observe(d.event(redelivery.Delivered))
	}
	err := d.run()
	after := abate.Now()
	d.latency = after - d.began
	d.context.end()
	p.s.r.pace.Done(after, d.attempts, err == nil)
	if err == nil && d.attempts > 0 {
		p.s.r.flood.Handled(after)
	}
	if err == nil {
		if observed && d.attempts > 0 {
			p.observe(d.event(redelivery.Handled))
		}
		return ending{}
	}
	return p.failed(d, after, err)
}

// message is the record as the handler sees it. Those without headers of ours, which is nearly all of a main topic, cost nothing but room.
func (p *partition) message(s slot, room *Message) *Message {
	rec := s.rec
	switch {
	case s.message != nil:
		*room = *s.message
		return room
	case p.tier == redelivery.Main && !letter.Marked(rec.Headers):
		room.Key, room.Value, room.Headers = rec.Key, rec.Value, rec.Headers
		room.Topic, room.Partition, room.Offset, room.Timestamp = rec.Topic, rec.Partition, rec.Offset, timestamp(rec)
		room.Delivery, room.Record = 1, rec
		return room
	}
	return p.read(rec)
}

// read reads a record that has been in a retry topic, or may have been.
func (p *partition) read(rec *kgo.Record) *Message {
	m, problems := newMessage(rec, p.tier)
	for _, problem := range problems {
		p.log.Warn("a header of the retry topics cannot be read, and is taken for absent", "offset", rec.Offset, "error", problem)
	}
	return m
}
