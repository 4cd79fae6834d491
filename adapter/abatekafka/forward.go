package abatekafka

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// forwarder writes the records that carry the messages of one main topic on: into its retry topics and its dead-letter
// topic. It sends nothing. It is safe for concurrent use.
//
// A record has the key, the value and the headers of the original, and no timestamp: the client stamps the time of
// sending, because an old timestamp would have the record deleted by the retention of the topic it goes to. It asks for
// the partition it was read from.
type forwarder struct {
	client *kgo.Client
	chain  Chain
	cfg    redelivery.Config
	group  string
	wall   func() time.Time
}

// fetchLimit is how long fetching one record may take.
const fetchLimit = 10 * time.Second

func newForwarder(
	client *kgo.Client, chain Chain, cfg redelivery.Config, group string, wall func() time.Time,
) *forwarder {
	return &forwarder{client, chain, cfg.WithDefaults(), group, wall}
}

// hop is the record for the retry topic v.Tier, after a failure.
func (f *forwarder) hop(m *Message, v redelivery.Verdict, cause error) *kgo.Record {
	to := f.chain.Hops[v.Tier]
	l := f.failed(m, v, cause)
	l.Due = l.Last.Add(v.Delay)
	return f.record(to.Topic, m, &l)
}

// dead is the record for the dead-letter topic, and what it says. The record is nil if the policy has no dead-letter
// topic.
func (f *forwarder) dead(m *Message, v redelivery.Verdict, cause error) (*kgo.Record, letter.Letter) {
	l := f.failed(m, v, cause)
	if f.chain.DeadLetters == "" {
		return nil, l
	}
	return f.record(f.chain.DeadLetters, m, &l), l
}

// parked is the record of a message that was not delivered, because another with its key is in a retry topic: it goes
// there, too.
func (f *forwarder) parked(m *Message, tier int) *kgo.Record { return f.waiting(m, tier, "parked") }

// waiting is the record of a message that was not delivered and waits in a retry topic, with nothing counted against
// it.
func (f *forwarder) waiting(m *Message, tier int, why string) *kgo.Record {
	l := f.next(m)
	l.Failures = max(m.Delivery-1, 0)
	l.Delivery = l.Failures + 1
	l.Reason = why
	l.Due = f.wall().Add(f.chain.Hops[tier].Delay)
	return f.record(f.chain.Hops[tier].Topic, m, &l)
}

// poison is the dead letter of records that nobody can decode: it says where they are, from the offset from up to, not
// including, to. It is nil if the policy has no dead-letter topic.
func (f *forwarder) poison(topic string, partition int32, from, to int64, err error) *kgo.Record {
	if f.chain.DeadLetters == "" {
		return nil
	}
	now := f.wall()
	l := letter.Letter{
		Original: letter.Place{Topic: topic, Partition: partition, Offset: from}, Group: f.group,
		Failures: 1, First: now, Last: now, Hops: 1,
		Class: "poison-batch", Reason: "poison-batch", Pointer: true,
		Message: fmt.Sprintf("offsets %d to %d of %s/%d cannot be decoded and were left out: %s",
			from, max(from, to-1), topic, partition, letter.Text(err)),
	}
	l.ID = identity(f.group, l.Original, l.Hops)
	return &kgo.Record{Topic: f.chain.DeadLetters, Partition: partition, Headers: l.AppendHeaders(nil, letter.Abate)}
}

// failed is the letter of a message after one more failure, which is now.
func (f *forwarder) failed(m *Message, v redelivery.Verdict, cause error) letter.Letter {
	now := f.wall()
	l := f.next(m)
	l.Failures = m.Delivery
	if v.Excused {
		l.Failures--
	}
	l.Delivery = l.Failures + 1
	if !letter.Credible(l.First, now) { // it bounds how long the message is held: a wrong clock's time would be no bound
		l.First = now
		if last := m.Letter.Last; letter.Credible(last, now) && last.Before(now) {
			l.First = last // Spring does not say when the first was; this is the first that is known
		}
	}
	l.Last = now
	l.Class, l.Message, l.Trace = letter.Class(cause), letter.Text(cause), letter.Cut(letter.Trace(cause), f.cfg.MaxTrace)
	l.Reason = v.Reason
	past := letter.Past{At: now, Class: l.Class}
	if m.Record != nil {
		past.Topic = m.Record.Topic
	}
	l.History = append(slices.Clone(l.History), past)
	return l
}

// next is what every forward of a message has in common with the letter it came with.
func (f *forwarder) next(m *Message) letter.Letter {
	l := m.Letter
	l.Dialect = letter.Abate
	l.Timestamp = m.written()
	l.Original = letter.Place{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset}
	if l.TimestampType == "" && m.Record != nil {
		l.TimestampType = timestampType(m.Record)
	}
	if l.Group == "" {
		l.Group = f.group
	}
	l.Identity = m.Identity()
	l.Due = time.Time{}
	l.Hops++
	l.ID = identity(f.group, l.Original, l.Hops)
	l.Key, l.Value, l.Headers = m.Key, m.Value, m.Headers
	return l
}

// identity is the same for every attempt to write the same forward, also in another life of this consumer, and
// different from all others. It counts forwards and not failures: a message may stay in the last retry topic without a
// failure that counts.
func identity(group string, original letter.Place, hops int) string {
	return group + "/" + original.String() + "/" + strconv.Itoa(hops)
}

func (f *forwarder) record(topic string, m *Message, l *letter.Letter) *kgo.Record {
	rec := &kgo.Record{Topic: topic, Key: m.Key, Value: m.Value, Partition: m.Partition}
	if m.Record != nil {
		rec.Partition = m.Record.Partition
	}
	rec.Headers = l.AppendHeaders(make([]kgo.RecordHeader, 0, len(l.Headers)+24), letter.Abate)
	return rec
}

// restore gets a message that came as a pointer from where it is. The error is letter.ErrGone if it is there no more,
// or nobody knows where that is.
func (f *forwarder) restore(ctx context.Context, m *Message) error {
	at := letter.Place{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset}
	if r := m.Record; r != nil && at == (letter.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}) {
		return fmt.Errorf("the message came as a pointer that does not say to where: %w", letter.ErrGone)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	rec, err := letter.Fetch(ctx, at, f.client.Opts()...)
	if err != nil {
		return err
	}
	if !m.Letter.Is(rec) {
		return fmt.Errorf("%s is another record now, the topic was made anew: %w", at, letter.ErrGone)
	}
	whole, _ := newMessage(rec, redelivery.Main)
	m.Key, m.Value, m.Headers = whole.Key, whole.Value, whole.Headers
	m.Letter.Pointer = false
	return nil
}
