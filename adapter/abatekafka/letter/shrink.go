package letter

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// shortMessage is what is left of a message, in bytes, when a record is too large.
const shortMessage = 128

// Shrink makes a record that a topic did not take because of its size into the next smaller form: without the trace;
// without the history and most of the message; without the value, which stays where the message came from
// (abate-pointer says where); without the original headers, and at the very last without the key, which are there, too.
// It returns false when nothing is left to leave out. The record must be one with Abate's headers.
func Shrink(r *kgo.Record) bool {
	l, _ := Read(r)
	switch {
	case l.Trace != "":
		l.Trace = ""
	case len(l.History) > 0 || len(l.Message) > shortMessage:
		l.History, l.Message = nil, Cut(l.Message, shortMessage)
	case len(l.Value) > 0 && l.Original.Known():
		l.Value, l.Pointer = nil, true
	case len(l.Headers) > 0 && l.Original.Known():
		l.Value, l.Headers, l.Pointer = nil, nil, true
	case len(l.Key) > 0 && l.Original.Known():
		l.Key, l.Value, l.Pointer = nil, nil, true
	default:
		return false
	}
	r.Key, r.Value, r.Headers = l.Key, l.Value, l.AppendHeaders(nil, Abate)
	return true
}
