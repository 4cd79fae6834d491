package tracing

import "google.golang.org/protobuf/encoding/protowire"

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
		about = appendMessage(about, resourceAttributes, appendAttribute(nil, &resource[i]))
	}
	var by []byte
	by = appendText(by, scopeName, scope)
	by = appendText(by, scopeVersion, version)
	all := appendMessage(nil, scopeSpansScope, by)
	var one []byte
	for _, s := range spans {
		one = appendSpan(one[:0], s)
		all = appendMessage(all, scopeSpansSpans, one)
	}
	all = appendText(all, scopeSpansSchema, schema)
	of := appendMessage(nil, resourceSpansResource, about)
	of = appendMessage(of, resourceSpansScopeSpans, all)
	of = appendText(of, resourceSpansSchema, schema)
	return appendMessage(dst, requestResourceSpans, of)
}

func appendSpan(dst []byte, s *Span) []byte {
	dst = appendMessage(dst, spanTrace, s.Trace[:])
	dst = appendMessage(dst, spanID, s.ID[:])
	if s.Parent != (SpanID{}) {
		dst = appendMessage(dst, spanParent, s.Parent[:])
	}
	dst = appendText(dst, spanName, s.Name)
	dst = protowire.AppendTag(dst, spanKind, protowire.VarintType)
	dst = protowire.AppendVarint(dst, uint64(s.Kind))
	dst = protowire.AppendTag(dst, spanBegin, protowire.Fixed64Type)
	dst = protowire.AppendFixed64(dst, uint64(s.Begin))
	dst = protowire.AppendTag(dst, spanEnd, protowire.Fixed64Type)
	dst = protowire.AppendFixed64(dst, uint64(s.End))
	var room [128]byte
	for i := range s.Attributes {
		dst = appendMessage(dst, spanAttributes, appendAttribute(room[:0], &s.Attributes[i]))
	}
	if s.Failed {
		status := appendText(room[:0], statusMessage, s.Message)
		status = protowire.AppendTag(status, statusCode, protowire.VarintType)
		dst = appendMessage(dst, spanStatus, protowire.AppendVarint(status, statusError))
	}
	dst = protowire.AppendTag(dst, spanFlags, protowire.Fixed32Type)
	return protowire.AppendFixed32(dst, s.flags())
}

func appendAttribute(dst []byte, a *Attribute) []byte {
	dst = appendText(dst, keyValueKey, a.Key)
	var room [64]byte
	value := room[:0]
	if a.IsNumber {
		value = protowire.AppendTag(value, anyInt, protowire.VarintType)
		value = protowire.AppendVarint(value, uint64(a.Number))
	} else { // an empty text is one too
		value = protowire.AppendTag(value, anyString, protowire.BytesType)
		value = protowire.AppendString(value, a.Text)
	}
	return appendMessage(dst, keyValueValue, value)
}

func appendMessage(dst []byte, number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), message)
}

// appendText writes a text, none if it is empty.
func appendText(dst []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, number, protowire.BytesType), text)
}

// rejectedIn reads how many spans an ExportTraceServiceResponse says were not taken, and why. What cannot be read says
// nothing.
func rejectedIn(answer []byte) (spans int64, why string) {
	const partialSuccess, rejectedSpans, errorMessage = 1, 1, 2
	each(answer, func(number protowire.Number, _ uint64, partial []byte) {
		if number != partialSuccess {
			return
		}
		each(partial, func(number protowire.Number, n uint64, message []byte) {
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

// each goes over the fields of a message, as far as they can be read.
func each(message []byte, field func(number protowire.Number, n uint64, bytes []byte)) {
	for len(message) > 0 {
		number, kind, used := protowire.ConsumeTag(message)
		if used < 0 {
			return
		}
		message = message[used:]
		var n uint64
		var bytes []byte
		switch kind {
		case protowire.VarintType:
			n, used = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			bytes, used = protowire.ConsumeBytes(message)
		default:
			used = protowire.ConsumeFieldValue(number, kind, message)
		}
		if used < 0 {
			return
		}
		field(number, n, bytes)
		message = message[used:]
	}
}
