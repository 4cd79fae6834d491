package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tallied counts how often each message was handled, by whom.
type tallied struct {
	mu      sync.Mutex
	handled map[string]int
}

func (l *tallied) handler(fail func(m *abatekafka.Message) error) abatekafka.Handler {
	return func(_ context.Context, m *abatekafka.Message) error {
		if err := fail(m); err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.handled == nil {
			l.handled = map[string]int{}
		}
		l.handled[string(m.Value)]++
		return nil
	}
}

func (l *tallied) counts() (distinct, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.handled {
		total += n
	}
	return len(l.handled), total
}

func TestMembersComeAndGoAndEveryMessageIsHandled(t *testing.T) {
	for _, order := range []redelivery.Order{redelivery.Unordered, redelivery.ParkKey} {
		t.Run(string(order), func(t *testing.T) {
			eachBroker(t, func(t *testing.T, b broker) {
				topic := b.topic(t, 6)
				policy := redelivery.Config{Tiers: []time.Duration{300 * time.Millisecond}, Order: order, Concurrency: 4}
				var l tallied
				fail := func(m *abatekafka.Message) error {
					if m.Delivery == 1 && m.Offset%5 == 2 {
						return errors.New("not now")
					}
					return nil
				}
				member := func() *abatekafka.Consumer {
					return &abatekafka.Consumer{
						Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
						Redelivery: policy.Always(),
						Handler:    l.handler(fail), SessionTimeout: 30 * time.Second,
					}
				}
				var produced atomic.Int64
				feed := func(n int) {
					var records []*kgo.Record
					for range n {
						i := produced.Add(1)
						records = append(records, &kgo.Record{
							Key: fmt.Append(nil, i%50), Value: fmt.Append(nil, i), Partition: int32(i % 6),
						})
					}
					b.produce(t, topic, records...)
				}
				feed(300)
				stop := []func(){runConsumer(t, member())}
				eventually(t, "the first to begin", func() bool { d, _ := l.counts(); return d > 50 })
				for range 2 {
					stop = append(stop, runConsumer(t, member()))
					feed(300)
				}
				stop[0]()
				feed(300)
				eventually(t, "every message", func() bool { d, _ := l.counts(); return d == int(produced.Load()) })
				caughtUp(t, b, topic, topic)
				// What was under way when a partition moved may be handled twice, but it was given time to finish: so few or none.
				if d, total := l.counts(); total > d+20 {
					t.Errorf("%d messages were handled %d times", d, total)
				}
			})
		})
	}
}

// TestPausedPartitionThatIsLostAndRegainedIsConsumed holds against a client that keeps a partition paused in its memory
// after it was lost.
func TestPausedPartitionThatIsLostAndRegainedIsConsumed(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		large := make([]byte, 64<<10)
		var records []*kgo.Record
		for i := range 600 { // 38 MB: more than waits in memory
			records = append(records, &kgo.Record{Value: append(fmt.Appendf(nil, "%04d", i), large...), Partition: int32(i % 2)})
		}
		b.produce(t, topic, records...)
		policy := shortTiers()
		policy.Window = 10
		var got seen
		var events journal
		var blocked atomic.Bool
		blocked.Store(true)
		free := make(chan struct{})
		member := func() *abatekafka.Consumer {
			return &abatekafka.Consumer{
				Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
				Redelivery:     policy.Always(),
				SessionTimeout: 30 * time.Second, Observer: &events,
				Handler: func(ctx context.Context, m *abatekafka.Message) error {
					if blocked.Load() {
						select {
						case <-free:
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					got.note(string(m.Value[:4]))
					return nil
				},
			}
		}
		first := member()
		runConsumer(t, first)
		eventually(t, "the first to have both partitions, and more than it can handle", func() bool {
			n := 0
			for _, p := range first.State().Partitions {
				if p.Tier == redelivery.Main && p.Lane.Unfinished == 10 {
					n++
				}
			}
			return n == 2
		})
		second := member()
		stop := runConsumer(t, second)
		eventually(t, "the second to have one", func() bool { return mains(second) == 1 && mains(first) == 1 })
		stop()
		eventually(t, "the first to have it again", func() bool { return mains(first) == 2 })
		blocked.Store(false)
		close(free)
		eventually(t, "all messages", func() bool { return got.distinct() == 600 })
		if n := events.count(redelivery.Forwarded, ""); n > 0 {
			t.Errorf("%d deliveries that were cut off count as failures of their messages", n)
		}
	})
}

// mains is how many partitions of main topics a consumer has.
func mains(c *abatekafka.Consumer) (n int) {
	for _, p := range c.State().Partitions {
		if p.Tier == redelivery.Main {
			n++
		}
	}
	return n
}

