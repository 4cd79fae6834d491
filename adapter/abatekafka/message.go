package abatekafka

import (
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// newMessage makes the delivery of a record of the main topic (tier Main) or of a retry topic. problems are headers that cannot be read.
//
// Of a record of the main topic only how often it was replayed is believed: a record that somebody copied there out of a retry topic
// or a dead-letter topic is a new message, with its original headers if those can be told.
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

// written is the timestamp of the original record, the same in every delivery; zero if it has none or nobody has told it. Together with the place it
// names a record for ever: offsets begin with 0 again when a topic is deleted and made anew.
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
