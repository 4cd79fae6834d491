package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/proxy/tracing"
)

// attemptSpan is the span of an attempt that has not ended. The zero attemptSpan is none.
type attemptSpan struct {
	id    tracing.SpanID
	began time.Duration
	over  time.Duration // when the answer was put aside, while its call waits for another attempt; 0 if it was not
	err   error         // why it brought no answer
}

// beginSpan begins the span of an attempt of a request that is recorded.
func beginSpan(a *answer, now time.Duration) {
	a.span = attemptSpan{id: tracing.NewSpan(), began: now}
	a.head.span = a.span.id
}

// endSpan sends the span. It has to come before the memory that the answer lies in is given back.
func endSpan(a *answer, now time.Duration) {
	r, t := a.req, &a.req.traced
	if a.span.over != 0 {
		now = a.span.over
	}
	s := &tracing.Span{Trace: t.own.Trace, ID: a.span.id, Parent: t.own.Span, Flags: t.own.Flags, Kind: tracing.Client,
		Name: r.nameSpan(""), Begin: t.at(a.span.began), End: t.at(max(now, a.span.began)),
		Attributes: make([]tracing.Attribute, 0, 14)}
	number := a.head.number + r.before
	sayMethod(s, r.Method)
	if number > 1 {
		s.Count("http.request.resend_count", number-1)
	}
	e := a.to
	sayServer(s, e.addr)
	path, _, _ := bytes.Cut(r.target(e), []byte("?")) // a query may hold secrets
	if len(path) > 0 && path[0] == '/' {
		s.Say("url.full", e.webScheme()+"://"+e.host+text(path))
	}
	s.Say("abate.endpoint", e.url)
	s.Say("network.protocol.version", protocolOf(a))
	r.sayService(s)
	s.Count("abate.attempt", a.head.number)
	if !a.alone && a.head.number > 1 {
		s.Say("abate.hedge", "true")
	}
	sayOutcome(s, a)
	a.span = attemptSpan{}
	r.plane.tracer.Send(s)
}

// sayOutcome says what the attempt came to. To the conventions any status from 400 on is an error of who asked. A copy
// that has lost, and an attempt whose client has left, are nobody's error.
func sayOutcome(s *tracing.Span, a *answer) {
	status, err := ownStatus(a), a.span.err
	if status != 0 {
		s.Count("http.response.status_code", status)
	}
	if a.req.rpc && a.verdict.known {
		s.Count("rpc.grpc.status_code", int(a.verdict.code))
	}
	if err == nil {
		err = a.broke
	}
	what := ""
	switch {
	case err != nil:
		what, s.Message = errorType(err), tracing.Clean(err.Error())
	case a.req.rpc && a.verdict.known && a.verdict.code != hops.OK:
		what, s.Message = a.verdict.code.String(), tracing.Clean(a.verdict.message)
	case status >= 400:
		what = strconv.Itoa(status)
	}
	s.Failed = what != "" && what != canceled
	s.Say("error.type", what)
}

// ownStatus is the status that the service gave, 0 if it gave none.
func ownStatus(a *answer) int {
	if s := a.resp.Status; s >= 200 || s == http.StatusSwitchingProtocols {
		return s
	}
	return 0
}

// protocolOf is the version of HTTP that the attempt goes over.
func protocolOf(a *answer) string {
	if a.to.scheme == "h2c" || a.req.rpc {
		return "2"
	}
	return "1.1"
}

// webScheme is the endpoint's as URLs have it.
func (e *endpoint) webScheme() string {
	if e.scheme == "https" {
		return "https"
	}
	return "http"
}

// sayServer adds the address of a server, with its port if it has one.
func sayServer(s *tracing.Span, hostport string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		s.Say("server.address", hostport)
		return
	}
	s.Say("server.address", host)
	if n, err := strconv.Atoi(port); err == nil {
		s.Count("server.port", n)
	}
}

// sayService says under which guard or gate a request goes, and of a gRPC call what it calls.
func (r *request) sayService(s *tracing.Span) {
	if r.route.post != nil {
		s.Say("abate.gate", r.service())
	} else {
		s.Say("abate.guard", r.service())
	}
	if r.rpc {
		service, method, _ := strings.Cut(strings.TrimPrefix(r.method(), "/"), "/")
		s.Say("rpc.system", "grpc")
		s.Say("rpc.service", service)
		s.Say("rpc.method", method)
	}
}

// canceled is the error.type of what nobody waits for any more.
const canceled = "canceled"

// errorType names the error of an attempt in a few words, the same as adapter/abateotel.
func errorType(err error) string {
	var dns *net.DNSError
	var bad *badAnswerError
	switch {
	case errors.Is(err, context.Canceled):
		return canceled
	case timedOut(err):
		return "timeout"
	case exhausted.Own(err):
		return "exhausted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errClosedEarly):
		return "connection_closed"
	case errors.As(err, &dns):
		return "name_resolution_error"
	case errors.As(err, &bad):
		return "malformed_answer"
	}
	return "_OTHER"
}
