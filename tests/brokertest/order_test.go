package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keyed are n messages with k keys in turn, all in one partition: value "key-number".
func keyed(n, k int) (all []*kgo.Record) {
	for i := range n {
		key := fmt.Sprintf("k%d", i%k)
		all = append(all, &kgo.Record{Key: []byte(key), Value: fmt.Appendf(nil, "%s-%04d", key, i)})
	}
	return all
}

// inOrder checks that of each key every message was handled after the one before it.
func inOrder(t *testing.T, handled []string) {
	t.Helper()
	last := map[string]string{}
	for _, v := range handled {
		key, _, _ := strings.Cut(v, "-")
		if v <= last[key] {
			t.Errorf("%s was handled after %s", v, last[key])
		}
		last[key] = v
	}
}

func TestMessagesWithOneKeyKeepTheirOrder(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, keyed(600, 20)...)
		policy := shortTiers()
		policy.Order, policy.Concurrency = redelivery.ByKey, 8
		var got seen
		var mu sync.Mutex
		running, most := map[string]int{}, 0
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: policy.Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				mu.Lock()
				running[string(m.Key)]++
				if running[string(m.Key)] > 1 {
					t.Errorf("two messages with key %s at once", m.Key)
				}
				most = max(most, len(running))
				mu.Unlock()
				got.note(string(m.Value))
				mu.Lock()
				if running[string(m.Key)]--; running[string(m.Key)] == 0 {
					delete(running, string(m.Key))
				}
				mu.Unlock()
				return nil
			},
		}
		runConsumer(t, c)
		eventually(t, "all messages", func() bool { return got.distinct() == 600 })
		inOrder(t, got.list())
	})
}

func TestFollowersOfAFailedMessageWaitBehindIt(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		b.produce(t, topic, keyed(200, 10)...)
		policy := shortTiers()
		policy.Order, policy.Concurrency = redelivery.ParkKey, 4
		var handled, tries seen
		var events journal
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: policy.Always(), Observer: &events,
			Handler: func(ctx context.Context, m *abatekafka.Message) error {
				n := tries.note(string(m.Value))
				if string(m.Value) == "k5-0005" && n == 2 { // however slowly the others come, its followers find it unfinished
					tick := time.NewTicker(10 * time.Millisecond)
					defer tick.Stop()
					for events.count(redelivery.Parked, "") < 10 && ctx.Err() == nil {
						<-tick.C
					}
				}
				// One message of k3 fails twice, one of k4 once, one of k5 for good.
				switch v := string(m.Value); {
				case v == "k3-0033" && n <= 2, v == "k4-0014" && n == 1, v == "k5-0005":
					return errors.New("not now")
				}
				handled.note(string(m.Value))
				return nil
			},
		}
		runConsumer(t, c)
		eventually(t, "all messages", func() bool { return handled.distinct() == 199 })
		eventually(t, "nothing parked any more", func() bool { return c.State().Parked == 0 })
		inOrder(t, handled.list())
		if n := events.count(redelivery.Parked, ""); n < 10 {
			t.Errorf("%d messages were parked: the test shows little", n)
		}
		if got := string(b.consume(t, topic+"-dlq", 1)[0].Value); got != "k5-0005" {
			t.Errorf("the dead letter is %s", got)
		}
	})
}

func TestWhatIsParkedIsKnownAgainAfterARestart(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		policy := redelivery.Config{Tiers: []time.Duration{2 * time.Second}, Order: redelivery.ParkKey}
		var handled, tries seen
		consumer := func() *abatekafka.Consumer {
			return &abatekafka.Consumer{
				Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
				Redelivery: policy.Always(),
				Handler: func(_ context.Context, m *abatekafka.Message) error {
					if tries.note(string(m.Value)) == 1 && string(m.Value) == "k0-0000" {
						return errors.New("not now")
					}
					handled.note(string(m.Value))
					return nil
				},
			}
		}
		b.produce(t, topic, keyed(1, 1)...)
		stop := runConsumer(t, consumer())
		eventually(t, "the first failure", func() bool { return tries.count("k0-0000") == 1 })
		stop()
		b.produce(t, topic, keyed(3, 1)[1:]...)
		runConsumer(t, consumer())
		eventually(t, "all messages", func() bool { return handled.distinct() == 3 })
		inOrder(t, handled.list())
	})
}
