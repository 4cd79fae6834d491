package abategrpc

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
)

// Try is one try of a call that has an idempotency key.
type Try = idempotency.Try

// Drain waits until all that is done under idempotency keys in this process has ended and is recorded, or ctx is
// over, whose error it returns then. Call it after the server's GracefulStop, before the stores are closed: what is
// not recorded by the end of the process looks like a crash to the next try, which takes over after the lease.
func Drain(ctx context.Context) error { return serving.Drain(ctx) }

// TryOf returns the try under which a Server has the call done that ctx belongs to; false if it has no key.
//
// In the handler of such a try grpc.SetSendCompressor and grpc.ClientSupportedCompressors return errors: what it
// sends is recorded on the way, and they know only grpc-go's own streams. Call them in an interceptor in front of the
// Server.
func TryOf(ctx context.Context) (Try, bool) { return serving.TryOf(ctx) }

// keyedMethod reports whether calls of a method are done once for each key: its full name is on the list, or POST,
// which is what every call of gRPC is to HTTP.
func keyedMethod(methods []string, method string) bool {
	return slices.ContainsFunc(methods, func(m string) bool { return m == "POST" || hops.Covers(m, method) })
}

// handleKeyed does what the idempotency key of a call says: has the call done, or answers for it. The gate has
// admitted it: what is refused burns no key.
func (x *exchange) handleKeyed(
	in *serving.Sender, store idempotency.Store, c *idempotency.Config, req any, handler grpc.UnaryHandler,
) (any, error) {
	key, p, detail := serving.ReadKey(x.values(keyName), x.values(xKeyName))
	if p != nil {
		return nil, x.refuseKey(p, detail)
	}
	message, ok := req.(proto.Message)
	if !ok {
		return nil, x.refuseKey(&keyUnknownType, "")
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, x.refuseKey(&serving.KeyInvalid, "the message cannot be compared: "+err.Error())
	}
	in.Host = (*source)(x).Joined(":authority", "")
	k := &keyedTry{Hold: &serving.Hold{Store: store, Config: c}}
	switch claim := x.Claim(x.client, k.Hold, in, key, idempotency.FingerprintOf("gRPC", x.method, body)); {
	case claim.Refused != nil:
		return nil, x.refuseKey(claim.Refused, "")
	case claim.Answer != nil:
		return x.answerKey(claim.Answer)
	case !claim.Held:
		return x.handle(in, req, handler)
	}
	ctx := k.Under()
	k.record.out, k.record.client, k.record.method = grpc.ServerTransportStreamFromContext(ctx), x.client, x.method
	x.key = k
	resp, err := handler(x.context(grpc.NewContextWithServerTransportStream(ctx, &k.record), in), req)
	return x.endKeyed(resp, err)
}

// endKeyed ends the try: with the answer, so that repeats get it, or without if there is none that is for good. The
// client has it only after that, and only if the store has confirmed it. The call's slot is free meanwhile.
func (x *exchange) endKeyed(resp any, err error) (any, error) {
	k := x.key
	x.settle(classOf(err))
	if !k.Config.KeepsCode(uint32(codeOf(err))) {
		k.Fail()
	} else if !k.Complete(k.record.response(resp, err, k.Config.MaxAnswer), x.Until) {
		return nil, x.refuseKey(&serving.KeyUnrecorded, "")
	}
	k.record.release()
	x.finish(err)
	return resp, err
}

func (x *exchange) refuseKey(p *serving.Problem, detail string) error {
	x.RefuseKey(x.client, p)
	x.ended = true
	wait := x.ComeBack(p)
	x.tell(p.Code, wait, false, false)
	return errorOf(p, x.Gate.Name(), detail, shed.None, wait)
}

// answerKey answers for a call that has been done.
func (x *exchange) answerKey(r *idempotency.Response) (any, error) {
	resp, err, ok := x.replay(r)
	if !ok {
		return nil, x.refuseKey(&serving.KeyNotStored, "")
	}
	x.ended = true
	x.settle(abate.Ignored)
	return resp, err
}

// keyedTry is a try that holds a key, and what it has answered. The hold may outlive it, and must not keep the answer.
type keyedTry struct {
	*serving.Hold
	record record
}
