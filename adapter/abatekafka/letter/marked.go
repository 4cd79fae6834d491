package letter

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// Marked reports whether there is anything among the headers that must not go on as one of the message's own: a header
// of Abate's, or one that only a process of Spring's should see. It allocates nothing.
func Marked(h []kgo.RecordHeader) bool {
	for i := range h {
		name := h[i].Key
		if len(name) < len(headID) || name[0] != 'a' && name[0] != 's' { // this is asked for every record of a main topic
			continue
		}
		if f := familyOf(name); f == ours || f == neverCopied {
			return true
		}
	}
	return false
}
