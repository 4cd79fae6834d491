package tracing

import (
	"encoding/json"
	"strconv"
	"strings"
)

// What follows is OTLP's form in JSON: ids in hexadecimal digits, long numbers as text, enumerations as numbers.
type (
	jsonRequest struct {
		ResourceSpans []jsonResourceSpans `json:"resourceSpans"`
	}
	jsonResourceSpans struct {
		Resource   jsonResource     `json:"resource"`
		ScopeSpans []jsonScopeSpans `json:"scopeSpans"`
		SchemaURL  string           `json:"schemaUrl"`
	}
	jsonResource struct {
		Attributes []jsonAttribute `json:"attributes"`
	}
	jsonScopeSpans struct {
		Scope     jsonScope  `json:"scope"`
		Spans     []jsonSpan `json:"spans"`
		SchemaURL string     `json:"schemaUrl"`
	}
	jsonScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	jsonSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Flags      uint32          `json:"flags"`
		Name       string          `json:"name"`
		Kind       Kind            `json:"kind"`
		Begin      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []jsonAttribute `json:"attributes"`
		Status     jsonStatus      `json:"status"`
	}
	jsonStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	jsonAttribute struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct {
		String *string `json:"stringValue,omitempty"`
		Int    string  `json:"intValue,omitempty"`
	}
)

// appendJSON writes an ExportTraceServiceRequest in JSON, without a line break.
func appendJSON(dst []byte, resource []Attribute, version string, spans []*Span) []byte {
	of := jsonResourceSpans{Resource: jsonResource{jsonAttributes(resource)}, SchemaURL: schema,
		ScopeSpans: []jsonScopeSpans{{Scope: jsonScope{scope, version}, SchemaURL: schema}}}
	for _, s := range spans {
		j := jsonSpan{TraceID: s.Trace.String(), SpanID: s.ID.String(), Flags: s.flags(), Name: s.Name, Kind: s.Kind,
			Begin: strconv.FormatInt(s.Begin, 10), End: strconv.FormatInt(s.End, 10), Attributes: jsonAttributes(s.Attributes)}
		if s.Parent != (SpanID{}) {
			j.Parent = s.Parent.String()
		}
		if s.Failed {
			j.Status = jsonStatus{s.Message, statusError}
		}
		of.ScopeSpans[0].Spans = append(of.ScopeSpans[0].Spans, j)
	}
	out, _ := json.Marshal(jsonRequest{[]jsonResourceSpans{of}}) // of types that it can always write
	return append(dst, out...)
}

func jsonAttributes(attributes []Attribute) []jsonAttribute {
	out := make([]jsonAttribute, len(attributes))
	for i := range attributes {
		a := &attributes[i]
		if out[i].Key = a.Key; a.IsNumber {
			out[i].Value.Int = strconv.FormatInt(a.Number, 10)
		} else {
			out[i].Value.String = &a.Text
		}
	}
	return out
}

// rejectedInJSON is rejectedIn for an answer in JSON, where the number may be a text.
func rejectedInJSON(answer []byte) (spans int64, why string) {
	var response struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage
			ErrorMessage  string
		}
	}
	if json.Unmarshal(answer, &response) != nil {
		return 0, ""
	}
	spans, _ = strconv.ParseInt(strings.Trim(string(response.PartialSuccess.RejectedSpans), `"`), 10, 64)
	return spans, response.PartialSuccess.ErrorMessage
}
