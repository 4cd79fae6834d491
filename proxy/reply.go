package proxy

import (
	"strconv"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
)

// reply is what the client gets: its head, what the proxy says by itself, and how much went out.
type reply struct {
	req  *request
	body *content

	head   head
	status int        // of the answer given, 0 for none
	code   hops.Code  // of the answer given to a gRPC call
	bytes  int64      // of its content
	reason string     // why the proxy and not the service decided it
	spent  bool       // the call ended because nothing was left of its call tree's allowance
	tail   []byte     // what the proxy adds to the trailer of a gRPC answer, as lines
	last   []h1.Field // room for that trailer
}

func (w *reply) respond(h head) {
	w.status = h.status
	if sending := w.req.fleet != nil && w.body.taken; !sending && !w.req.client.complete() {
		w.req.client.skipContent() // what is here already need not end the connection
	}
	h.extra = w.appendReport(h.extra, &h)
	if in := w.req.in; in != nil {
		in.lines = in.appendAnswer(append(in.lines[:0], h.extra...), &h)
		h.extra = in.lines
	}
	w.head = h
	w.req.client.begin(&w.head)
}

// own gives the client an answer from memory.
func (w *reply) own(status int, extra, body []byte) {
	w.respond(head{status: status, length: int64(len(body)), extra: appendDate(extra)})
	w.bytes = int64(len(body))
	w.req.client.write(body)
	w.req.client.end(nil)
}

// ownProblem answers with a problem. Its fields are written behind it, where there is room.
func (w *reply) ownProblem(status int, code, more string, wait time.Duration, body []byte) {
	n := len(body)
	b := append(body, "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n"...)
	b = append(h1.AppendField(b, reasonField, code), more...)
	if s := abatehttp.WholeSeconds(wait); s > 0 {
		b = append(b, "Retry-After: "...)
		b = append(strconv.AppendInt(b, s, 10), "\r\n"...)
	}
	w.own(status, b[n:], b[:n:n])
}

// report is what the client is told about extra attempts that were made for its request, when its answer begins, or
// ends if that is where it is told. Said: it has asked. Final is true of failures only. ok is false if there is
// nothing to tell.
func (w *reply) report() (b core.Below, ok bool) {
	if w.req.in != nil {
		return w.req.in.report()
	}
	if !w.req.owner || w.req.tree == nil {
		return b, false
	}
	b = w.req.tree.Report()
	b.Said, b.Final = w.req.asks, b.Final && !w.spent
	return b, true
}

// appendReport writes the report to the client of a call that goes out, if it has asked.
func (w *reply) appendReport(dst []byte, a *head) []byte {
	if w.req.in != nil || !w.req.asks || w.req.rpc {
		return dst
	}
	b, ok := w.report()
	if b.Final = b.Final && hops.StatusFailed(a.status); !ok {
		return dst
	}
	dst = calltree.AppendMade(dst, b)
	if b.Final && !a.says(noRetryField) {
		dst = h1.AppendField(dst, noRetryField, "false")
	}
	return dst
}

// lastWord reports whether a failure that the proxy answers, or passes on, is the end of the matter. Where somebody
// else counts the attempts too, it is if the call tree says so, and never because only this call has had its share.
func (w *reply) lastWord(reason string) bool {
	switch {
	case w.req.tree != nil:
		return w.req.tree.Report().Final && !w.spent
	case w.req.asks: // a gateway that repeats nothing
		return reason != "upstream-error" && reason != "upstream-timeout" && reason != "deadline"
	}
	return true
}

// sayNoRetry adds the field that tells a client not to try again: the proxy has done what could be done.
func (w *reply) sayNoRetry(dst []byte) []byte {
	if w.req.rpc {
		return pushBack(dst, hops.Pushback{Never: true})
	}
	return h1.AppendField(dst, noRetryField, "false")
}
