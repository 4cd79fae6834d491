package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// span is a part of a partition: from (inclusive) to (exclusive).
type span struct {
	partition int32
	from, to  int64
}

// quiet is how long a reader waits for records before it asks whether retention has taken what it waits for.
const quiet = 2 * time.Second

func (c *Config) options(more ...kgo.Opt) []kgo.Opt {
	base := []kgo.Opt{kgo.SeedBrokers(c.Brokers...), kgo.ClientID("abate-dlq")}
	return append(append(base, c.Options...), more...)
}

// reading makes a client that reads spans of a topic, committed records only. It keeps control records: the last record
// of a partition may be one, and its offset tells that the end is reached.
func (c *Config) reading(topic string, spans []span) (*kgo.Client, error) {
	from := make(map[int32]kgo.Offset, len(spans))
	for _, s := range spans {
		from[s.partition] = kgo.NewOffset().At(s.from)
	}
	return kgo.NewClient(c.options(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // of what retention took meanwhile
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		// compressed: ten times that in memory
		kgo.FetchMaxWait(time.Second), kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(256<<10),
	)...)
}

// scan calls fn for the records of spans until it returns false. The records of one partition come in their order.
func (d *Desk) scan(ctx context.Context, topic string, spans []span, fn func(*kgo.Record) bool) error {
	left := make(map[int32]int64, len(spans)) // partition → end
	for _, s := range spans {
		if s.from < s.to {
			left[s.partition] = s.to
		}
	}
	if len(left) == 0 {
		return nil
	}
	client, err := d.config.reading(topic, spans)
	if err != nil {
		return fmt.Errorf("dlq: read %s: %w", topic, err)
	}
	defer client.Close()
	for len(left) > 0 {
		fetches, err := poll(ctx, client, topic)
		if err != nil {
			return err
		}
		if fetches.NumRecords() == 0 {
			if err := d.dropGone(ctx, topic, left); err != nil {
				return err
			}
		}
		for i := fetches.RecordIter(); !i.Done(); {
			r := i.Next()
			end, wanted := left[r.Partition]
			if !wanted {
				continue
			}
			if r.Offset < end && !r.Attrs.IsControl() && !fn(r) {
				return nil
			}
			if r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		}
	}
	return nil
}

// poll waits for records, for a while. Errors say where.
func poll(ctx context.Context, client *kgo.Client, topic string) (kgo.Fetches, error) {
	wait, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	fetches := client.PollFetches(wait)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, e := range fetches.Errors() {
		if errors.Is(e.Err, context.DeadlineExceeded) {
			continue // of wait
		}
		if errors.Is(e.Err, kgo.ErrClientClosed) {
			return nil, fmt.Errorf("dlq: read %s: the desk is closed", topic)
		}
		return nil, fmt.Errorf("dlq: read %s/%d: %w", topic, e.Partition, e.Err)
	}
	return fetches, nil
}

// dropGone forgets partitions of which retention has taken all that was to be read.
func (d *Desk) dropGone(ctx context.Context, topic string, left map[int32]int64) error {
	starts, err := d.admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return fmt.Errorf("dlq: read %s: no records came, and the broker does not say where it begins: %w", topic, err)
	}
	for partition, end := range left {
		if start, ok := starts.Lookup(topic, partition); !ok || start.Offset >= end {
			delete(left, partition)
		}
	}
	return nil
}

// bounds are the first offset and the end of committed records of every partition. A topic that does not exist has
// none.
func (d *Desk) bounds(ctx context.Context, topic string) (map[int32]span, error) {
	spans, err := d.boundsKnown(ctx, topic)
	if err == nil && len(spans) == 0 {
		return d.boundsKnown(asking(ctx), topic) // the client remembers for a while that there is no such topic
	}
	return spans, err
}

// asking has the client ask the broker about topics instead of its memory, which is some seconds old: that is what
// asking for permissions as well does.
func asking(ctx context.Context) context.Context { return kadm.WithAuthorizedOps(ctx) }

func (d *Desk) boundsKnown(ctx context.Context, topic string) (map[int32]span, error) {
	starts, err := d.admin.ListStartOffsets(ctx, topic)
	var ends kadm.ListedOffsets
	if err == nil {
		ends, err = d.admin.ListCommittedOffsets(ctx, topic)
	}
	if err = errors.Join(err, starts.Error(), ends.Error()); err != nil && !unknownTopic(err) {
		return nil, fmt.Errorf("dlq: ask where %s begins and ends: %w", topic, err)
	}
	spans := make(map[int32]span)
	for _, s := range starts[topic] {
		if end, ok := ends.Lookup(topic, s.Partition); ok && s.Err == nil && end.Err == nil {
			spans[s.Partition] = span{s.Partition, s.Offset, end.Offset}
		}
	}
	return spans, nil
}