func TestHandlerGetsTimeToFinishWhenItsPartitionIsRevoked(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(1, 1)...)
		var got seen
		begun, finish := make(chan struct{}), make(chan struct{})
		first := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(context.Context, *abatekafka.Message) error {
				close(begun)
				<-finish
				got.note("first")
				return nil
			},
			Options: []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}, // eager: everything is revoked when anybody joins
		}
		second := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Options:    first.Options,
			Handler:    func(context.Context, *abatekafka.Message) error { got.note("second"); return nil },
		}
		runConsumer(t, first)
		<-begun
		runConsumer(t, second)
		eventually(t, "the partition to be closing", func() bool { return mains(first) == 0 })
		close(finish)
		caughtUp(t, b, topic, topic)
		if got.count("first") != 1 || got.count("second") != 0 {
			t.Errorf("handled %v", got.list())
		}
	})
}

// TestForwardThatFailsStopsItsPartitionAndLosesNothing refuses every record for the retry topic for a while.
func TestForwardThatFailsStopsItsPartitionAndLosesNothing(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	b := newFake(t, false)
	topic := b.topic(t, 2)
	var refuse atomic.Bool
	refuse.Store(true)
	b.fake.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.fake.Cluster().KeepControl()
		return refused(r.(*kmsg.ProduceRequest), &refuse, kerr.NotEnoughReplicas.Code, kerr.InvalidRecord.Code)
	})
	var l tallied
	var events journal
	var tries seen
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
		Redelivery: shortTiers().Always(), Observer: &events,
		Handler: l.handler(func(m *abatekafka.Message) error {
			tries.note(string(m.Value))
			tries.note(fmt.Sprint("partition ", m.Partition))
			if m.Partition == 0 && m.Offset == 3 && m.Delivery == 1 {
				return errors.New("not now")
			}
			return nil
		}),
	}
	refuse.Store(false)
	b.produce(t, topic, spread(40, 2)...)
	refuse.Store(true)
	runConsumer(t, c)
	eventually(t, "the forward to fail again and again", func() bool {
		return events.count(redelivery.ForwardFailed, "") >= 3
	})
	eventually(t, "the partition to be said to stop", func() bool {
		return events.count(redelivery.Paused, "forward-failed") >= 1
	})
	eventually(t, "the other partition", func() bool { return tries.count("partition 1") == 20 })
	if n := tries.count("m-6"); n != 1 {
		t.Errorf("the message was handled %d times while only its forward failed", n)
	}
	admin := b.admin(t)
	eventually(t, "the other partition to be committed", func() bool {
		offsets, err := admin.FetchOffsets(context.Background(), topic)
		other, ok := offsets.Lookup(topic, 1)
		if o, ok := offsets.Lookup(topic, 0); err == nil && ok && o.At > 3 {
			t.Fatalf("offset %d is committed although record 3 is nowhere else", o.At)
		}
		return err == nil && ok && other.At == 20
	})
	refuse.Store(false)
	eventually(t, "every message", func() bool { d, _ := l.counts(); return d == 40 })
	caughtUp(t, b, topic, topic)
	if n := len(b.everything(t, topic+"-retry-200ms")); n != 1 {
		t.Errorf("%d records in the retry topic, want 1", n)
	}
}

// refused answers a produce request with an error for each partition, if it is to be refused.
func refused(req *kmsg.ProduceRequest, refuse *atomic.Bool, codes ...int16) (kmsg.Response, error, bool) {
	if !refuse.Load() {
		return nil, nil, false
	}
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range req.Topics {
		one := kmsg.NewProduceResponseTopic()
		one.Topic, one.TopicID = topic.Topic, topic.TopicID
		for _, part := range topic.Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode = part.Partition, codes[len(codes)-1]
			one.Partitions = append(one.Partitions, p)
		}
		resp.Topics = append(resp.Topics, one)
	}
	return resp, nil, true
}

func TestBrokerThatIsKilledAndComesBackLosesNothing(t *testing.T) {
	eachBrokerOfItsOwn(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		b.produce(t, topic, spread(200, 2)...)
		var l tallied
		var slow atomic.Bool
		slow.Store(true)
		gate := make(chan struct{})
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: l.handler(func(m *abatekafka.Message) error {
				if slow.Load() && m.Offset >= 20 {
					<-gate
				}
				if m.Delivery == 1 && m.Offset%3 == 0 {
					return errors.New("not now")
				}
				return nil
			}),
		}
		runConsumer(t, c)
		eventually(t, "some messages", func() bool { d, _ := l.counts(); return d >= 20 })
		b.kill(t)
		slow.Store(false)
		close(gate)
		b.restart(t)
		eventually(t, "every message", func() bool { d, _ := l.counts(); return d == 200 })
		caughtUp(t, b, topic, topic)
	})
}
