package abatekafka

import (
	"context"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Forwarder is a forwarder for tests.
type Forwarder struct{ f *forwarder }

func NewForwarder(chain Chain, c redelivery.Config, wall func() time.Time) Forwarder {
	return Forwarder{newForwarder(nil, chain, c, chain.Group, wall)}
}

func (f Forwarder) Hop(m *Message, v redelivery.Verdict, cause error) *kgo.Record {
	return f.f.hop(m, v, cause)
}

func (f Forwarder) Dead(m *Message, v redelivery.Verdict, cause error) (*kgo.Record, letter.Letter) {
	return f.f.dead(m, v, cause)
}

func (f Forwarder) Parked(m *Message, tier int) *kgo.Record { return f.f.parked(m, tier) }

func (f Forwarder) Poison(topic string, partition int32, from, to int64, err error) *kgo.Record {
	return f.f.poison(topic, partition, from, to, err)
}

// NewMessage reads a record.
func NewMessage(rec *kgo.Record, tier int) (*Message, []error) { return newMessage(rec, tier) }

// ForwardID is what a repeat is recognised by.
func ForwardID(m *Message) string { return m.forwardID() }

// Restore fetches what a message only points to.
func Restore(ctx context.Context, client *kgo.Client, m *Message) error {
	return newForwarder(client, Chain{}, redelivery.Config{}, "", time.Now).restore(ctx, m)
}

// Ages are how old a message is and how long ago it failed first.
func Ages(now time.Time, m *Message) (age, since time.Duration) { return ages(now, m) }
