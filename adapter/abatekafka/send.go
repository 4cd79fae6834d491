package abatekafka

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// outgoing is a record on its way to a retry topic or the dead-letter topic. The one that it comes from is finished
// when it was acknowledged, and not before.
type outgoing struct {
	*forward
	p      *partition
	seq    uint64
	failed bool // is among those that stop the partition
}

// backoff is how a partition's forwards that fail are spaced.
type backoff struct {
	failing int           // forwards that have failed and are not through yet
	delay   time.Duration // of the round of tries under way
	since   time.Duration // when that round began
}

// The delays between tries to forward a record. Each doubles, and is stretched at random by as much again.
const (
	firstForwardDelay = 100 * time.Millisecond
	lastForwardDelay  = 30 * time.Second
)

// fail begins a round of tries if the one before is over, and says when to try again. first reports that it began one.
func (b *backoff) fail(now time.Duration) (delay time.Duration, first bool) {
	if first = b.delay == 0 || now-b.since >= b.delay/2; first {
		b.delay, b.since = min(max(2*b.delay, firstForwardDelay), lastForwardDelay), now
	}
	return b.delay/2 + rand.N(b.delay), first
}

// send forwards a record. It does not wait.
func (p *partition) send(o *outgoing) {
	o.rec.Timestamp = time.Time{} // of the try before: the client counts its time limit from it
	p.produce(o)
}

// sent takes the acknowledgement, or the error that there is none.
func (p *partition) sent(o *outgoing, err error) {
	if err != nil {
		p.notSent(o, err)
		return
	}
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return
	}
	p.arrived(o)
	p.mu.Unlock()
	p.observe(o.event)
	if o.letter != nil {
		p.deadLetter(o)
	}
}

// deadLetter reports a dead letter that has arrived.
func (p *partition) deadLetter(o *outgoing) {
	original := o.letter.Original
	p.log.Warn("dead letter", "offset", o.event.Offset, "original_topic", original.Topic,
		"original_partition", original.Partition, "original_offset", original.Offset, "to", o.rec.Topic,
		"reason", o.event.Reason, "class", o.event.Class, "failures", o.letter.Failures, "error", o.event.Err)
	if shared := p.deliverer.shared; shared.alert != nil {
		shared.alert(shared.ctx, *o.letter)
	}
}

// arrived finishes the record that was forwarded. The lock is held.
func (p *partition) arrived(o *outgoing) {
	p.outgoing--
	p.finish(o.seq)
	if o.failed {
		p.forwards.failing--
	}
	if p.forwards.delay = 0; p.forwards.failing == 0 {
		p.stop(forwardFailed, 0)
	}
	p.wake()
}

// notSent stops the partition and tries the same record again later. It is never skipped, and what was behind it is not
// started.
func (p *partition) notSent(o *outgoing, err error) {
	if errors.Is(err, kerr.MessageTooLarge) && letter.Shrink(o.rec) {
		p.log.Warn("record is too large for the topic it is forwarded to, so less goes with it",
			"offset", o.event.Offset, "to", o.rec.Topic)
		p.send(o)
		return
	}
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return
	}
	delay, first := p.forwardFails(o, core.Now())
	p.mu.Unlock()
	e := withReason(o.event, forwardFailed.String())
	e.Kind, e.Delay, e.Err = redelivery.ForwardFailed, delay, err
	p.observe(e)
	level := slog.LevelDebug // one of many
	if first {
		level = slog.LevelError
	}
	p.log.Log(p.deliverer.ctx, level, "forward failed: the partition waits and tries it again, nothing is skipped; "+
		"see whether the topic is there and may be written",
		"offset", o.event.Offset, "to", o.rec.Topic, "again_in", delay, "error", err)
	time.AfterFunc(delay, func() {
		p.mu.Lock()
		gone := p.gone
		p.mu.Unlock()
		if !gone {
			p.send(o)
		}
	})
}

// forwardFails stops the partition until the record is through, and says when to try again, and whether it is the first
// of a round of tries. The lock is held.
func (p *partition) forwardFails(o *outgoing, now time.Duration) (delay time.Duration, first bool) {
	if !o.failed {
		o.failed = true
		p.forwards.failing++
	}
	delay, first = p.forwards.fail(now)
	p.stop(forwardFailed, redelivery.Forever)
	p.wake() // so that somebody reports it
	return delay, first
}
