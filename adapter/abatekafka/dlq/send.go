package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// mostInFlight is what a crash repeats at most.
const mostInFlight = 100

// heavy is the size of a record that goes alone, through a client that may send large ones: the usual one sends batches of 1 MB at most.
const heavy = 900_000

// send sends batch after batch.
func (x *replaying) send(ctx context.Context, f Filter) error {
	size := x.startBatch()
	gathered := 0
	err := x.each(ctx, f, func(e *Entry) error {
		r, skip, err := x.prepare(ctx, e)
		if err != nil {
			return err
		}
		if x.tell(e, r, skip); skip != "" {
			return nil
		}
		x.chunk, x.records = append(x.chunk, e), append(x.records, r)
		gathered++
		if len(x.chunk) < x.chunkSize() && gathered < size {
			return nil
		}
		if err := x.flush(ctx); err != nil || gathered < size {
			return err
		}
		if err := x.settle(ctx, false); err != nil {
			return err
		}
		size, gathered = x.startBatch(), 0
		return nil
	})
	if err == nil && len(x.chunk) > 0 {
		err = x.flush(ctx)
	}
	if err == nil && gathered > 0 {
		err = x.settle(ctx, true)
	}
	if errors.Is(err, errStopped) {
		return nil // and the progress says why
	}
	return err
}

func (x *replaying) startBatch() int {
	size := x.watch.begin()
	x.change(func(p *Progress) { p.Batch, p.Phase, p.Why = size, Running, ""; p.Batches++ })
	return size
}

// chunkSize is a tenth of a second's worth.
func (x *replaying) chunkSize() int { return min(max(int(x.r.Rate/10), 1), mostInFlight) }

// flush sends what was gathered, at the rate, and notes what was acknowledged. It ends with errStopped when the replay has to stop.
func (x *replaying) flush(ctx context.Context) error {
	if err := x.circuit(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(x.next)); err != nil {
		return err
	}
	if err := x.still(); err != nil {
		return err
	}
	x.drop()
	now := time.Now()
	if x.next.Before(now) {
		x.next = now
	}
	x.next = x.next.Add(time.Duration(float64(len(x.chunk)) / x.r.Rate * float64(time.Second)))
	x.watch.sending(x.chunk)
	sent, failed, err := x.produce(ctx)
	x.chunk, x.records = x.chunk[:0], x.records[:0]
	if len(sent) > 0 {
		// Not with ctx: whoever cancels between the two would have the letters sent again by the next replay.
		note, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer done()
		if noted := x.d.audit.append(note, sent...); noted != nil {
			err = errors.Join(err, fmt.Errorf("dlq: %d letters were sent and may be sent again by the next replay, as that could not be noted: %w", len(sent), noted))
		}
	}
	var why string
	var stop bool
	back := 0
	watched := x.watch.ask(func(r *ramp) {
		r.count(len(sent))
		why, stop = r.hopeless()
		back = r.allBack
	})
	x.change(func(p *Progress) {
		p.Sent += len(sent)
		p.Failed += failed
		p.Back = back
		if p.Phase = Running; stop {
			p.Phase, p.Why = Stopped, why
		}
	})
	if err = errors.Join(err, watched); err == nil && stop {
		err = errStopped
	}
	return err
}

// drop leaves out what somebody has deleted, restored or sent since it was read: an open circuit may have had it wait for hours.
func (x *replaying) drop() {
	kept := 0
	for i, e := range x.chunk {
		now := *e
		if x.d.ledger.tell(&now); now.State == e.State {
			x.chunk[kept], x.records[kept] = e, x.records[i]
			kept++
			continue
		}
		x.skipped(skipChanged)
	}
	x.chunk, x.records = x.chunk[:kept], x.records[:kept]
}

// produce sends the chunk and returns what to note. Records that are too large are left out; any other failure is an error.
func (x *replaying) produce(ctx context.Context) (sent []*Action, failed int, err error) {
	usual, large := make([]*kgo.Record, 0, len(x.records)), []*kgo.Record(nil)
	from := make(map[*kgo.Record]*Entry, len(x.records))
	for i, r := range x.records {
		from[r] = x.chunk[i]
		if weight(r) > heavy {
			large = append(large, r)
		} else {
			usual = append(usual, r)
		}
	}
	results := x.d.client.ProduceSync(ctx, usual...)
	for _, r := range large {
		results = append(results, x.d.alone(ctx, r))
	}
	for _, result := range results {
		switch e := from[result.Record]; {
		case result.Err == nil:
			at := *result.Record
			sent = append(sent, &Action{Kind: Sent, ID: x.p.ID, Session: x.session, Place: e.At.String(), To: placeOf(&at)})
		case tooLarge(result.Err):
			failed++
			if x.r.Tell != nil {
				x.r.Tell(e, "", "too large for "+result.Record.Topic+": raise its max.message.bytes")
			}
		case err == nil:
			err = fmt.Errorf("dlq: send %s to %s: %w", e.At, result.Record.Topic, result.Err)
		}
	}
	return sent, failed, err
}

// settle waits for those of the batch that fail again, and judges it: no longer than until too many have. The last one has nothing to stop any more.
func (x *replaying) settle(ctx context.Context, last bool) error {
	x.change(func(p *Progress) { p.Phase = Settling })
	var why string
	var stop bool
	back := 0
	over := time.NewTimer(x.r.Settle)
	defer over.Stop()
	for waiting := true; waiting && !stop; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-x.watch.woken:
		case <-over.C:
			waiting = false
		}
		if err := x.watch.ask(func(r *ramp) { why, stop = r.verdict(); back = r.allBack }); err != nil {
			return err
		}
	}
	x.change(func(p *Progress) {
		p.Back = back
		switch {
		case stop && last:
			p.Phase, p.Why = Done, why
		case stop:
			p.Phase, p.Why = Stopped, why
		}
	})
	if stop && !last {
		return errStopped
	}
	return nil
}
