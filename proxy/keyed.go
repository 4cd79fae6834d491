package proxy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/proxy/h1"
)

// keyed is a request that holds an idempotency key: the first try, whose answer is kept for its repeats. A nil keyed, of a
// request without one, does nothing.
type keyed struct {
	holding.Hold
	until      time.Duration // the end of the request's time
	answer     idempotency.Response
	size       int  // of the answer, so far
	kept       bool // it is for good
	over       bool // it is larger than what is kept
	settled    bool // the store is told how it ended
	unrecorded bool // and has not confirmed that: the answer must not go out
}

// replayedField marks an answer that was kept.
const replayedField = "Idempotency-Replayed"

// keyInUse is the key that the request holds, nil if it holds none.
func (x *exchange) keyInUse() *keyed {
	if x.in == nil {
		return nil
	}
	return x.in.key
}

// gone tells whether the client has left, and need not be worked for. A request with a key is finished all the same if that
// takes no longer than its lease: the answer is kept for the client's next try, which the service would otherwise have to do
// again without knowing that it has done it.
func (x *exchange) gone() bool {
	key := x.keyInUse()
	return (key == nil || abate.Now()-x.began > key.Config.Lease) && x.client.gone()
}

// claim asks for the request's idempotency key. It is false when the request has been answered without the service.
func (x *exchange) claim(until time.Duration) (run bool, err error) {
	in := x.in
	if !in.hasKey {
		if in.keys.Required {
			x.refuseKey(&abatehttp.KeyMissing, "", 0)
		}
		return !in.keys.Required, nil
	}
	key, problem := idempotency.ParseKeys(string(in.keyField[0]), string(in.keyField[1]))
	if problem != nil {
		x.refuseKey(&abatehttp.KeyInvalid, problem.Error(), 0)
		return false, nil
	}
	if key == "" {
		x.refuseKey(&abatehttp.KeyInvalid, idempotency.CheckKey(key).Error(), 0)
		return false, nil
	}
	if err := x.body.fill(until); err != nil {
		x.served(abate.Ignored)
		x.answer(err)
		return false, err
	}
	if len(x.body.bytes) > in.keys.MaxBody {
		x.refuseKey(&abatehttp.KeyedBodyTooLarge, fmt.Sprintf("at most %d bytes are compared", in.keys.MaxBody), 0)
		return false, nil
	}
	x.req.Upgrade = nil // what is kept is an answer
	return x.begin(key, until), nil
}

// begin asks the store for the key. It is true when the service is to do the request.
func (x *exchange) begin(key string, until time.Duration) bool {
	in := x.in
	gate := in.post.gate
	store, _, on := gate.Idempotency()
	if !on || store == nil { // switched off since the request was routed
		return true
	}
	principal, compared := idempotency.Principal(in.keys.Scope, in.principal(x))
	k := &keyed{until: until, Hold: holding.Hold{
		Gate: gate, Store: store, Config: in.keys, Ctx: context.Background(), Key: idempotency.StoreKey(gate.Name(), principal, key),
	}}
	print := idempotency.FingerprintOf(string(x.req.Method), string(x.req.Path), x.body.bytes).With(compared)
	begun, err := k.Begin(print, until)
	if err != nil {
		return x.withoutStore()
	}
	switch begun.State {
	case idempotency.Run:
		k.Keep()
		in.key = k
		return true
	case idempotency.Replay:
		x.replay(&begun.Response)
	case idempotency.Running:
		x.refuseKey(&abatehttp.KeyRunning, "", abatehttp.KeyWait(x.in.post.gate))
	default:
		x.refuseKey(&abatehttp.KeyMismatch, "", 0)
	}
	return false
}

// withoutStore decides about a request whose key cannot be looked up.
func (x *exchange) withoutStore() (run bool) {
	if x.in.keys.WhenAway == "open" {
		return true
	}
	x.refuseKey(&abatehttp.KeyUnavailable, "", abatehttp.KeyWait(x.in.post.gate))
	return false
}

// refuseKey answers a request for what its key came to, and gives its place back before.
func (x *exchange) refuseKey(p *abatehttp.Problem, detail string, wait time.Duration) {
	if p == &abatehttp.KeyMissing || p == &abatehttp.KeyInvalid {
		x.in.post.gate.KeyDecided("missing")
	}
	x.served(abate.Ignored)
	x.refuseAtGate(p, detail, "", wait)
}

