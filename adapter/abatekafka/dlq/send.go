package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// mostInFlight is what a crash repeats at most.
const mostInFlight = 100

// heavy is the size of a record that goes alone, through a client that may send large ones: the usual one sends batches
// of 1 MB at most.
const heavy = 900_000

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
		if p := x.snapshot(); p.Sent+p.Skipped+p.Failed >= p.Chosen {
			x.judged = true
			return x.settle(ctx, true)
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
	if err == nil && !x.judged && (gathered > 0 || len(x.out.open) > 0) {
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

// flush sends what was gathered, at the rate, and notes what was acknowledged. It ends with errStopped when the replay
// has to stop.
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
	for _, a := range sent {
		from, _ := ParsePlace(x.d.config.Topic, a.Place) // both are what produce has written
		to, _ := parseLanded(a.To)
		to.group, to.id = a.Reader, a.ToTopicID
		x.out.sent(spot{from.Partition, from.Offset}, to)
	}
	x.chunk, x.records = x.chunk[:0], x.records[:0]
	if len(sent) > 0 {
		// Not with ctx: whoever cancels between the two would have the letters sent again by the next replay.
		note, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer done()
		if noted := x.d.audit.append(note, sent...); noted != nil {
			err = errors.Join(err, fmt.Errorf("dlq: %d letters were sent and may be sent again by the next replay, as that "+
				"could not be noted: %w", len(sent), noted))
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
		stop = stop && p.Sent+p.Skipped+p.Failed < p.Chosen // else nothing is left to stop: the verdict says how it went
		if p.Phase = Running; stop {
			p.Phase, p.Why = Stopped, why
		}
	})
	if err = errors.Join(err, watched); err == nil && stop {
		err = errStopped
	}
	return err
}

// drop leaves out what somebody has deleted, restored or sent since it was read: an open circuit may have had it wait
// for hours.
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

// notTaken reports records that their topic will never take, as one without a key where it is compacted: others may
// go.
func notTaken(err error) bool {
	return errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp)
}

// apart sends what was not taken once more, each record alone: the broker refuses a whole batch for one of its records.
func (x *replaying) apart(ctx context.Context, results kgo.ProduceResults) kgo.ProduceResults {
	for i := range results {
		if r := results[i].Record; notTaken(results[i].Err) {
			r.Timestamp = time.Time{} // of the try before: the client counts its time limit from it
			results[i].Err = x.d.client.ProduceSync(ctx, r).FirstErr()
		}
	}
	return results
}

// produce sends the chunk and returns what to note. Records that are too large or that their topic does not take are
// left out; any other failure is an error.
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
	results = x.apart(ctx, results)
	for _, result := range results {
		switch e := from[result.Record]; {
		case result.Err == nil:
			at := *result.Record
			sent = append(sent, &Action{Kind: Sent, ID: x.p.ID, Session: x.session, Place: e.At.String(), Twin: e.twin.String(),
				Reader: x.r.reader(e, at.Topic),
				To:     placeOf(&at), ToTopicID: x.targets[at.Topic].id})
		case tooLarge(result.Err):
			failed++
			if x.r.Report != nil {
				x.r.Report(e, "", "too large for "+result.Record.Topic+": raise its max.message.bytes")
			}
		case notTaken(result.Err):
			failed++
			if x.r.Report != nil {
				x.r.Report(e, "", fmt.Sprintf("not taken by %s (%v): a topic that is compacted takes no message without a key",
					result.Record.Topic, result.Err))
			}
		case err == nil:
			err = fmt.Errorf("dlq: send %s to %s: %w", e.At, result.Record.Topic, result.Err)
		}
	}
	return sent, failed, err
}
