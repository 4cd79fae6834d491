package dlq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// watcher finds replayed messages that fail again: in a retry topic, or as new dead letters.
type watcher struct {
	d  *Desk
	id string // of the replay

	mu     sync.Mutex
	ramp   *ramp
	batch  map[spot]bool // of the batch under way
	seen   map[spot]bool // failed again, each counted once however often it fails
	err    error
	read   map[string]map[int32]int64 // the next offset of each partition
	topics []string
	client *kgo.Client
	woken  chan struct{} // holds one: something has failed again
}

// forwards finds the topics into which a consumer of the targets may forward: payments-retry-30s,
// payments-billing-retry-30s, and its dead-letter topic, which is another than the desk's own if the replay goes
// elsewhere.
//
// failed are topics in which the letters say that they failed: a policy may call retry topics what it likes
// (kafka.retrySuffix).
func (d *Desk) forwards(ctx context.Context, targets, failed map[string]bool) ([]string, error) {
	topics, err := d.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("dlq: look for retry topics: %w", err)
	}
	var found []string
	for _, name := range topics.Names() {
		for target := range targets {
			if forwardsTo(target, name) || failed[name] && strings.HasPrefix(name, target+"-") {
				found = append(found, name)
				break
			}
		}
	}
	return found, nil
}

// forwardsTo reports by its name whether a topic is a retry topic or a dead-letter topic of another.
func forwardsTo(topic, name string) bool {
	rest, ok := strings.CutPrefix(name, topic)
	return ok && (strings.HasPrefix(rest, "-") && strings.Contains(rest, "-retry") ||
		(rest == ".DLT" || strings.HasPrefix(rest, "-")) && isDead(rest))
}

// start begins to watch the topics, at the offsets of since, or at their present ends if that is nil, until ctx is
// done. A partition that since does not have was made later, and is read from its beginning. done is closed at the end.
func (w *watcher) start(
	ctx context.Context, topics []string, since map[string]map[int32]int64,
) (done <-chan struct{}, err error) {
	from := map[string]map[int32]kgo.Offset{}
	w.topics, w.read = topics, map[string]map[int32]int64{}
	for _, topic := range topics {
		bounds, err := w.d.bounds(ctx, topic)
		if err != nil {
			return nil, err
		}
		offsets := map[int32]kgo.Offset{}
		w.read[topic] = map[int32]int64{}
		for partition, b := range bounds {
			at := b.to
			if since != nil {
				at = max(min(at, since[topic][partition]), b.from)
			}
			offsets[partition], w.read[topic][partition] = kgo.NewOffset().At(at), at
		}
		from[topic] = offsets
	}
	client, err := kgo.NewClient(w.d.config.options(kgo.ConsumePartitions(from),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxBytes(1<<20),
		kgo.FetchMaxPartitionBytes(256<<10), kgo.FetchMaxWait(500*time.Millisecond))...)
	if err != nil {
		return nil, fmt.Errorf("dlq: watch for failures: %w", err)
	}
	w.client = client
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		w.follow(ctx, client)
	}()
	return ended, nil
}

func (w *watcher) follow(ctx context.Context, client *kgo.Client) {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, e := range fetches.Errors() {
			w.mu.Lock()
			w.err = fmt.Errorf("dlq: watch %s/%d for failures: %w", e.Topic, e.Partition, e.Err)
			w.mu.Unlock()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			defer w.past(r)
			if r.Attrs.IsControl() {
				return
			}
			if l, _ := letter.Read(r); l.ReplayedFrom.Topic == w.d.config.Topic {
				w.came(spot{l.ReplayedFrom.Partition, l.ReplayedFrom.Offset})
			}
		})
	}
}

// more watches topics that have been created since, and partitions that these and the others have got since, from their
// beginnings: a consumer makes its retry topics when it starts, and gives them as many partitions as the main topic has
// then.
func (w *watcher) more(ctx context.Context, topics []string) error {
	from := map[string]map[int32]kgo.Offset{}
	for _, topic := range topics {
		if !slices.Contains(w.topics, topic) {
			w.topics = append(w.topics, topic)
		}
	}
	for _, topic := range w.topics {
		bounds, err := w.d.boundsKnown(asking(ctx), topic)
		if err != nil {
			return err
		}
		if added := w.added(topic, bounds); len(added) > 0 {
			from[topic] = added
		}
	}
	if len(from) > 0 {
		w.client.AddConsumePartitions(from)
	}
	return nil
}

// added are the partitions of a topic that are not watched yet. They are from now on.
func (w *watcher) added(topic string, bounds map[int32]span) map[int32]kgo.Offset {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.read[topic] == nil {
		w.read[topic] = map[int32]int64{}
	}
	offsets := map[int32]kgo.Offset{}
	for partition, b := range bounds {
		if _, watched := w.read[topic][partition]; !watched {
			offsets[partition], w.read[topic][partition] = kgo.NewOffset().At(b.from), b.from
		}
	}
	return offsets
}

// begun is where each partition is read from; it is asked for before anything is sent.
func (w *watcher) begun() map[string]map[int32]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]map[int32]int64{}
	for topic, partitions := range w.read {
		all[topic] = maps.Clone(partitions)
	}
	return all
}

// past notes that a record was read.
func (w *watcher) past(r *kgo.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[r.Topic][r.Partition] = r.Offset + 1
}

// short names a partition of which not everything before these ends was read; empty if all was.
func (w *watcher) short(ends kadm.ListedOffsets) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for topic, partitions := range w.read {
		for partition, next := range partitions {
			if end, ok := ends.Lookup(topic, partition); ok && end.Err == nil && next < end.Offset {
				return fmt.Sprintf("%s/%d", topic, partition)
			}
		}
	}
	return ""
}

// came takes a message that failed again, if this replay sent it.
func (w *watcher) came(at spot) {
	mine := w.d.ledger.sent(w.id, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.batch[at]; (now || mine) && !w.seen[at] {
		w.seen[at] = true
		w.ramp.failed(now)
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// sending notes letters before they are sent: the first may have failed before the last is acknowledged.
func (w *watcher) sending(chunk []*Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range chunk {
		w.batch[spot{e.At.Partition, e.At.Offset}] = true
	}
}

// ask lets fn read or change the ramp.
func (w *watcher) ask(fn func(*ramp)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn(w.ramp)
	return w.err
}

func (w *watcher) begin() (size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.batch)
	return w.ramp.begin()
}
