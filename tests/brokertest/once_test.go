package brokertest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/redelivery"
)

// busyStore is a store that is away for the first question, and in which somebody else holds every key at the second.
type busyStore struct {
	idempotency.Store
	mu    sync.Mutex
	asked int
}

func (s *busyStore) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	idempotency.Begun, error) {
	s.mu.Lock()
	s.asked++
	asked := s.asked
	s.mu.Unlock()
	switch asked {
	case 1:
		return idempotency.Begun{}, errors.New("store away")
	case 2:
		return idempotency.Begun{State: idempotency.Running, Lease: 50 * time.Millisecond}, nil
	}
	return s.Store.Begin(ctx, key, fp, lease)
}

// told keeps the events of a consumer.
type told struct {
	mu     sync.Mutex
	events []redelivery.Event
}

func (o *told) ObserveRedelivery(e redelivery.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *told) count(kind redelivery.EventKind) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// One event comes twice, one fails once, one has the id of another.
func TestEventsAreHandledOnceByTheirID(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		event := func(id, value string) *kgo.Record {
			return &kgo.Record{Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "event-id", Value: []byte(id)}}}
		}
		b.produce(t, topic, event("e1", "first"), event("e2", "fails once"), event("e1", "first"),
			event("e1", "another event"), event("e3", "last"))
		retries := redelivery.Config{Tiers: []time.Duration{100 * time.Millisecond}}
		guard, err := abate.New("ledger", abate.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		handled := map[string]int{}
		observer := &told{}
		ctx, cancel := context.WithCancel(t.Context())
		consumer := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guard, Replication: 1, Observer: observer,
			Logger: quietLog(), Redelivery: retries.Always(),
			Options: []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond),
				kgo.MetadataMinAge(100 * time.Millisecond)},
			Once: &abatekafka.Deduper{Store: &busyStore{Store: idempotency.NewMemory(1<<20, core.Now)}, Header: "event-id"},
			Handler: func(ctx context.Context, m *abatekafka.Message) error {
				mu.Lock()
				defer mu.Unlock()
				handled[string(m.Value)]++
				if claim, ok := abatekafka.ClaimOf(ctx); !ok || claim.Token == 0 {
					t.Errorf("%s runs without a claim", m.Value)
				}
				if string(m.Value) == "fails once" && m.Delivery == 1 {
					return errPoison
				}
				return nil
			},
		}
		ended := make(chan error, 1)
		go func() { ended <- consumer.Run(ctx) }()
		eventually(t, "three events to be handled, one to be a duplicate and one a dead letter", func() bool {
			return observer.count(redelivery.Handled) == 3 && observer.count(redelivery.Duplicate) == 1 &&
				observer.count(redelivery.DeadLettered) == 1
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(handled) != 3 || handled["first"] != 1 || handled["fails once"] != 2 || handled["last"] != 1 {
			t.Errorf("the handler got %v", handled)
		}
		if n := observer.count(redelivery.Held); n != 2 {
			t.Errorf("held %d times, want once for the store that was away and once for the other delivery", n)
		}
		dead := b.everything(t, abatekafka.NewChain(topic, topic, retries).DeadLetters)
		if len(dead) != 1 || string(dead[0].Value) != "another event" {
			t.Fatalf("dead letters: %v", dead)
		}
		if l, _ := letter.Read(dead[0]); l.Class != "event-id-reused" || l.Reason != "permanent" || l.Failures != 1 {
			t.Errorf("dead letter: %+v", l)
		}
	})
}