// replay gives the client the answer of the try that was the first.
func (x *exchange) replay(r *idempotency.Response) {
	switch {
	case r.EffectUnknown():
		x.refuseKey(&abatehttp.KeyEffectUnknown, "", 0)
		return
	case r.Truncated:
		x.refuseKey(&abatehttp.KeyNotStored, "", 0)
		return
	}
	x.served(abate.Ignored)
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
	x.respond(head{status: r.Status, fields: x.in.outgoing(fields), length: length, extra: extra})
	x.bytes = int64(len(r.Body))
	x.client.write(r.Body)
	x.client.end(trailer)
}

// head begins to keep an answer.
func (k *keyed) head(a *answer) {
	k.answer = idempotency.Response{Status: a.resp.Status}
	reason := ""
	for _, f := range a.resp.Fields {
		if f.Is("abate-reason") {
			reason = text(f.Value)
		}
	}
	if k.kept = holding.Keeps(k.Config, a.resp.Status, reason); !k.kept {
		return
	}
	size := 0
	for _, f := range a.resp.Fields {
		if !holding.Replayed(text(f.Name)) {
			continue
		}
		k.answer.Header = append(k.answer.Header, idempotency.Field{Name: string(f.Name), Value: string(f.Value)})
		size += len(f.Name) + len(f.Value)
	}
	k.size = size
	k.over = size > k.Config.MaxAnswer || a.resp.Length > int64(k.Config.MaxAnswer-size)
}

// write keeps a piece of the content.
func (k *keyed) write(data []byte) {
	if k == nil || k.over || !k.kept {
		return
	}
	if k.over = k.size+len(data) > k.Config.MaxAnswer || !k.Grow(k.size, k.size+len(data)); !k.over {
		k.size += len(data)
		k.answer.Body = append(k.answer.Body, data...)
	}
}

// keepTrailer keeps the fields behind the content.
func (k *keyed) keepTrailer(trailer []h1.Field) {
	for _, f := range trailer {
		if holding.Replayed(text(f.Name)) {
			k.answer.Header = append(k.answer.Header, idempotency.Field{Name: idempotency.TrailerMark + string(f.Name), Value: string(f.Value)})
			k.size += len(f.Name) + len(f.Value)
		}
	}
	k.over = k.over || k.size > k.Config.MaxAnswer
}

// complete tells the store that the answer has come: one that is kept, or one that says that the request may be tried again.
func (k *keyed) complete(trailer []h1.Field) {
	if k == nil || k.settled {
		return
	}
	if k.keepTrailer(trailer); k.over {
		k.answer = idempotency.Response{Status: k.answer.Status, Truncated: true}
	}
	if k.settled = true; !k.kept {
		k.Fail()
	} else {
		k.unrecorded = !k.Complete(k.answer, k.until)
	}
}

// completeRPC is complete for a gRPC answer: whether it is kept, its own status says, which stands in its trailer.
func (k *keyed) completeRPC(a *answer) {
	if k == nil || k.settled {
		return
	}
	if !k.Config.KeepsCode(uint32(a.verdict.code)) {
		k.settled = true
		k.Fail()
		return
	}
	k.complete(a.trailer())
}

// unanswered is for a try that brought no answer. If it has not reached the service the next one may run at once; else the
// service may still be doing it, or have done it: the key is held until its lease is over, or for good if no try may run where
// there may be an effect.
func (k *keyed) unanswered(reached bool) {
	if k == nil || k.settled {
		return
	}
	k.settled = true
	switch {
	case !reached:
		k.Fail()
	case k.Config.KeepServerErrors:
		k.Complete(idempotency.Unknown(), abate.Now()) // nobody waits for it
	default:
		k.Leave()
	}
}

// end is for a try that is over. An answer that broke off in its middle has been done, but cannot be repeated.
func (k *keyed) end() {
	if k == nil {
		return
	}
	if k.answer.Status == 0 { // whatever came of it, nobody has looked
		k.unanswered(true)
	}
	if !k.settled {
		k.over, k.until = true, abate.Now() // nobody waits for it
		k.complete(nil)
	}
	k.Shrink()
}

// panicked is for a try of which nobody knows how far it came.
func (k *keyed) panicked() {
	if k != nil {
		k.unanswered(true)
		k.Shrink()
	}
}
