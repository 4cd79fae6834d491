package proxy

import (
	"io"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

// beginKeyed begins to give out the answer of a request that holds a key. Whoever has it must be able to rely on it, so an
// answer that is kept goes out when the store has confirmed that; one that is too large, or a stream of events, when the
// store has confirmed that the request was done. It is false when there is nothing more to give out. A gRPC call is done
// when its client has the status, which comes last: see endKeyed.
func (x *exchange) beginKeyed(a *answer, k *keyed, h head) (more bool) {
	switch {
	case k.unrecorded: // it is all in the head
		x.refuseUnrecorded()
		return false
	case x.rpc || k.settled || !k.kept:
		x.respond(h)
		return true
	case k.over || stays(a.resp.Fields):
		return x.openKeyed(k, h, nil)
	}
	for {
		data, err := x.more(a)
		if err == io.EOF {
			body := k.answer.Body // of which nothing is stored if the trailer does not fit
			x.conclude(a)
			x.whole(a, k)
			if k.unrecorded {
				x.refuseUnrecorded()
				return false
			}
			x.respond(h)
			x.client.write(body)
			x.client.end(x.ending(a))
			return false
		}
		if err != nil {
			a.broke, a.died = err, x.blames(err)
			x.reason = "the answer broke off: " + err.Error()
			x.breakOff(a, err)
			return false
		}
		x.bytes += int64(len(data))
		if k.write(data); k.over {
			return x.openKeyed(k, h, data)
		}
	}
}

// openKeyed gives out what there is of an answer that does not fit, once it is recorded that the request was done.
func (x *exchange) openKeyed(k *keyed, h head, data []byte) (more bool) {
	if !k.Mark(k.answer.Status, k.until) {
		x.refuseUnrecorded()
		return false
	}
	x.respond(h)
	x.client.write(k.answer.Body)
	x.client.write(data)
	x.client.flush()
	k.answer.Body = nil
	k.Shrink()
	return true
}

// refuseUnrecorded answers in place of an answer that must not go out.
func (x *exchange) refuseUnrecorded() {
	x.bytes = 0
	x.refuseKey(&abatehttp.KeyUnrecorded, "", abatehttp.KeyWait(x.in.post.gate))
}

// endKeyed ends a gRPC answer whose status must not go out with another one, and reports whether it did.
func (x *exchange) endKeyed(k *keyed) bool {
	if !x.rpc || k == nil || !k.unrecorded {
		return false
	}
	p := &abatehttp.KeyUnrecorded
	x.reason, x.code, x.status = p.Code, hops.Unavailable, p.Status
	b := appendStatus(nil, hops.Unavailable, x.service()+": "+p.Detail)
	b = x.appendRPCReport(h1.AppendField(b, reasonField, p.Code), hops.Unavailable)
	x.client.end(appendLines(nil, b))
	return true
}
