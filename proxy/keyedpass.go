package proxy

import (
	"io"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

// beginKeyed begins to give out the answer of a request that holds a key. Whoever has it must be able to rely on it,
// so an answer that is kept goes out when the store has confirmed that; one that is too large, or a stream of events,
// when the store has confirmed that the request was done. It is false when there is nothing more to give out. A gRPC
// call is done when its client has the status, which comes last: see endKeyed.
func (t *transfer) beginKeyed(h head) (more bool) {
	a, k := t.from, t.key
	switch {
	case k.unrecorded: // it is all in the head
		t.refuseUnrecorded()
		return false
	case t.req.rpc || k.settled || !k.kept:
		t.reply.respond(h)
		return true
	case k.over || stays(a.resp.Fields):
		return t.openKeyed(h, nil)
	}
	h = h.clone() // the content is read to where the head lies
	for {
		data, err := t.more()
		if err == io.EOF {
			body := k.answer.Body // of which nothing is stored if the trailer does not fit
			t.conclude()
			t.whole()
			if k.unrecorded {
				t.refuseUnrecorded()
				return false
			}
			t.reply.respond(h)
			t.req.client.write(body)
			t.req.client.end(t.ending())
			return false
		}
		if err != nil {
			t.breakOff(err)
			return false
		}
		t.reply.bytes += int64(len(data))
		if k.write(data); k.over {
			return t.openKeyed(h, data)
		}
	}
}

// openKeyed gives out what there is of an answer that does not fit, once it is recorded that the request was done.
func (t *transfer) openKeyed(h head, data []byte) (more bool) {
	k := t.key
	if !k.Mark(k.answer.Status, k.until) {
		t.refuseUnrecorded()
		return false
	}
	t.reply.respond(h)
	t.req.client.write(k.answer.Body)
	t.req.client.write(data)
	t.req.client.flush()
	k.answer.Body = nil
	k.Shrink()
	return true
}

// refuseUnrecorded answers in place of an answer that must not go out.
func (t *transfer) refuseUnrecorded() {
	t.reply.bytes = 0
	t.reply.refuseKey(&abatehttp.KeyUnrecorded, "", abatehttp.KeyWait(t.req.in.post.gate))
}

// endKeyed ends a gRPC answer whose status must not go out with another one, and reports whether it did.
func (t *transfer) endKeyed() bool {
	if !t.req.rpc || t.key == nil || !t.key.unrecorded {
		return false
	}
	p := &abatehttp.KeyUnrecorded
	t.reply.reason, t.reply.code, t.reply.status = p.Code, hops.Unavailable, p.Status
	b := appendStatus(nil, hops.Unavailable, t.req.service()+": "+p.Detail)
	b = t.reply.appendRPCReport(h1.AppendField(b, reasonField, p.Code), hops.Unavailable)
	t.req.client.end(appendLines(nil, b))
	return true
}
