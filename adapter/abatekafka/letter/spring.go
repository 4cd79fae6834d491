package letter

import (
	"cmp"
	"encoding/binary"
	"time"
)

// spring reads Spring's headers; those of retry topics, or with the prefix kafka_dlt- those outside them.
func (rd *reader) spring(l *Letter, prefix string) {
	name := func(retryName string) string { return prefix + retryName[len(prefixSpring):] }
	l.Group = rd.text(springGroup)
	l.Original = rd.springPlace(name(springTopic), name(springPartition), name(springOffset))
	l.Timestamp = rd.springTimestamp(name(springTimestamp))
	l.TimestampType = rd.text(name(springTimestampType))
	l.Class = cmp.Or(rd.text(name(springCause)), rd.text(name(springClass)), rd.text(name(springKeyClass)))
	l.Message = cmp.Or(rd.text(name(springMessage)), rd.text(name(springKeyMessage)))
	l.Trace = cmp.Or(rd.text(name(springTrace)), rd.text(name(springKeyTrace)))
	rd.springAttempts(l)
	l.ID = springID(l)
	if prefix == springDLT {
		l.ID = ""
	}
}

// springAttempts reads the number of the next delivery and when it is due. On Spring's dead letters, whose delay is 0,
// the due time is that of the last failure; in its retry topics the record itself was written at the last failure. The
// earlier of the two is right in both.
func (rd *reader) springAttempts(l *Letter) {
	if b, there := rd.values[springAttempts]; there {
		n, ok := readAttempts(b)
		if !ok {
			rd.problem(springAttempts, "%d bytes, % x, are not a number of attempts from 1 to %d in one or four bytes; it is "+
				"taken to be 1", len(b), head(b), maxAttempts)
			n = 1
		}
		l.Delivery, l.Failures = n, n-1
	}
	b, there := rd.values[springDue]
	if !there {
		return
	}
	due, ok := bigTime(b)
	if !ok {
		rd.problem(springDue, "%d bytes, % x, are not a time in milliseconds in 1 to 8 bytes; it is due at once", len(b),
			head(b))
		return
	}
	l.Due, l.Last = due, due
	if t := rd.rec.Timestamp; plausible(t) && t.Before(due) {
		l.Last = t.UTC()
	}
}

func (rd *reader) springPlace(topic, partition, offset string) Place {
	at := nowhere
	if s := rd.text(topic); validTopic(s) {
		at.Topic = s
	} else if s != "" {
		rd.problem(topic, "%s is no topic's name; it is left out", quote(s))
	}
	if b, there := rd.values[partition]; there {
		if len(b) == 4 && b[0] < 0x80 {
			at.Partition = int32(binary.BigEndian.Uint32(b))
		} else {
			rd.problem(partition, "%d bytes, % x, are not a partition in four bytes; it is left out", len(b), head(b))
		}
	}
	if b, there := rd.values[offset]; there {
		if len(b) == 8 && b[0] < 0x80 {
			at.Offset = int64(binary.BigEndian.Uint64(b))
		} else {
			rd.problem(offset, "%d bytes, % x, are not an offset in eight bytes; it is left out", len(b), head(b))
		}
	}
	return at
}

// springTimestamp reads the original timestamp from the header of eight bytes, else from the other. -1 is Java's way to
// say none.
func (rd *reader) springTimestamp(name string) time.Time {
	for _, n := range []string{name, springFirstTimestamp} {
		b, there := rd.values[n]
		if !there {
			continue
		}
		t, ok := bigTime(b)
		if ok && (n != name || len(b) == 8) {
			return t
		}
		if ms, readable := fromBigInteger(b); !readable || ms != -1 {
			rd.problem(n, "%d bytes, % x, are not a time in milliseconds; it is left out", len(b), head(b))
		}
	}
	return time.Time{}
}

// head is as much of a wrong value as a message should show.
func head(b []byte) []byte { return b[:min(len(b), 16)] }
