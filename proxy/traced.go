package proxy

import (
	"strings"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/tracing"
)

// traced is a request's place in a trace. The zero traced is of a proxy that records none: fields about traces are then
// passed on as they came.
type traced struct {
	own      tracing.Context // of the span of this request
	parent   tracing.SpanID  // whose request it is; the zero SpanID for none
	recorded bool
	writes   bool  // the service gets a traceparent of the proxy's own
	begins   bool  // there was none that could be read, so that a tracestate means nothing either
	epoch    int64 // 0 on the guards' clock, in nanoseconds since 1970
}

// joinTrace reads the request's traceparent and decides whether it is recorded. What a client says that is not trusted
// continues its trace, and does not decide.
func (r *request) joinTrace() {
	t := r.plane.tracer
	if t == nil {
		return
	}
	parent, has := r.traceparent()
	trusted := r.in == nil && !r.fromStranger() || r.in != nil && r.in.trusted
	s := &r.traced
	s.own, s.recorded = t.Join(parent, has, trusted)
	s.parent, s.begins = parent.Span, !has
	s.writes = s.recorded || !has || parent.Sampled()
	if s.recorded {
		s.epoch = time.Now().UnixNano() - int64(core.Now())
	}
}

// at is d on the guards' clock in nanoseconds since 1970.
func (s *traced) at(d time.Duration) int64 { return s.epoch + int64(d) }

// traceparent reads the field. Several of them are none.
func (r *request) traceparent() (c tracing.Context, ok bool) {
	n := 0
	for i := 0; i < len(r.Fields) && r.has(hasTrace); i++ {
		f := r.Fields[i]
		if len(f.Name) == len("traceparent") && f.Name[0]|0x20 == 't' && f.Is("traceparent") {
			n++
			c, ok = tracing.Parse(f.Value)
		}
	}
	if ok = ok && n == 1; !ok {
		return tracing.Context{}, false
	}
	return c, true
}

// replaces reports whether a field of the request is about its trace, and written anew.
func (s *traced) replaces(f h1.Field) bool {
	switch len(f.Name) {
	case len("traceparent"):
		return f.Is("traceparent")
	case len("tracestate"):
		return s.begins && f.Is("tracestate")
	}
	return false
}

// appendParent tells the service which span its request is for: an attempt's, or the request's own if nothing is
// recorded.
func (s *traced) appendParent(dst []byte, attempt tracing.SpanID) []byte {
	c := s.own // of a trace that is not recorded here the parent stays the span above
	if s.recorded {
		c.Span = attempt
	}
	dst = c.Append(append(dst, "traceparent: "...))
	return append(dst, "\r\n"...)
}

// traceID is the request's for a log: also of a proxy that records no traces. "" if it has none.
func (r *request) traceID() string {
	if own := r.traced.own.Trace; own != (tracing.TraceID{}) {
		return own.String()
	}
	if c, ok := r.traceparent(); ok {
		return c.Trace.String()
	}
	return ""
}

// sayMethod adds the method of a request to its span. One that nobody knows could be any text.
func sayMethod(s *tracing.Span, method []byte) {
	switch m := text(method); m {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY":
		s.Say("http.request.method", m)
	default:
		s.Say("http.request.method", "_OTHER")
		s.Say("http.request.method_original", m)
	}
}

// nameSpan is the name of a request's span: its method, with the route for one that the proxy answers.
func (r *request) nameSpan(route string) string {
	if r.rpc {
		return tracing.Clean(strings.TrimPrefix(r.method(), "/"))
	}
	name := "HTTP"
	switch m := text(r.Method); m {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY":
		name = tracing.Clean(m)
	}
	if route != "" {
		name += " " + tracing.Clean(route)
	}
	return name
}
