package abatekafka

import "github.com/twmb/franz-go/pkg/kgo"

// backlog is what has been fetched of a partition and does not fit its window yet, in the order of offsets. Batches are
// kept as they came.
type backlog struct {
	batches [][]*kgo.Record
	next    int // the first record of batches[0] that is still there
	records int
	bytes   int64
}

func (b *backlog) push(records []*kgo.Record) {
	if len(records) == 0 {
		return
	}
	b.batches = append(b.batches, records)
	b.records += len(records)
	for _, rec := range records {
		b.bytes += sizeOf(rec)
	}
}

// pop takes the first record out. There must be one.
func (b *backlog) pop() *kgo.Record {
	first := b.batches[0]
	rec := first[b.next]
	first[b.next] = nil
	b.next++
	b.records--
	b.bytes -= sizeOf(rec)
	if b.next == len(first) {
		b.batches[0] = nil
		b.batches = b.batches[1:]
		b.next = 0
	}
	return rec
}

// sizeOf is about what a record holds in memory.
func sizeOf(rec *kgo.Record) int64 { return int64(len(rec.Key)+len(rec.Value)) + 256 }
