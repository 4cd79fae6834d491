package abatekafka

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// idHash is how many bytes of the hash are in an ID: to find another content with the same ones takes 2^96 tries.
const idHash = 12

// ID names the message for its whole life, "payments/3/1042@1760000000000~qL8R4QIcQ_ZsRxOA": where it was written
// first, the timestamp that it got there, and a hash of its key and value. It is the same in every delivery: from retry
// topics, out of the dead-letter topic by a replay, after an export and an import. A changed copy (dlq.Desk.Edit) is
// another message, with another ID.
//
// The hash is there because a replay writes the identity into a header of the main topic, where every producer can
// write one. Whoever forges it can at most have an effect happen earlier than it would: that of a message with this
// very key and value. Headers are not in the hash, because libraries add some of their own on the way. Where an effect
// depends on a header and producers do not trust each other, use an event id.
//
// It is the same for all consumer groups: where two of them share one table of effects, put the group's name in front
// of it.
//
// It costs two allocations and the hash, some 0.5 µs for 1 KB. Call it before you change Key or Value.
func (m *Message) ID() string {
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(m.Key))) // so that no key is taken for the beginning of a value
	h.Write(size[:])
	h.Write(m.Key)
	h.Write(m.Value)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	identity := m.Identity()
	id := identity.AppendTo(make([]byte, 0, len(identity.At.Topic)+80))
	return string(base64.RawURLEncoding.AppendEncode(append(id, '~'), sum[:idHash]))
}

// Identity returns where the message was written first, and with which timestamp.
func (m *Message) Identity() letter.Identity {
	if m.Letter.Identity.Known() {
		return m.Letter.Identity
	}
	id := letter.Identity{At: letter.Place{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset}, Millis: -1}
	switch {
	case m.Record != nil && m.Letter.Original.Topic == "":
		return letter.IdentityOf(m.Record)
	case !m.Timestamp.IsZero():
		id.Millis = m.Timestamp.UnixMilli()
	}
	return id
}
