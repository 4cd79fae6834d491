package proxy

import (
	"errors"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/proxy/h1"
)

// turnAway answers what the gate refused. Under overload most requests end here: it makes no garbage.
func (w *reply) turnAway() {
	r := w.req.in.machine.Refusal()
	status, code := abatehttp.RefusalStatus(r)
	if errors.Is(r.Reason, errGone) {
		w.reason = leftReason
		w.req.client.abort()
		return
	}
	if w.req.rpc {
		w.turnAwayRPC(r, status, code)
		return
	}
	w.reason = code
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	b := abatehttp.AppendRefusal((*room)[:0], w.req.service(), r)
	w.ownProblem(status, code, "", abatehttp.RefusalWait(r), b)
}

// refuseAtGate answers with a problem that is not the gate's own. detail says more than the problem does, if there is
// more to say; more is further fields, as lines.
func (w *reply) refuseAtGate(p *abatehttp.Problem, detail, more string, wait time.Duration) {
	if w.req.rpc {
		w.refuseAtGateRPC(p, detail, wait)
		return
	}
	w.reason = p.Code
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	w.ownProblem(p.Status, p.Code, more, wait, p.Append((*room)[:0], w.req.service(), detail, wait))
}

// refuseKey answers a request for what its key came to, and gives its slot back before.
func (w *reply) refuseKey(p *abatehttp.Problem, detail string, wait time.Duration) {
	if p == &abatehttp.KeyMissing || p == &abatehttp.KeyInvalid {
		w.req.in.post.gate.KeyDecided("missing")
	}
	w.req.in.served(abate.Ignored)
	w.refuseAtGate(p, detail, "", wait)
}

// replay gives the client the answer of the try that was the first.
func (w *reply) replay(r *idempotency.Response) {
	switch {
	case r.EffectUnknown():
		w.refuseKey(&abatehttp.KeyEffectUnknown, "", 0)
		return
	case r.Truncated:
		w.refuseKey(&abatehttp.KeyNotStored, "", 0)
		return
	}
	w.req.in.served(abate.Ignored)
	fields, trailer := make([]h1.Field, 0, len(r.Header)), []h1.Field(nil)
	for _, f := range r.Header {
		if name, behind := strings.CutPrefix(f.Name, idempotency.TrailerMark); behind {
			trailer = append(trailer, h1.Field{Name: []byte(name), Value: []byte(f.Value)})
		} else {
			fields = append(fields, h1.Field{Name: []byte(f.Name), Value: []byte(f.Value)})
		}
	}
	length := int64(len(r.Body))
	if len(trailer) > 0 {
		length = -1
	}
	extra := appendDate(h1.AppendField(nil, replayedField, "true"))
	w.respond(head{status: r.Status, fields: w.req.in.outgoing(fields), length: length, extra: extra})
	w.bytes = int64(len(r.Body))
	w.req.client.write(r.Body)
	w.req.client.end(trailer)
}
