package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer poisons one partition, so that there is a flood, and more messages than a window has room for are held in
// its retry topic. The other partition goes on, and so do those behind them that only need another delivery.
func TestFloodHoldsNoMessageThatNothingIsWrongWith(t *testing.T) {
	if testing.Short() {
		return // it takes seconds: a message that is held is looked at every ten
	}
	eachBroker(t, func(t *testing.T, b broker) {
		for _, exactlyOnce := range []bool{false, true} {
			t.Run(fmt.Sprint("exactly once ", exactlyOnce), func(t *testing.T) {
				topic := b.topic(t, 2)
				var seen seen
				j := &journal{}
				c := redelivery.Config{Tiers: []time.Duration{100 * time.Millisecond}, Window: 8, ExactlyOnce: exactlyOnce,
					Flood: redelivery.Flood{Letters: 5, Window: time.Hour}}
				runConsumer(t, &abatekafka.Consumer{
					Brokers: []string{b.addr}, Group: "g-" + topic, Topics: []string{topic}, Instance: "member-0", Replication: 1,
					Guard: guardOf(t), Redelivery: c.Always(), Observer: j,
					Handler: func(_ context.Context, m *abatekafka.Message) error {
						if string(m.Value) == "poison" {
							return abate.Permanent(errors.New("it cannot be"))
						}
						if seen.note(string(m.Value)) == 1 {
							return errors.New("not yet")
						}
						return nil
					},
					Options: []kgo.Opt{kgo.FetchMaxWait(50 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())},
				})
				records := make([]*kgo.Record, 15)
				for i := range records {
					records[i] = kgo.StringRecord("poison")
				}
				b.produce(t, topic, records...)
				eventually(t, "more to be held than a window has room for", func() bool {
					return j.count(redelivery.Forwarded, "flood") > 8
				})
				for i := range 6 {
					records[i] = &kgo.Record{Value: fmt.Append(nil, "healthy ", i), Partition: int32(i % 2)}
				}
				b.produce(t, topic, records[:6]...)
				eventually(t, "those that fail once to be handled", func() bool {
					for i := range 6 {
						if seen.count(fmt.Sprint("healthy ", i)) < 2 {
							return false
						}
					}
					return true
				})
				if n := j.count(redelivery.DeadLettered, ""); n > 5 {
					t.Errorf("%d dead letters while there is a flood", n)
				}
			})
		}
	})
}
