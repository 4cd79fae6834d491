package traces

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
)

// Recognise reports whether d is a file of spans.
func Recognise(d source.Document) bool {
	head := d.Data[:min(len(d.Data), 4096)]
	head = bytes.TrimSpace(head)
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	text := string(head)
	return strings.Contains(text, `"resourceSpans"`) || strings.Contains(text, `"spans"`) && strings.Contains(text,
		`"traceID"`) ||
		strings.Contains(text, `"traceId"`) && strings.Contains(text, `"localEndpoint"`)
}

// any of the three formats, in one struct: what a format does not have stays empty.
type file struct {
	ResourceSpans []otlpResource `json:"resourceSpans"`
	Data          []jaegerTrace  `json:"data"`
}

type otlpResource struct {
	Resource   struct{ Attributes []otlpAttribute } `json:"resource"`
	ScopeSpans []struct{ Spans []otlpSpan }         `json:"scopeSpans"`
}

type otlpAttribute struct {
	Key   string `json:"key"`
	Value struct {
		StringValue string `json:"stringValue"`
		IntValue    any    `json:"intValue"`
		BoolValue   *bool  `json:"boolValue"`
	} `json:"value"`
}

type otlpSpan struct {
	TraceID      string          `json:"traceId"`
	SpanID       string          `json:"spanId"`
	ParentSpanID string          `json:"parentSpanId"`
	Name         string          `json:"name"`
	Kind         any             `json:"kind"`
	Start        any             `json:"startTimeUnixNano"`
	End          any             `json:"endTimeUnixNano"`
	Attributes   []otlpAttribute `json:"attributes"`
	Status       struct {
		Code any `json:"code"`
	} `json:"status"`
}

type jaegerTrace struct {
	Spans     []jaegerSpan `json:"spans"`
	Processes map[string]struct {
		ServiceName string `json:"serviceName"`
	} `json:"processes"`
}

type jaegerSpan struct {
	TraceID       string `json:"traceID"`
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	References    []struct {
		RefType string `json:"refType"`
		SpanID  string `json:"spanID"`
	} `json:"references"`
	StartTime float64 `json:"startTime"` // µs
	Duration  float64 `json:"duration"`
	Tags      []struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	} `json:"tags"`
	ProcessID string `json:"processID"`
}

type zipkinSpan struct {
	TraceID   string  `json:"traceId"`
	ID        string  `json:"id"`
	ParentID  string  `json:"parentId"`
	Kind      string  `json:"kind"`
	Name      string  `json:"name"`
	Timestamp float64 `json:"timestamp"` // µs
	Duration  float64 `json:"duration"`
	Shared    bool    `json:"shared"`
	Local     struct {
		ServiceName string `json:"serviceName"`
	} `json:"localEndpoint"`
	Remote struct {
		ServiceName string `json:"serviceName"`
	} `json:"remoteEndpoint"`
	Tags map[string]string `json:"tags"`
}

// decode reads the spans of a file, one JSON value or one a line, as far as they can be read. The error says where it
// stopped.
func decode(data []byte) (spans []span, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err == io.EOF {
			return spans, nil
		} else if err != nil {
			return spans, fmt.Errorf("after %d bytes: %w", d.InputOffset(), err)
		}
		more, err := decodeOne(raw)
		spans = append(spans, more...)
		if err != nil {
			return spans, fmt.Errorf("before byte %d: %w", d.InputOffset(), err)
		}
	}
}

