package tracing

import "encoding/binary"

// The numbers of the fields of OTLP's messages (opentelemetry-proto, trace/v1, common/v1, resource/v1).
const (
	requestResourceSpans = 1

	resourceSpansResource, resourceSpansScopeSpans, resourceSpansSchema = 1, 2, 3

	resourceAttributes = 1

	scopeSpansScope, scopeSpansSpans, scopeSpansSchema = 1, 2, 3

	scopeName, scopeVersion = 1, 2

	spanTrace, spanID, spanParent, spanName, spanKind, spanBegin, spanEnd = 1, 2, 4, 5, 6, 7, 8
	spanAttributes, spanStatus, spanFlags                                 = 9, 15, 16

	statusMessage, statusCode, statusError = 2, 3, 2

	keyValueKey, keyValueValue = 1, 2

	anyString, anyInt = 1, 3
)

// schema is the version of the semantic conventions that the names are those of.
const schema = "https://opentelemetry.io/schemas/1.37.0"

// scope says who made the spans.
const scope = "github.com/abate-go/abate/proxy"

// appendRequest writes an ExportTraceServiceRequest. Its form is also TracesData's.
func appendRequest(dst []byte, resource []Attribute, version string, spans []*Span) []byte {
	var about []byte
	for i := range resource {
		about = appendBytes(about, resourceAttributes, appendAttribute(nil, &resource[i]))
	}
	var by []byte
	by = appendText(by, scopeName, scope)
	by = appendText(by, scopeVersion, version)
	all := appendBytes(nil, scopeSpansScope, by)
	var one []byte
	for _, s := range spans {
		one = appendSpan(one[:0], s)
		all = appendBytes(all, scopeSpansSpans, one)
	}
	all = appendText(all, scopeSpansSchema, schema)
	of := appendBytes(nil, resourceSpansResource, about)
	of = appendBytes(of, resourceSpansScopeSpans, all)
	of = appendText(of, resourceSpansSchema, schema)
	return appendBytes(dst, requestResourceSpans, of)
}

func appendSpan(dst []byte, s *Span) []byte {
	dst = appendBytes(dst, spanTrace, s.Trace[:])
	dst = appendBytes(dst, spanID, s.ID[:])
	if s.Parent != (SpanID{}) {
		dst = appendBytes(dst, spanParent, s.Parent[:])
	}
	dst = appendText(dst, spanName, s.Name)
	dst = appendVarint(dst, spanKind, uint64(s.Kind))
	dst = binary.LittleEndian.AppendUint64(appendTag(dst, spanBegin, fixed64), uint64(s.Begin))
	dst = binary.LittleEndian.AppendUint64(appendTag(dst, spanEnd, fixed64), uint64(s.End))
	var room [128]byte
	for i := range s.Attributes {
		dst = appendBytes(dst, spanAttributes, appendAttribute(room[:0], &s.Attributes[i]))
	}
	if s.Failed {
		status := appendText(room[:0], statusMessage, s.Message)
		dst = appendBytes(dst, spanStatus, appendVarint(status, statusCode, statusError))
	}
	return binary.LittleEndian.AppendUint32(appendTag(dst, spanFlags, fixed32), s.flags())
}

func appendAttribute(dst []byte, a *Attribute) []byte {
	dst = appendText(dst, keyValueKey, a.Key)
	var room [64]byte
	value := room[:0]
	if a.IsNumber {
		value = appendVarint(value, anyInt, uint64(a.Number))
	} else { // an empty text is one too
		value = appendBytes(value, anyString, a.Text)
	}
	return appendBytes(dst, keyValueValue, value)
}

// appendText writes a text, none if it is empty.
func appendText(dst []byte, number int, text string) []byte {
	if text == "" {
		return dst
	}
	return appendBytes(dst, number, text)
}

// rejectedIn reads how many spans an ExportTraceServiceResponse says were not taken, and why. What cannot be read says
// nothing.
func rejectedIn(answer []byte) (spans int64, why string) {
	const partialSuccess, rejectedSpans, errorMessage = 1, 1, 2
	each(answer, func(number int, _ uint64, partial []byte) {
		if number != partialSuccess {
			return
		}
		each(partial, func(number int, n uint64, message []byte) {
			switch number {
			case rejectedSpans:
				spans = int64(n)
			case errorMessage:
				why = string(message)
			}
		})
	})
	return spans, why
}
