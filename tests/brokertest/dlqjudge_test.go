package brokertest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/policy/redelivery"
)

// consuming runs a consumer of the chain's main topic, in the group that failed at its letters, until the test ends or
// stop is called.
func (c chain) consuming(t *testing.T, handle abatekafka.Handler) (stop func()) {
	t.Helper()
	guard, err := abate.New("bank", abate.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	consumer := &abatekafka.Consumer{Brokers: []string{c.addr}, Group: c.group(), Topics: []string{c.main}, Guard: guard,
		Redelivery: redelivery.Config{Tiers: []time.Duration{time.Minute}, DLTRetention: 24 * time.Hour}.Always(),
		Handler:    handle, Replication: 1,
		Options: []kgo.Opt{kgo.FetchMaxWait(20 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	return stop
}

func TestReplayToATopicThatNobodyReadsSaysSo(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 100, 2)
		d := c.desk(t)
		p := replay(t, d, dlq.Replay{Filter: dlq.All(), Rate: 10_000, Settle: 50 * time.Millisecond})
		if p.Phase != dlq.Stopped || p.Sent != 1 || p.Handled != 0 || p.Back != 0 || p.Waiting != 1 ||
			!strings.Contains(p.Why, "1 still waiting for group "+c.group()) ||
			!strings.Contains(p.Why, "nobody reads it") {
			t.Fatalf("%+v", p)
		}
		one := dlq.At(0, 1)
		one.State = dlq.Waiting
		if p := replay(t, d, dlq.Replay{Filter: one, Settle: 50 * time.Millisecond}); p.Phase != dlq.Pending ||
			p.Waiting != 1 || p.Sent != 1 {
			t.Errorf("the last batch: %+v", p)
		}
		// With a consumer, the replay that is resumed judges what was sent before, too.
		c.consuming(t, func(context.Context, *abatekafka.Message) error { return nil })
		again := replay(t, d, dlq.Replay{Resume: p.ID, Patience: patience})
		if again.Phase != dlq.Done || again.Sent != 99 || again.Handled != 99 || again.Waiting != 0 || again.Back != 0 ||
			again.Why != "" {
			t.Errorf("%+v", again)
		}
	})
}

func TestReplayIsJudgedWhenTheGroupHasPassedIt(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 40, 2)
		var seen atomic.Int64
		c.consuming(t, func(_ context.Context, m *abatekafka.Message) error {
			if seen.Add(1)%20 == 0 {
				return errors.New("not this one")
			}
			return nil
		})
		var mu atomic.Int64
		p := replay(t, c.desk(t), dlq.Replay{Filter: dlq.All(), Rate: 10_000, MaxFailures: 0.5, Patience: patience,
			Progress: func(p dlq.Progress) {
				if p.Handled+p.Back+p.Waiting > p.Sent {
					mu.Add(1)
				}
			}})
		if p.Phase != dlq.Done || p.Sent != 40 || p.Back != 2 || p.Handled != 38 || p.Waiting != 0 || mu.Load() > 0 {
			t.Errorf("%+v, %d times more than were sent", p, mu.Load())
		}
	})
}

// A consumer that is there and does not get on is waited for, with a word on it, and not for ever.
func TestReplayWaitsForAGroupThatStandsStillAsLongAsItIsTold(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 5, 1)
		hold := make(chan struct{})
		var handled atomic.Int64
		c.consuming(t, func(ctx context.Context, m *abatekafka.Message) error {
			if handled.Add(1) > 1 {
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
			return nil
		})
		d := c.desk(t)
		p := replay(t, d, dlq.Replay{Filter: dlq.All(), Rate: 10_000, Settle: time.Millisecond, Patience: 3 * time.Second})
		close(hold)
		if p.Phase != dlq.Stopped || p.Sent != 3 || p.Handled != 1 || p.Waiting != 2 ||
			!strings.Contains(p.Why, "still waiting for group "+c.group()) {
			t.Errorf("%+v", p)
		}
	})
}

func TestReplayElsewhereIsJudgedByWhoeverReadsThere(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 10, 1)
		elsewhere := b.topic(t, 1)
		reader := b.client(t, kgo.ConsumeTopics(elsewhere), kgo.ConsumerGroup("tools-"+elsewhere),
			kgo.AutoCommitInterval(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		b.produce(t, elsewhere, &kgo.Record{Value: []byte("earlier")})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				reader.PollFetches(ctx)
			}
		}()
		defer func() { cancel(); <-done }()
		eventually(t, "the group has committed", func() bool {
			o, err := b.admin(t).FetchOffsets(ctx, "tools-"+elsewhere)
			at, ok := o.Lookup(elsewhere, 0)
			return err == nil && ok && at.At > 0
		})
		p := replay(t, c.desk(t), dlq.Replay{Filter: dlq.All(), To: elsewhere, Rate: 10_000, Patience: patience})
		if p.Phase != dlq.Done || p.Handled != 10 {
			t.Errorf("%+v", p)
		}
	})
}
