package tracing

import "strings"

// Kind is what a span stands for, by its number in OTLP.
type Kind uint8

// The kinds of spans that a proxy has.
const (
	Server Kind = 2 // a request that it answers
	Client Kind = 3 // an attempt that it sends
)

// Attribute is one thing said of a span. Text counts unless Number is set, which IsNumber reports.
type Attribute struct {
	Key      string
	Text     string
	Number   int64
	IsNumber bool
}

// Span is one that has ended.
type Span struct {
	Trace      TraceID
	ID, Parent SpanID // the zero Parent is none
	Remote     bool   // the parent is another process's
	Flags      byte
	Kind       Kind
	Name       string
	Begin, End int64 // in nanoseconds since 1970
	Attributes []Attribute
	Failed     bool
	Message    string // why it failed
}

// Say adds an attribute. An empty text says nothing, and a long one is cut.
func (s *Span) Say(key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, Attribute{Key: key, Text: Clean(text)})
	}
}

// maxText is how many bytes of a text are sent: much of it is a client's.
const maxText = 1024

// Clean makes a text of its own that OTLP can hold: in UTF-8, without which a collector refuses all the spans beside
// it too, and not too long.
func Clean(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.Clone(strings.ToValidUTF8(text, "\uFFFD"))
}

// Count adds an attribute that is a number.
func (s *Span) Count(key string, n int) {
	s.Attributes = append(s.Attributes, Attribute{Key: key, Number: int64(n), IsNumber: true})
}

// flags is those of OTLP: the ones of Trace Context, and where the parent is.
func (s *Span) flags() uint32 {
	const hasRemote, isRemote = 0x100, 0x200
	f := uint32(s.Flags) | hasRemote
	if s.Remote {
		f |= isRemote
	}
	return f
}