func decodeOne(raw json.RawMessage) (spans []span, err error) {
	if raw[0] == '[' && isListOfLists(raw) { // as Zipkin answers who asks it for traces
		var lists []json.RawMessage
		if err = json.Unmarshal(raw, &lists); err != nil {
			return nil, err
		}
		for _, list := range lists {
			var one []zipkinSpan
			if err = json.Unmarshal(list, &one); err != nil {
				return spans, err
			}
			for i := range one {
				spans = append(spans, one[i].span())
			}
		}
		return spans, nil
	}
	if raw[0] == '[' {
		var list []zipkinSpan
		err = json.Unmarshal(raw, &list)
		for i := range list {
			spans = append(spans, list[i].span())
		}
		return spans, err
	}
	var f file
	err = json.Unmarshal(raw, &f)
	for i := range f.ResourceSpans {
		spans = f.ResourceSpans[i].spans(spans)
	}
	for i := range f.Data {
		spans = f.Data[i].spans(spans)
	}
	return spans, err
}

func isListOfLists(raw json.RawMessage) bool {
	inner := bytes.TrimSpace(raw[1:])
	return len(inner) > 0 && inner[0] == '['
}

func (r *otlpResource) spans(out []span) []span {
	service := ""
	for _, a := range r.Resource.Attributes {
		if a.Key == "service.name" {
			service = a.Value.StringValue
		}
	}
	for _, scope := range r.ScopeSpans {
		for i := range scope.Spans {
			o := &scope.Spans[i]
			s := span{trace: o.TraceID, id: o.SpanID, parent: o.ParentSpanID, service: service, name: o.Name,
				kind: otlpKind(o.Kind), start: time.Duration(whole(o.Start)), end: time.Duration(whole(o.End))}
			s.failed = fmt.Sprint(o.Status.Code) == "2" || fmt.Sprint(o.Status.Code) == "STATUS_CODE_ERROR"
			texts := map[string]string{}
			for _, a := range o.Attributes {
				text := a.Value.StringValue
				if b := a.Value.BoolValue; b != nil {
					text = strconv.FormatBool(*b)
				}
				texts[a.Key] = text
				s.note(a.Key, text, int(whole(a.Value.IntValue)))
			}
			s.peer = or(callee(texts), s.peer)
			out = append(out, s)
		}
	}
	return out
}

func otlpKind(v any) kind {
	switch v {
	case "SPAN_KIND_SERVER":
		return server
	case "SPAN_KIND_CLIENT":
		return client
	}
	return kind(whole(v))
}

func (t *jaegerTrace) spans(out []span) []span {
	for i := range t.Spans {
		j := &t.Spans[i]
		s := span{trace: j.TraceID, id: j.SpanID, name: j.OperationName, service: t.Processes[j.ProcessID].ServiceName,
			start: micro(j.StartTime), end: micro(j.StartTime + j.Duration)}
		for _, r := range j.References {
			if r.RefType == "CHILD_OF" {
				s.parent = r.SpanID
			}
		}
		texts := map[string]string{}
		for _, tag := range j.Tags {
			texts[tag.Key] = fmt.Sprint(tag.Value)
			s.note(tag.Key, texts[tag.Key], int(whole(tag.Value)))
		}
		s.peer = or(callee(texts), s.peer)
		out = append(out, s)
	}
	return out
}

func (z *zipkinSpan) span() span {
	s := span{trace: z.TraceID, id: z.ID, parent: z.ParentID, name: z.Name, service: z.Local.ServiceName,
		start: micro(z.Timestamp), end: micro(z.Timestamp + z.Duration)}
	switch z.Kind {
	case "SERVER":
		s.kind = server
		if z.Shared { // it has the id of the client span that called it
			s.id, s.parent = z.ID+"/server", z.ID
		}
	case "CLIENT":
		s.kind = client
	}
	for key, text := range z.Tags {
		s.note(key, text, int(whole(text)))
	}
	if _, ok := z.Tags["error"]; ok {
		s.failed = true
	}
	s.peer = or(z.Remote.ServiceName, callee(z.Tags))
	return s
}

func micro(us float64) time.Duration { return time.Duration(us * 1e3) }

// whole reads a number that JSON has as a number or as text.
func whole(v any) int64 {
	switch x := v.(type) {
	case float64:
		return int64(x)
	case string:
		n, _ := strconv.ParseInt(x, 10, 64)
		return n
	}
	return 0
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
