package abategrpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// Try is one try of a call that has an idempotency key.
type Try struct {
	// Key is the key as the client sent it.
	Key string
	// Token is greater than those of all earlier tries with this key. What can compare numbers can refuse to be changed by a
	// try that was taken for crashed and goes on all the same.
	Token uint64
	// TakenOver tells that an earlier try began and never ended: its effect may have happened.
	TakenOver bool
}

// Drain waits until all that is done under idempotency keys in this process has ended and is recorded, or ctx is over, whose error
// it returns then. Call it after the server's GracefulStop, before the stores are closed: what is not recorded by the end of the
// process looks like a crash to the next try, which takes over after the lease.
func Drain(ctx context.Context) error { return serving.Drain(ctx) }

type tryKey struct{}

// TryOf returns the try under which a Server has the call done that ctx belongs to; false if it has no key.
//
// In the handler of such a try grpc.SetSendCompressor and grpc.ClientSupportedCompressors return errors: what it sends is
// recorded on the way, and they know only grpc-go's own streams. Call them in an interceptor in front of the Server.
func TryOf(ctx context.Context) (Try, bool) {
	k, ok := ctx.Value(tryKey{}).(*keyedTry)
	if !ok {
		return Try{}, false
	}
	return Try{Key: k.sent, Token: k.Token, TakenOver: k.TakenOver}, true
}

// keyedMethod tells whether calls of a method are done once for each key: its full name is on the list, or POST, which is what
// every call of gRPC is to HTTP.
func keyedMethod(methods []string, method string) bool {
	for _, m := range methods {
		if m == "POST" || hops.Covers(m, method) {
			return true
		}
	}
	return false
}

// handleKeyed does what the idempotency key of a call says: has the call done, or answers for it. The gate has admitted it:
// what is refused burns no key.
func (x *exchange) handleKeyed(in *sender, store idempotency.Store, c *idempotency.Config, until time.Duration, req any, handler grpc.UnaryHandler) (any, error) {
	key, err := idempotency.ParseKeys(strings.Join(in.values(keyName), ", "), strings.Join(in.values(xKeyName), ", "))
	switch {
	case err != nil:
		return nil, x.refuseKey(&keyInvalid, err.Error(), 0)
	case key == "" && len(in.values(keyName))+len(in.values(xKeyName)) > 0:
		return nil, x.refuseKey(&keyInvalid, idempotency.CheckKey(key).Error(), 0)
	case key == "":
		return nil, x.refuseKey(&keyMissing, "", 0)
	}
	message, ok := req.(proto.Message)
	if !ok {
		return nil, x.refuseKey(&keyUnknownType, "", 0)
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, x.refuseKey(&keyInvalid, "the message cannot be compared: "+err.Error(), 0)
	}
	if abate.Now() >= until {
		return nil, x.refuseKey(&deadlinePassed, "", 0)
	}
	principal, compared := idempotency.Principal(c.Scope, in.principal())
	k := &keyedTry{sent: key, Hold: serving.Hold{
		Gate: x.gate, Store: store, Config: c, Ctx: context.WithoutCancel(x.client), Key: idempotency.StoreKey(x.gate.Name(), principal, key),
	}}
	begun, err := k.Begin(idempotency.FingerprintOf("gRPC", x.method, body).With(compared), until)
	switch {
	case err != nil:
		if c.WhenAway != "open" {
			return nil, x.refuseKey(&keyUnavailable, "", x.gate.ComeBack())
		}
		resp, err := handler(x.context(x.client, in, until), req)
		x.finish(err)
		return resp, err
	case begun.State != idempotency.Run:
		return x.answerKey(&begun)
	case x.client.Err() == context.Canceled: // the client left meanwhile, and nothing has been done
		k.Fail()
		return nil, x.refuseKey(&clientLeft, "", 0)
	}
	k.Keep()
	k.record.out, k.record.client, k.record.method = grpc.ServerTransportStreamFromContext(k.Ctx), x.client, x.method
	x.key = k
	// From here on the client may leave: what it asked for is done all the same, and its next try finds the answer.
	ctx := context.WithValue(k.record.under(k.Ctx), tryKey{}, k)
	resp, err := handler(x.context(ctx, in, until), req)
	return x.endKeyed(resp, err, until)
}

// endKeyed ends the try: with the answer, so that repeats get it, or without if there is none that is for good. The client has
// it only after that, and only if the store has confirmed it. The call's place is free meanwhile.
func (x *exchange) endKeyed(resp any, err error, until time.Duration) (any, error) {
	k, code := x.key, codeOf(err)
	class := abate.Success
	if err != nil {
		class = hops.ServedCode(code)
	}
	now := abate.Now()
	x.settle(now, x.class(now, class))
	if !k.Config.KeepsCode(uint32(code)) {
		k.Fail()
	} else if !k.Complete(k.record.response(resp, err, k.Config.MaxAnswer), until) {
		return nil, x.refuseKey(&keyUnrecorded, "", x.gate.ComeBack())
	}
	x.finish(err)
	return resp, err
}

// refuseKey refuses an admitted call for its key. It never came to the service, so the gate learns nothing from it.
func (x *exchange) refuseKey(why *refusal, detail string, wait time.Duration) error {
	x.ended = true
	x.settle(abate.Now(), abate.Ignored)
	if why == &keyMissing || why == &keyInvalid {
		x.gate.KeyDecided("missing")
	}
	return x.refuse(why, detail, wait)
}

// answerKey answers for a call that is being done, or has been.
func (x *exchange) answerKey(b *idempotency.Begun) (any, error) {
	if b.State != idempotency.Replay || b.Response.Truncated {
		why, wait := x.refusalForKey(b)
		return nil, x.refuseKey(why, "", wait)
	}
	resp, err, ok := x.replay(&b.Response)
	if !ok {
		return nil, x.refuseKey(&keyNotStored, "", 0)
	}
	x.ended = true
	x.settle(abate.Now(), abate.Ignored)
	return resp, err
}

// keyedTry is a try that holds a key, and what it has answered.
type keyedTry struct {
	serving.Hold
	sent   string // the key, as the client has sent it
	record record
}

// abandon ends the try of a handler that panicked: it lets the key go, unless the effect that there may have been forbids that.
func (k *keyedTry) abandon() {
	if k.Config.KeepServerErrors {
		k.Complete(idempotency.Unknown(), abate.Now()) // nobody waits for it
	} else {
		k.Fail()
	}
}
