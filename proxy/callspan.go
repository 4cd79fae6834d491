package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/tracing"
)

var errPanicked = errors.New("panic while answering the request")

// endTrace sends the span of the request. Those of its attempts have gone before it, except of copies that have lost
// and are still on their way.
func (x *exchange) endTrace(err error) {
	r, t := &x.req, &x.req.traced
	s := &tracing.Span{Trace: t.own.Trace, ID: t.own.Span, Parent: t.parent, Remote: !t.begins, Flags: t.own.Flags,
		Kind: tracing.Server, Name: r.nameSpan(r.route.Label), Begin: t.at(r.began), End: t.at(max(x.ended, r.began)),
		Attributes: make([]tracing.Attribute, 0, 18)}
	t.recorded = false
	from := r.client.origin()
	sayMethod(s, r.Method)
	s.Say("http.route", r.route.Label)
	s.Say("url.path", r.method())
	s.Say("url.scheme", "http")
	if from.tls {
		s.Attributes[len(s.Attributes)-1].Text = "https"
	}
	sayServer(s, text(r.Host))
	if from.peer.IsValid() {
		s.Say("client.address", from.peer.String())
	}
	s.Say("network.protocol.version", "1.1")
	if r.client.multiplexed() {
		s.Attributes[len(s.Attributes)-1].Text = "2"
	}
	r.sayService(s)
	s.Count("abate.attempts", x.call.tries.sent)
	if r.before > 0 { // the client repeats by itself
		s.Count("http.request.resend_count", r.before)
	}
	x.sayReply(s, err)
	r.plane.tracer.Send(s)
}

// sayReply says what the client got, and why.
func (x *exchange) sayReply(s *tracing.Span, err error) {
	w := &x.reply
	if w.status != 0 {
		s.Count("http.response.status_code", w.status)
	}
	reason, sentence := w.reason, ""
	if strings.Contains(reason, " ") { // no word of the proxy's, but what happened
		reason, sentence = "", reason
	}
	s.Say("abate.reason", strings.ReplaceAll(reason, "-", "_"))
	failed := w.status == 0 || w.status >= http.StatusInternalServerError
	what := strconv.Itoa(w.status)
	if x.req.rpc && w.status != 0 {
		s.Count("rpc.grpc.status_code", int(w.code))
		failed, what = serverFailed(w.code), w.code.String()
	}
	switch {
	case sentence != "":
		s.Message = tracing.Clean(sentence)
	case err != nil:
		s.Message = tracing.Clean(err.Error())
	}
	switch {
	case err == errPanicked:
		s.Failed, what = true, "panic"
	case w.reason == leftReason || errors.Is(err, errGone):
		what = canceled
	case !failed:
		return
	case w.status == 0:
		s.Failed, what = true, "connection_closed"
	default:
		s.Failed = true
	}
	s.Say("error.type", what)
}

// serverFailed reports whether a code of gRPC is an error of who answers, by the conventions for spans of servers.
func serverFailed(c hops.Code) bool {
	switch c {
	case hops.Unknown, hops.DeadlineExceeded, hops.Unimplemented, hops.Internal, hops.Unavailable, hops.DataLoss:
		return true
	}
	return false
}
