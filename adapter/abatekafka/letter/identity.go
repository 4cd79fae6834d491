package letter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Identity is what a message is known by for its whole life: where it was written first, and the timestamp that it got
// there. Retry topics, dead letters, replays, exports and imports carry it on. The timestamp is there because a topic
// that is deleted and made anew begins with offset 0 again. It is only compared: one that says nothing, or something
// that cannot be, tells as much as another.
type Identity struct {
	At     Place
	Millis int64 // the record's timestamp as it stands in the log, in milliseconds; -1 for none
}

// IdentityOf returns the identity of a record that nobody has forwarded.
func IdentityOf(r *kgo.Record) Identity {
	id := Identity{At: Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, Millis: -1}
	if !r.Timestamp.IsZero() {
		id.Millis = r.Timestamp.UnixMilli()
	}
	return id
}

// Known reports whether it is the identity of a message.
func (i Identity) Known() bool { return i.At.Known() }

// String reads payments/3/1042@1760000000000.
func (i Identity) String() string {
	return string(i.AppendTo(make([]byte, 0, len(i.At.Topic)+48)))
}

// AppendTo appends what String returns.
func (i Identity) AppendTo(b []byte) []byte {
	b = append(append(b, i.At.Topic...), '/')
	b = append(strconv.AppendInt(b, int64(i.At.Partition), 10), '/')
	b = append(strconv.AppendInt(b, i.At.Offset, 10), '@')
	return strconv.AppendInt(b, i.Millis, 10)
}

// ParseIdentity reads what String wrote.
func ParseIdentity(s string) (Identity, error) {
	place, stamp, ok := strings.Cut(s, "@")
	at, err := ParsePlace(place)
	ms, err2 := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil || err2 != nil {
		return Identity{At: nowhere}, fmt.Errorf("identity %s: write topic/partition/offset@milliseconds, as in "+
			"payments/3/1042@1760000000000", quote(s))
	}
	return Identity{At: at, Millis: ms}, nil
}

// strays leaves out what a record says of a replay if that was not to this topic. A program that reads messages and
// writes others may copy headers along: each of those is a message of its own, however many of them have one key and
// value.
func (rd *reader) strays(topic string) {
	id, err := ParseIdentity(string(rd.values[headIdentity]))
	if err != nil || topic == "" || id.At.Topic == topic || string(rd.values[headReplayedTo]) == topic {
		return
	}
	delete(rd.values, headIdentity)
	delete(rd.values, headReplays)
	delete(rd.values, headReplayedFrom)
}

// identity reads who the message is: what we wrote, else what Spring or another says about where it came from.
func (rd *reader) identity(l *Letter) Identity {
	if text, there := rd.values[headIdentity]; there {
		id, err := ParseIdentity(string(text))
		if err == nil {
			return id
		}
		rd.problem(headIdentity, "%w; it is left out", err)
	}
	if !l.Original.Known() {
		return Identity{}
	}
	id := Identity{At: l.Original, Millis: -1}
	for _, name := range []string{springTimestamp, springDLT + springTimestamp[len(prefixSpring):], springFirstTimestamp} {
		b := rd.values[name]
		if ms, ok := fromBigInteger(b); ok && (len(b) == 8 || name == springFirstTimestamp) {
			id.Millis = ms
			return id
		}
	}
	if !l.Timestamp.IsZero() {
		id.Millis = l.Timestamp.UnixMilli()
	}
	return id
}
