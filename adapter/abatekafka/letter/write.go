package letter

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// AppendHeaders appends l.Headers, as they are, and after them the headers about its failures: Abate's and Spring's, so
// that either reads the chain, or with the dialect Spring only those. Times are written to the millisecond, texts
// bounded. A field that is zero has no header.
func (l *Letter) AppendHeaders(h []kgo.RecordHeader, d Dialect) []kgo.RecordHeader {
	h = append(h, l.Headers...)
	if d != Spring {
		h = l.appendOwn(h)
	}
	return l.appendSpring(h)
}

// lost is what abate-pointer says when nobody knows where the value is. It is never written by a consumer, only copied.
const lost = "unknown"

func (l *Letter) appendOwn(h []kgo.RecordHeader) []kgo.RecordHeader {
	h = appendText(h, headLetter, strconv.Itoa(len(h)))
	h = appendText(h, headID, l.ID)
	h = appendText(h, headFailures, strconv.Itoa(max(l.Failures, 0)))
	h = appendTime(h, headDue, l.Due)
	h = appendTime(h, headFirst, l.First)
	h = appendTime(h, headLast, l.Last)
	h = appendText(h, headReason, Cut(l.Reason, MaxClass))
	h = appendText(h, headHistory, formatHistory(l.History, MaxHistory))
	if l.Replays > 0 {
		h = appendText(h, headReplays, strconv.Itoa(l.Replays))
	}
	if l.ReplayedFrom.Known() {
		h = appendText(h, headReplayedFrom, l.ReplayedFrom.String())
	}
	if l.Identity.Known() {
		h = appendText(h, headIdentity, l.Identity.String())
	}
	if l.Pointer && l.Original.Known() {
		h = appendText(h, headPointer, l.Original.String())
	} else if l.Pointer {
		h = appendText(h, headPointer, lost)
	}
	return h
}

func (l *Letter) appendSpring(h []kgo.RecordHeader) []kgo.RecordHeader {
	h = append(h, kgo.RecordHeader{Key: springAttempts, Value: int32Bytes(springNumber(l.Failures))})
	due := l.Due
	if due.IsZero() {
		due = l.Last // a dead letter: the delay is 0
	}
	if plausible(due) {
		h = append(h, kgo.RecordHeader{Key: springDue, Value: bigInteger(due.UnixMilli())})
	}
	if plausible(l.Timestamp) {
		h = append(h, kgo.RecordHeader{Key: springFirstTimestamp, Value: bigInteger(l.Timestamp.UnixMilli())})
	}
	h = l.appendOriginal(h)
	class := Cut(l.Class, MaxClass)
	h = appendText(h, springClass, class)
	h = appendText(h, springCause, class)
	h = appendText(h, springMessage, Cut(l.Message, MaxMessage))
	return appendText(h, springTrace, Cut(l.Trace, MaxTrace))
}

// springNumber is what Spring calls the attempt: the number of the next delivery.
func springNumber(failures int) int32 { return int32(min(max(failures, 0)+1, maxAttempts)) }

func (l *Letter) appendOriginal(h []kgo.RecordHeader) []kgo.RecordHeader {
	h = appendText(h, springTopic, l.Original.Topic)
	if l.Original.Partition >= 0 && l.Original.Topic != "" {
		h = append(h, kgo.RecordHeader{Key: springPartition, Value: int32Bytes(l.Original.Partition)})
	}
	if l.Original.Offset >= 0 && l.Original.Topic != "" {
		h = append(h, kgo.RecordHeader{Key: springOffset, Value: int64Bytes(l.Original.Offset)})
	}
	if plausible(l.Timestamp) {
		h = append(h, kgo.RecordHeader{Key: springTimestamp, Value: int64Bytes(l.Timestamp.UnixMilli())})
	}
	h = appendText(h, springTimestampType, l.TimestampType)
	return appendText(h, springGroup, l.Group)
}

// appendText never writes an empty value: Spring's readers of numbers throw at one, and it would say nothing.
func appendText(h []kgo.RecordHeader, name, value string) []kgo.RecordHeader {
	if value == "" {
		return h
	}
	return append(h, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

func appendTime(h []kgo.RecordHeader, name string, t time.Time) []kgo.RecordHeader {
	if !plausible(t) {
		return h
	}
	return appendText(h, name, formatTime(t))
}
