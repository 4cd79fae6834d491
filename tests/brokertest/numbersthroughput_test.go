package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

func cpus() int { return runtime.NumCPU() }

// throughput compares our consumer with the loop that franz-go's documentation suggests, on one partition with messages
// of 1 KB and a handler that does nothing: one after the other in pairs, so that whatever else goes on meets both.
func (n *numbers) throughput(t *testing.T) {
	count, pairs := n.size(400_000, 2000), n.size(7, 1)
	topic := n.b.topic(t, 1)
	n.fill(t, topic, count, 1024)
	var bare, lazy, ours, poisoned, toBare, toLazy, toHealthy []float64
	for i := range pairs {
		healthy, sick := 0.0, 0.0
		turns := []func(){
			func() { bare = append(bare, n.bare(t, topic, count, true)) },
			func() { lazy = append(lazy, n.bare(t, topic, count, false)) },
			func() { healthy = n.ours(t, fmt.Sprint("healthy-", i), topic, count, 0) },
			func() { sick = n.ours(t, fmt.Sprint("poisoned-", i), topic, count, 100) },
		}
		for k := range turns {
			turns[(k+i)%len(turns)]()
		}
		ours, poisoned = append(ours, healthy), append(poisoned, sick)
		toBare, toLazy, toHealthy = append(toBare, healthy/bare[i]), append(toLazy, healthy/lazy[i]),
			append(toHealthy, sick/healthy)
		t.Logf("messages per second: bare loop %.0f, with automatic commits %.0f, ours %.0f, others than poison %.0f",
			bare[i], lazy[i], healthy, sick)
	}
	n.add("healthy, 1 KB, one partition, ÷ bare franz-go loop", "≥ 0.9", median(toBare) >= 0.9,
		"%.2f (%.0f ÷ %.0f messages/s)", median(toBare), median(ours), median(bare))
	n.add("the same ÷ a bare loop with automatic commits", "", true, "%.2f (%.0f messages/s)", median(toLazy),
		median(lazy))
	n.add("others while 1 in 100 fails ÷ healthy", "≥ 0.9", median(toHealthy) >= 0.9, "%.2f (%.0f messages/s)",
		median(toHealthy), median(poisoned))
}

// bare is the rate of a franz-go loop without anything around it: poll, handle, commit.
func (n *numbers) bare(t *testing.T, topic string, count int, commits bool) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts := []kgo.Opt{kgo.SeedBrokers(n.b.addr), kgo.ConsumerGroup(unique(t)), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if commits {
		opts = append(opts, kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	done, sum := 0, 0
	var began time.Time
	handle := func(r *kgo.Record) {
		if done == 0 {
			began = time.Now()
		}
		done++
		sum += int(r.Value[0])
	}
	for done < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(handle)
		if commits {
			if err := client.CommitUncommittedOffsets(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	return float64(count) / time.Since(began).Seconds()
}

var errPoison = errors.New("poison")

// ours is the rate of the consumer, of messages that are handled. One in so many fails, and goes to a retry topic; 0
// for none.
func (n *numbers) ours(t *testing.T, group, topic string, count, poison int) float64 {
	t.Helper()
	var began, ended atomic.Int64
	var done, failed atomic.Int64
	all := make(chan struct{})
	guard := n.guard(t, abate.Policy{})
	retries := redelivery.Config{Tiers: []time.Duration{time.Hour}, GroupInNames: true}
	stop := n.running(t, &abatekafka.Consumer{
		Brokers: []string{n.b.addr}, Group: group, Topics: []string{topic}, Guard: guard, Replication: 1, Logger: quietLog(),
		Redelivery: retries.Always(),
		Options:    []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())},
		Handler: func(_ context.Context, m *abatekafka.Message) error {
			began.CompareAndSwap(0, int64(core.Now()))
			var err error
			if poison > 0 && number(m.Value)%poison == 0 {
				failed.Add(1)
				err = errPoison
			}
			if done.Add(1) == int64(count) {
				ended.Store(int64(core.Now()))
				close(all)
			}
			return err
		},
	})
	select {
	case <-all:
	case err := <-n.failed:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatalf("%d of %d messages within %v", done.Load(), count, patience)
	}
	stop()
	if poison > 0 {
		chain := abatekafka.NewChain(topic, group, retries)
		if forwarded := len(n.b.everything(t, chain.Hops[0].Topic)); forwarded != int(failed.Load()) ||
			forwarded != count/poison {
			t.Errorf("%d messages in the retry topic, %d failed, want %d", forwarded, failed.Load(), count/poison)
		}
	}
	return float64(count-int(failed.Load())) / time.Duration(ended.Load()-began.Load()).Seconds()
}
