package abatekafka

import (
	"hash/maphash"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pending is a record that is to be delivered, and what became of it so far.
type pending struct {
	rec     *kgo.Record
	message *Message // of a retry topic: read when it came, for its due time
	held    int      // how often it was held after an attempt
	refused int      // how often it was held because our own policies refused it
	key     uint64   // a hash of the record's key, if keyed
	keyed   bool
}

var keySeed = maphash.MakeSeed()

// pending reads what must be known of a record before it is its time: its key, and when it is due.
func (l *deliverer) pending(rec *kgo.Record, now time.Duration) (r pending, ready time.Duration) {
	r, ready = pending{rec: rec}, now
	if nothing(rec) {
		return r, ready
	}
	if l.order != redelivery.Unordered && l.order != "" && rec.Key != nil {
		r.key, r.keyed = maphash.Bytes(keySeed, rec.Key), true
	}
	if l.tier != redelivery.Main {
		r.message = l.read(rec)
		if due := &r.message.Letter; !due.Due.IsZero() {
			delay := l.way.chain.Hops[l.tier].Delay
			ready = now + l.shared.view().plan.Remaining(l.tier, due.Wait(l.shared.date(now), delay))
		}
	}
	return r, ready
}

// message is the record as the handler sees it. Those without headers of ours, which is nearly all of a main topic,
// cost nothing but room.
func (l *deliverer) message(r pending, room *Message) *Message {
	rec := r.rec
	switch {
	case r.message != nil:
		*room = *r.message
		return room
	case l.tier == redelivery.Main && !letter.Marked(rec.Headers):
		room.Key, room.Value, room.Headers = rec.Key, rec.Value, rec.Headers
		room.Topic, room.Partition, room.Offset, room.Timestamp = rec.Topic, rec.Partition, rec.Offset, timestamp(rec)
		room.Delivery, room.Record = 1, rec
		return room
	}
	return l.read(rec)
}

// read reads a record that has been in a retry topic, or may have been.
func (l *deliverer) read(rec *kgo.Record) *Message {
	m, problems := newMessage(rec, l.tier)
	for _, problem := range problems {
		l.log.Warn("a header of the retry topics cannot be read, and is taken for absent",
			"offset", rec.Offset, "error", problem)
	}
	return m
}
