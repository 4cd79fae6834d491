package abatekafka

import (
	"context"
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Message is one delivery of one message.
type Message struct {
	// Key, Value and Headers are those of the original record, byte for byte: what retry topics add is not among the
	// headers.
	Key, Value []byte
	Headers    []kgo.RecordHeader
	// Topic, Partition, Offset and Timestamp are those of the record of the main topic, wherever this delivery was
	// read; after a replay, of the record that it wrote. What never changes is in Identity and ID.
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
	// Delivery counts the deliveries of this message from 1.
	Delivery int
	// Record is the record as it was read: of the topic itself or of one of its retry topics. It is shared: do not
	// change it.
	Record *kgo.Record
	// Letter is what the retry topics know of its failures; zero in the first delivery.
	Letter letter.Letter
}

// Handler handles one message. An error is a failure: worth another delivery, unless abate.Permanent or the policy says
// otherwise. abate.Ignore makes it an answer: the message is done. It must return when ctx is done.
type Handler func(ctx context.Context, m *Message) error

// newMessage makes the delivery of a record of the main topic (tier Main) or of a retry topic. problems are headers
// that cannot be read.
//
// Of a record of the main topic only how often it was replayed is believed: a record that somebody copied there out of
// a retry topic or a dead-letter topic is a new message, with its original headers if those can be read.
func newMessage(rec *kgo.Record, tier int) (m *Message, problems []error) {
	m = &Message{
		Key: rec.Key, Value: rec.Value, Headers: rec.Headers,
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Timestamp: timestamp(rec),
		Delivery: 1, Record: rec,
	}
	if tier == redelivery.Main {
		return m, m.readMain()
	}
	m.Letter, problems = letter.Read(rec)
	l := &m.Letter
	if l.Dialect != letter.Abate && l.Dialect != letter.Spring {
		l.Group = "" // of a connector, say: none that reads this retry topic, so the message is not left to it
	}
	m.Headers, m.Delivery = l.Headers, l.Delivery
	if !l.Original.Known() {
		l.Original = letter.Place{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}
	}
	if !l.Identity.Known() {
		l.Identity = letter.IdentityOf(rec)
	}
	m.Topic, m.Partition, m.Offset = l.Original.Topic, l.Original.Partition, l.Original.Offset
	if !l.Timestamp.IsZero() {
		m.Timestamp = l.Timestamp
	}
	return m, problems
}

// readMain looks for traces of a replay; nearly always there are none, and nothing is allocated.
func (m *Message) readMain() []error {
	if !letter.Marked(m.Record.Headers) {
		return nil
	}
	l, problems := letter.ReadMain(m.Record)
	m.Headers = l.Headers
	m.Letter = letter.Letter{Replays: l.Replays, ReplayedFrom: l.ReplayedFrom}
	switch {
	case l.Identity != letter.IdentityOf(m.Record):
		m.Letter.Identity = l.Identity
	case l.ReplayedFrom.Known(): // by somebody who does not write who the message is
		m.Letter.Identity = letter.Identity{At: l.ReplayedFrom, Millis: -1}
	}
	return problems
}

// written is the timestamp of the original record, the same in every delivery; zero if it has none or nobody has told
// it. Together with the place it names a record for ever: offsets begin with 0 again when a topic is deleted and made
// anew.
func (m *Message) written() time.Time {
	if m.Letter.Original.Topic == "" { // of the main topic
		return m.Timestamp
	}
	return m.Letter.Timestamp
}

// lastTimestamp is the end of the year 9999: what is later no header can hold.
const lastTimestamp = 253402300799999

// timestamp is the record's, zero if it has none.
func timestamp(rec *kgo.Record) time.Time {
	if ms := rec.Timestamp.UnixMilli(); rec.Attrs.TimestampType() < 0 || ms < 0 || ms > lastTimestamp {
		return time.Time{}
	}
	return rec.Timestamp
}

// timestampType is what Java calls the kind of a record's timestamp.
func timestampType(rec *kgo.Record) string {
	switch rec.Attrs.TimestampType() {
	case 0:
		return "CreateTime"
	case 1:
		return "LogAppendTime"
	}
	return "NoTimestampType"
}

// forwardID is the identity of the forward that brought a message, which is that of one record only: see written. Empty
// if it has none.
func (m *Message) forwardID() string {
	at := m.written()
	if m.Letter.ID == "" || at.IsZero() {
		return m.Letter.ID
	}
	return m.Letter.ID + " of " + strconv.FormatInt(at.UnixMilli(), 10)
}

// nothing reports whether a record has nothing for a handler: a marker of a transaction, or the end of a batch that was
// stepped over.
func nothing(rec *kgo.Record) bool { return rec.Attrs.IsControl() || rec.Topic == "" }
