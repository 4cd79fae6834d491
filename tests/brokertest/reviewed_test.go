package brokertest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A guard inside the handler that refuses is an illness of what it calls: the message makes room for others, and is no
// dead letter.
func TestWhatAGuardInsideTheHandlerRefusesGoesToARetryTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(5, 1)...)
		stock, err := abate.New("stock", abate.Policy{
			CircuitBreaker: breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: time.Hour},
		})
		if err != nil {
			t.Fatal(err)
		}
		call := func(ctx context.Context, err error) error {
			_, err = abate.Do(ctx, stock, func(context.Context) (int, error) { return 0, err })
			return err
		}
		call(context.Background(), errors.New("connection refused"))
		var events journal
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Observer: &events, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler:    func(ctx context.Context, _ *abatekafka.Message) error { return call(ctx, nil) },
		}
		runConsumer(t, c)
		eventually(t, "all to be forwarded", func() bool { return events.count(redelivery.Forwarded, "excused") >= 5 })
		if n := events.count(redelivery.DeadLettered, ""); n != 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A reload that takes the section away cannot take the topics away. What is handled must not have a limit of 0 s from
// then on.
func TestAReloadWithoutTheSectionStopsNothing(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		var handled seen
		var retries atomic.Pointer[redelivery.Config]
		retries.Store(shortTiers().Always()())
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: retries.Load,
			Handler: func(ctx context.Context, m *abatekafka.Message) error {
				handled.note(m.ID())
				return ctx.Err()
			},
		}
		b.produce(t, topic, spread(1, 1)...)
		runConsumer(t, c)
		eventually(t, "the first message", func() bool { return handled.distinct() == 1 })
		retries.Store(new(redelivery.Config))
		b.produce(t, topic, spread(5, 1)...)
		eventually(t, "the others", func() bool { return handled.distinct() == 6 })
	})
}

// Two groups may share retry topics by mistake. Each delivers what it failed at itself, and counts what it passes over.
func TestAnotherGroupsMessageIsPassedOverAndCounted(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		var got seen
		var events journal
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Observer: &events, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				got.note(string(m.Key))
				return nil
			},
		}
		runConsumer(t, c)
		eventually(t, "the retry topics", func() bool { return len(c.State().Partitions) == 3 })
		for _, group := range []string{topic, "another"} {
			l := letter.Letter{Original: letter.Place{Topic: topic, Offset: 7}, Group: group, Failures: 1, Timestamp: time.Now()}
			b.produce(t, topic+"-retry-200ms", &kgo.Record{Key: []byte(group), Headers: l.AppendHeaders(nil, letter.Abate)})
		}
		eventually(t, "the other group's to be passed over", func() bool {
			return events.count(redelivery.Foreign, "another-group") == 1
		})
		eventually(t, "its own", func() bool { return got.distinct() == 1 })
		caughtUp(t, b, topic+"-retry-200ms", topic+"-retry-200ms")
		if n := got.distinct(); n != 1 || got.count("another") != 0 {
			t.Errorf("%d messages were delivered, the other group's among them %d times", n, got.count("another"))
		}
	})
}
