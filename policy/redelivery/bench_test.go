package redelivery_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// turn is a lane in steady state: in each step a record comes, one starts, and one that started n steps ago ends.
type turn struct {
	lane  *redelivery.Lane
	item  redelivery.Item
	seqs  [256]uint64
	step  int
	depth int
	now   time.Duration
	gap   time.Duration // between the times when records are ready; 0 for at once
}

func newTurn(order redelivery.Order, depth int) *turn {
	return &turn{lane: redelivery.NewLane(redelivery.LaneConfig{Concurrency: 256, Window: 1000, Order: order}),
		depth: depth}
}

func (t *turn) next() {
	t.now += t.gap
	t.item.Offset++
	if t.gap > 0 {
		t.item.Ready = t.now + 100*t.gap
	}
	t.lane.Push(t.item)
	seq, ok, _ := t.lane.Next(t.now)
	if !ok {
		return
	}
	t.seqs[t.step%256] = seq
	if t.step++; t.step > t.depth {
		t.lane.Finish(t.seqs[(t.step-1-t.depth)%256])
	}
}

func BenchmarkLane(b *testing.B) {
	b.Run("unordered", func(b *testing.B) { benchmarkLane(b, newTurn(redelivery.Unordered, 15)) })
	b.Run("unordered_200_in_flight", func(b *testing.B) { benchmarkLane(b, newTurn(redelivery.Unordered, 200)) })
	b.Run("hop", func(b *testing.B) {
		t := newTurn(redelivery.Unordered, 15)
		t.gap = time.Millisecond
		benchmarkLane(b, t)
	})
	b.Run("keys", func(b *testing.B) {
		t := newTurn(redelivery.ByKey, 15)
		t.item.Keyed = true
		benchmarkLane(b, t)
	})
}

func benchmarkLane(b *testing.B, t *turn) {
	for range 3000 {
		t.record()
	}
	b.ReportAllocs()
	for b.Loop() {
		t.record()
	}
}

// record is a step with a key that comes again every 997 records.
func (t *turn) record() {
	t.item.Key = uint64(t.item.Offset) % 997 * 0x1234567
	t.next()
}

func BenchmarkPace(b *testing.B) {
	b.Run("normal", func(b *testing.B) { benchmarkPace(b, redelivery.NewPace(redelivery.Drain{})) })
	b.Run("draining", func(b *testing.B) {
		p := redelivery.NewPace(redelivery.Drain{MaxRate: 1e9})
		p.Trouble(0)
		p.Start(0)
		p.Done(0, 1, true)
		benchmarkPace(b, p)
	})
}

func benchmarkPace(b *testing.B, p *redelivery.Pace) {
	var now time.Duration
	b.ReportAllocs()
	for b.Loop() {
		now += time.Microsecond
		p.Start(now)
		p.Done(now, 1, true)
	}
}
