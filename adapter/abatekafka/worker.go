package abatekafka

import (
	"errors"
	"time"

	"github.com/abate-go/abate/core"
)

// worker delivers the records of a partition, one after the other, on a goroutine of its own.
type worker struct {
	p *partition

	// Guarded by the partition's lock.
	began    time.Duration // when the delivery under way began; 0 when there is none
	offset   int64
	reported time.Duration // when it was reported as stuck
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
	d := &delivery{
		by: p.deliverer, began: now, record: p.window.ring.at(seq).pending, crowded: p.window.backlog.records > 0,
	}
	resumed := p.pauses.over()
	p.flying++
	w.began, w.offset, w.reported = now, d.record.rec.Offset, 0
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
	end := p.deliverer.deliver(d)
	returned = true
	w.ended(seq, end)
}

// ended does what the end of a delivery asks for. It comes back with the lock.
func (w *worker) ended(seq uint64, end ending) {
	p := w.p
	p.mu.Lock()
	w.began = 0
	p.flying--
	if !p.gone {
		p.carryOut(seq, end)
	}
}

// died takes over from a handler that has ended its own goroutine, as the FailNow of a test does: that is a failure,
// and another worker goes on.
func (w *worker) died(seq uint64, d *delivery) {
	p := w.p
	d.context.end()
	w.ended(seq, p.deliverer.failed(d, core.Now(), errGoexit))
	p.sleeping++
	p.mu.Unlock()
	go w.work()
}

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit: return an error instead")

// carryOut does what the end of a delivery asks for. The lock is held, but not while something is sent.
func (p *partition) carryOut(seq uint64, end ending) {
	switch end.action {
	case done:
		p.finish(seq)
	case hold:
		now := core.Now()
		p.window.hold(seq, end, now)
		if end.stop > 0 {
			p.stop(end.why, now+end.stop)
		}
	case send:
		o := &outgoing{forward: end.out, p: p, seq: seq}
		s := p.window.ring.at(seq)
		s.out = o
		p.window.lane.Release(seq)
		p.outgoing++
		if parking := p.deliverer.parking; parking != nil && s.keyed && o.letter == nil {
			parking.enter(o.tier, s.key) // before the record there can be read: who leaves must have entered
		}
		p.mu.Unlock()
		p.send(o)
		p.mu.Lock()
	}
}
