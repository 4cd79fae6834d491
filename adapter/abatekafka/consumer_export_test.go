package abatekafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// Parts of the consumer, for tests of this package.
var (
	LastOfBatch = lastOfBatch
	Undecodable = undecodable
	KeepNames   = keepNames
)

// Partitioner is the producer's.
func Partitioner(topic string) kgo.TopicPartitioner { return samePartition{}.ForTopic(topic) }

// Ring keeps offsets by number.
type Ring struct{ r ring }

func (r *Ring) Put(first, seq uint64, offset int64) {
	r.r.put(first, seq, slot{pending: pending{rec: &kgo.Record{Offset: offset}}})
}
func (r *Ring) At(seq uint64) int64 { return r.r.at(seq).rec.Offset }

// Backlog is a partition's.
type Backlog struct{ b backlog }

func (b *Backlog) Push(records []*kgo.Record) { b.b.push(records) }
func (b *Backlog) Pop() *kgo.Record           { return b.b.pop() }
func (b *Backlog) Len() int                   { return b.b.records }
func (b *Backlog) Bytes() int64               { return b.b.bytes }

// Recent is what a partition remembers of identities.
type Recent struct{ r recent }

func (r *Recent) Note(id string, offset int64) bool { return r.r.note(id, offset) }

// MaxRecent is how many.
const MaxRecent = maxRecent

// DeliveryContext makes the context of a delivery that may take so long, and its end.
func DeliveryContext(parent context.Context, limit time.Duration) (context.Context, func()) {
	now := core.Now()
	d := &delivery{by: &deliverer{shared: &handling{service: &service{wall: time.Now(), origin: now}}}}
	d.context.parent, d.context.delivery, d.context.deadline = parent, d, now+limit
	return &d.context, d.context.end
}

// Waiting is a record of a retry topic that waits: when it is due, from now, and whether a flood holds it.
type Waiting struct {
	Due     time.Duration
	Flooded bool
}

// Behind is how many of these are overdue, with some more behind them that have not come into the window yet.
func Behind(waiting []Waiting, more int) int64 {
	const now = time.Hour
	w := newWindow(redelivery.Config{Window: len(waiting)})
	for i, r := range waiting {
		w.admit(pending{rec: &kgo.Record{Offset: int64(i)}}, now+r.Due)
		w.ring.at(w.pushed - 1).flooded = r.Flooded
	}
	for range more {
		w.backlog.push([]*kgo.Record{{}})
	}
	return w.behind(now, false, 0)
}
