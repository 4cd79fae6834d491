package brokertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/redelivery"
)

// A guard inside the handler that refuses is an illness of what it calls: the message makes room for others, and is no dead letter.
func TestWhatAGuardInsideTheHandlerRefusesGoesToARetryTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(5, 1)...)
		stock, err := abate.New("stock", abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: time.Hour}})
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
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Observer: &events, Guard: guardOf(t, shortTiers()),
			Handler: func(ctx context.Context, _ *abatekafka.Message) error { return call(ctx, nil) },
		}
		runConsumer(t, c)
		eventually(t, "all to be forwarded", func() bool { return events.count(redelivery.Forwarded, "excused") >= 5 })
		if n := events.count(redelivery.DeadLettered, ""); n != 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A reload that takes the section away cannot take the topics away. What is handled must not have a limit of 0 s from then on.
func TestAReloadWithoutTheSectionStopsNothing(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		var handled seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t, shortTiers()),
			Handler: func(ctx context.Context, m *abatekafka.Message) error {
				handled.note(m.ID())
				return ctx.Err()
			},
		}
		b.produce(t, topic, spread(1, 1)...)
		runConsumer(t, c)
		eventually(t, "the first message", func() bool { return handled.distinct() == 1 })
		if err := c.Guard.Update(abate.Policy{}); err != nil {
			t.Fatal(err)
		}
		b.produce(t, topic, spread(5, 1)...)
		eventually(t, "the others", func() bool { return handled.distinct() == 6 })
	})
}
