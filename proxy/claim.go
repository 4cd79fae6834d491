package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// claim asks for the request's idempotency key. It is false when the request has been answered without the service.
func (x *exchange) claim(until time.Duration) (run bool, err error) {
	in := x.req.in
	if !in.hasKey {
		if in.keys.Required {
			x.reply.refuseKey(&abatehttp.KeyMissing, "", 0)
		}
		return !in.keys.Required, nil
	}
	key, problem := idempotency.ParseKeys(string(in.keyField[0]), string(in.keyField[1]))
	if problem != nil {
		x.reply.refuseKey(&abatehttp.KeyInvalid, problem.Error(), 0)
		return false, nil
	}
	if key == "" {
		x.reply.refuseKey(&abatehttp.KeyInvalid, idempotency.CheckKey(key).Error(), 0)
		return false, nil
	}
	if err := x.body.fill(until); err != nil {
		x.req.in.served(abate.Ignored)
		x.answer(err)
		return false, err
	}
	if len(x.body.bytes) > in.keys.MaxBody {
		x.reply.refuseKey(&abatehttp.KeyedBodyTooLarge, fmt.Sprintf("at most %d bytes are compared", in.keys.MaxBody), 0)
		return false, nil
	}
	x.req.Upgrade = nil // what is kept is an answer
	return x.begin(key, until), nil
}

// begin asks the store for the key. It is true when the service is to do the request.
func (x *exchange) begin(key string, until time.Duration) bool {
	in := x.req.in
	gate := in.post.gate
	store, _, on := gate.Idempotency()
	if !on || store == nil { // switched off since the request was routed
		return true
	}
	principal, compared := idempotency.Principal(in.keys.Scope, in.principal(&x.req))
	k := &keyed{until: until, Hold: &holding.Hold{
		Gate: gate, Store: store, Config: in.keys, Ctx: context.Background(),
		Key: idempotency.StoreKey(gate.Name(), principal, key),
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
		x.reply.replay(&begun.Response)
	case idempotency.Running:
		x.reply.refuseKey(&abatehttp.KeyRunning, "", abatehttp.KeyWait(x.req.in.post.gate))
	default:
		x.reply.refuseKey(&abatehttp.KeyMismatch, "", 0)
	}
	return false
}

// withoutStore decides about a request whose key cannot be looked up.
func (x *exchange) withoutStore() (run bool) {
	if x.req.in.keys.WhenAway == "open" {
		return true
	}
	x.reply.refuseKey(&abatehttp.KeyUnavailable, "", abatehttp.KeyWait(x.req.in.post.gate))
	return false
}
