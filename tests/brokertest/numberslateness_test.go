package brokertest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
)

// lateness is how long after its due time a message comes from the first retry topic. All of them fail once.
func (n *numbers) lateness(t *testing.T) {
	count, rate, tier := n.size(10_000, 300), 500, time.Duration(n.size(30_000, 300))*time.Millisecond
	topic := n.b.topic(t, 3)
	var mu sync.Mutex
	var late []time.Duration
	seen := newOnce(count)
	n.running(t, &abatekafka.Consumer{
		Brokers:     []string{n.b.addr},
		Group:       topic,
		Topics:      []string{topic},
		Replication: 1,
		Logger:      quietLog(),
		Guard:       n.guard(t, abate.Policy{}),
		Redelivery:  redelivery.Config{Tiers: []time.Duration{tier, 24 * time.Hour}, Concurrency: 4}.Always(),
		Options:     []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())},
		Handler: func(_ context.Context, m *abatekafka.Message) error {
			if m.Delivery == 1 {
				return errPoison
			}
			by := time.Since(m.Letter.Due)
			mu.Lock()
			late = append(late, by)
			mu.Unlock()
			seen.handled(number(m.Value))
			return nil
		},
	})
	flow := n.flow(t, topic, 3)
	flow.at(rate, count)
	seen.wait(t, n.failed, tier+patience)
	mu.Lock()
	defer mu.Unlock()
	first, p50, p99, last := quantile(late, 0), quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1)
	if first < 0 {
		t.Errorf("a message came %v before it was due", -first)
	}
	t.Logf("%v tier: late by %v at the median, p99 %v, at most %v", tier, p50, p99, last)
	n.add("lateness of a 30 s tier, p99, 500 messages/s", "≤ 250 ms", p99 <= 250*time.Millisecond,
		"%v (median %v, most %v)",
		p99.Round(time.Millisecond/10), p50.Round(time.Millisecond/10), last.Round(time.Millisecond/10))
}

// flow writes numbered messages at a steady rate.
type flow struct {
	n          *numbers
	t          *testing.T
	client     *kgo.Client
	topic      string
	partitions int
	next       int
}

func (n *numbers) flow(t *testing.T, topic string, partitions int) *flow {
	return &flow{n: n, t: t, topic: topic, partitions: partitions,
		client: n.b.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))}
}

// at writes count messages of 100 bytes, so many in a second. It returns when the last has been given to the client.
func (f *flow) at(rate, count int) {
	const step = 10 * time.Millisecond
	began, wrote := time.Now(), 0
	tick := time.NewTicker(step)
	defer tick.Stop()
	for wrote < count {
		<-tick.C
		due := min(int(time.Since(began).Seconds()*float64(rate)), count) - wrote
		for _, r := range numbered(f.next, due, 100) {
			r.Topic, r.Partition = f.topic, int32(f.next%f.partitions)
			f.next++
			f.client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
				if err != nil {
					f.t.Errorf("producing: %v", err)
				}
			})
		}
		wrote += due
	}
}
