package dlq

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// watcher finds replayed messages that fail again: in a retry topic, or as new dead letters.
type watcher struct {
	d  *Desk
	id string // of the replay

	mu    sync.Mutex
	ramp  *ramp
	batch map[spot]bool // of the batch under way
	seen  map[spot]bool // failed again, each counted once however often it fails
	err   error
	woken chan struct{} // holds one: something has failed again
}

// forwards finds the topics into which a consumer of the targets may forward: payments-retry-30s, payments-billing-retry-30s, and its dead-letter topic,
// which is another than the desk's own if the replay goes elsewhere.
func (d *Desk) forwards(ctx context.Context, targets map[string]bool) ([]string, error) {
	topics, err := d.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("dlq: look for retry topics: %w", err)
	}
	var found []string
	for _, name := range topics.Names() {
		for target := range targets {
			if forwardsTo(target, name) {
				found = append(found, name)
				break
			}
		}
	}
	return found, nil
}

// forwardsTo tells by its name whether a topic is a retry topic or a dead-letter topic of another.
func forwardsTo(topic, name string) bool {
	rest, ok := strings.CutPrefix(name, topic)
	return ok && (strings.HasPrefix(rest, "-") && strings.Contains(rest, "-retry") || (rest == ".DLT" || strings.HasPrefix(rest, "-")) && isDead(rest))
}

// start begins to watch at the present ends of the topics, until ctx is done. done is closed at the end.
func (w *watcher) start(ctx context.Context, topics []string) (done <-chan struct{}, err error) {
	from := map[string]map[int32]kgo.Offset{}
	for _, topic := range append([]string{w.d.config.Topic}, topics...) {
		bounds, err := w.d.bounds(ctx, topic)
		if err != nil {
			return nil, err
		}
		offsets := map[int32]kgo.Offset{}
		for partition, b := range bounds {
			offsets[partition] = kgo.NewOffset().At(b.to)
		}
		from[topic] = offsets
	}
	client, err := kgo.NewClient(w.d.config.options(kgo.ConsumePartitions(from), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(256<<10), kgo.FetchMaxWait(500*time.Millisecond))...)
	if err != nil {
		return nil, fmt.Errorf("dlq: watch for failures: %w", err)
	}
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
			if l, _ := letter.Read(r); l.ReplayedFrom.Topic == w.d.config.Topic {
				w.came(spot{l.ReplayedFrom.Partition, l.ReplayedFrom.Offset})
			}
		})
	}
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

// begin starts a batch.
func (w *watcher) begin() (size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.batch)
	return w.ramp.begin()
}
