// Package tracedraw draws a trace of a file that has OTLP in JSON, as "abate proxy --trace-file" and OpenTelemetry's
// collector write it: read.go reads it, tree.go puts its spans in order, text.go and svg.go draw them.
package tracedraw

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// span is one that a file has.
type span struct {
	trace, id, parent, name string
	kind                    int
	begin, end              int64 // in nanoseconds since 1970
	attributes              map[string]string
	failed                  bool
	message                 string

	below []*span
}

// otlp is the part of OTLP in JSON that is drawn.
type otlp struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID, SpanID, ParentSpanID, Name string
				Kind                                int
				StartTimeUnixNano, EndTimeUnixNano  text
				Attributes                          []struct {
					Key   string
					Value map[string]any
				}
				Status struct {
					Code    int
					Message string
				}
			}
		}
	}
}

// text is a number that JSON may have as one or as text.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	*t = text(bytes.Trim(b, `"`))
	return nil
}

// maxLine bounds a line, which is a batch of spans.
const maxLine = 64 << 20

// read reads the spans of a file. An error says on which line it is.
func read(from io.Reader) (all []*span, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var batch otlp
		if err := json.Unmarshal(lines.Bytes(), &batch); err != nil {
			return nil, fmt.Errorf("line %d is no OTLP in JSON: %w", n, err)
		}
		if all, err = batch.appendTo(all); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it has no spans; the proxy writes some every 5 seconds while there are calls, and at its end")
	}
	return all, nil
}

func (batch *otlp) appendTo(all []*span) ([]*span, error) {
	for _, r := range batch.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				one := &span{trace: s.TraceID, id: s.SpanID, parent: s.ParentSpanID, name: s.Name, kind: s.Kind,
					attributes: map[string]string{}, failed: s.Status.Code == 2, message: s.Status.Message}
				var bad [2]error
				one.begin, bad[0] = strconv.ParseInt(string(s.StartTimeUnixNano), 10, 64)
				one.end, bad[1] = strconv.ParseInt(string(s.EndTimeUnixNano), 10, 64)
				if bad[0] != nil || bad[1] != nil || one.end < one.begin || one.id == "" {
					return nil, fmt.Errorf("the span %q has no id or no times", s.Name)
				}
				for _, a := range s.Attributes {
					for _, value := range a.Value { // there is one, under the name of its type
						one.attributes[a.Key] = fmt.Sprint(value)
					}
				}
				all = append(all, one)
			}
		}
	}
	return all, nil
}
