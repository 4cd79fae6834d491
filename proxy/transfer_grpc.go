package proxy

import (
	"errors"
	"strings"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
)

// closing is what the proxy adds to the end of a gRPC answer whose verdict is known, as lines.
func (t *transfer) closing() []byte {
	a := t.from
	if !a.verdict.known {
		return nil
	}
	if t.req.in != nil {
		t.req.in.below = calltree.Merge(t.req.in.below, a.verdict.below)
	}
	return t.reply.appendRPCReport(nil, a.verdict.code)
}

// conclude reads the verdict of a gRPC answer, which has come to its end.
func (t *transfer) conclude() {
	a := t.from
	if v := &a.verdict; t.req.rpc {
		if !v.known {
			v.read(a.closingFields())
			if t.call.delivered { // before the client is told what was made
				t.call.endDelivered()
			}
			t.reply.tail = append(t.reply.tail, t.closing()...)
		}
		t.reply.code, t.reply.status = v.code, httpStatus(v.code)
	}
}

// breakOff ends an answer that the service did not end. The client must not take it for complete; one of gRPC gets the
// status that says why.
func (t *transfer) breakOff(err error) {
	a := t.from
	a.broke, a.died = err, t.blames(err)
	if t.call.delivered { // before the client is told what was made
		t.call.endDelivered()
	}
	t.reply.reason = "the answer broke off: " + err.Error()
	if !t.req.rpc {
		t.call.answerEnded(core.Now()) // before the client sees it, and asks again
	}
	if !t.req.rpc || a.resp.Length == 0 || a.verdict.known || errors.Is(err, errGone) {
		t.req.client.abort()
		return
	}
	code, message := rpcCodeOf(err), t.reply.reason
	if a.overdue(err) {
		code = hops.DeadlineExceeded
	}
	if t.req.discreet() {
		message = "the answer broke off"
	}
	t.reply.code, t.reply.status = code, httpStatus(code)
	b := appendStatus(nil, code, message)
	b = t.reply.appendRPCReport(h1.AppendField(b, reasonField, "broken-off"), code)
	t.req.client.end(appendLines(nil, b))
}

// addTail has fields, as lines, go to the client with the status of a gRPC answer: in its trailer, or in the only
// head that it has. A pushback among them replaces the service's.
func (t *transfer) addTail(lines []byte) (extra []byte) {
	a, pushes := t.from, strings.Contains(text(lines), pushbackField)
	if a.resp.Length == 0 { // trailers-only
		if pushes {
			a.resp.Fields = without(a.resp.Fields, "grpc-retry-pushback-ms")
		}
		return lines
	}
	t.reply.tail = append(t.reply.tail, lines...)
	return nil
}

// ending is the trailer, as the client gets it: a gRPC answer ends with it.
func (t *transfer) ending() []h1.Field {
	a := t.from
	fields := a.trailer()
	if !t.req.rpc {
		return fields
	}
	own := append(t.reply.last[:0], fields...)
	switch {
	case t.req.in != nil:
		own = t.req.in.outgoing(own)
	case !t.req.owner: // what is not the proxy's affair goes on
		for _, f := range a.closingFields() {
			if calltree.IsMade(f) {
				own = append(own, f)
			}
		}
	}
	if strings.Contains(text(t.reply.tail), pushbackField) {
		own = without(own, "grpc-retry-pushback-ms")
	}
	own = appendLines(own, t.reply.tail)
	t.reply.last = own[:0]
	return own
}
