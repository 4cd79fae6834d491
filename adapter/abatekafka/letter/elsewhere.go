package letter

import (
	"strconv"
	"strings"
)

// elsewhere reads the dead letters of Kafka Connect, Kafka Streams and share groups, whose headers are all texts.
func (rd *reader) elsewhere(l *Letter) {
	var prefix string
	for _, d := range []struct {
		prefix  string
		dialect Dialect
	}{{prefixConnect, Connect}, {prefixStreams, Streams}, {prefixShare, Share}} {
		for name := range rd.values {
			if prefix == "" && strings.HasPrefix(name, d.prefix) {
				prefix, l.Dialect = d.prefix, d.dialect
			}
		}
	}
	l.Original = rd.textPlace(prefix)
	switch l.Dialect {
	case Connect: // it copies the timestamp of the original
		l.Class, l.Message = rd.text(connectExceptionClass), rd.text(connectExceptionMessage)
		l.Trace = rd.text(connectExceptionTrace)
		l.Reason = rd.text(connectStage)
		if s := rd.text(connectName); s != "" {
			l.Group = "connect-" + s // what Connect calls the group of a sink
		}
		if plausible(rd.rec.Timestamp) {
			l.Timestamp = rd.rec.Timestamp.UTC()
		}
	case Streams:
		l.Class, l.Message, l.Trace = rd.text(prefix+"exception"), rd.text(prefix+"message"), rd.text(prefix+"stacktrace")
	case Share:
		l.Group, l.Message = rd.text(prefix+"group"), rd.text(prefix+"message")
		if n, ok := rd.number(shareDeliveries); ok {
			l.Failures, l.Delivery = n, n+1
		}
		l.Pointer = rd.rec.Key == nil && rd.rec.Value == nil && l.Original.Known() // it copies them only if it is told to
	}
}

func (rd *reader) textPlace(prefix string) Place {
	at := nowhere
	if s := rd.text(prefix + "topic"); validTopic(s) {
		at.Topic = s
	} else if s != "" {
		rd.problem(prefix+"topic", "%s is no topic's name; it is left out", quote(s))
	}
	if n, ok := rd.number(prefix + "partition"); ok {
		at.Partition = int32(n)
	}
	if b, there := rd.values[prefix+"offset"]; there {
		if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
			at.Offset = n
		} else {
			rd.problem(prefix+"offset", "%s is not an offset; it is left out", quote(string(b)))
		}
	}
	return at
}
