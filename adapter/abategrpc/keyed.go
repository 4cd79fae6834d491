package abategrpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/abate-go/abate"
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

type tryKey struct{}

// TryOf returns the try under which a Server has the call done that ctx belongs to; false if it has no key.
//
// In the handler of such a try grpc.SetSendCompressor and grpc.ClientSupportedCompressors return errors: what it sends is
// recorded on the way, and they know only grpc-go's own streams. Call them in an interceptor in front of the Server.
func TryOf(ctx context.Context) (Try, bool) {
	t, ok := ctx.Value(tryKey{}).(*Try)
	if !ok {
		return Try{}, false
	}
	return *t, true
}

// keyedMethod tells whether calls of a method are done once for each key: its full name is on the list, or POST, which is what
// every call of gRPC is to HTTP.
func keyedMethod(methods []string, method string) bool {
	for _, m := range methods {
		if m == "POST" || covers(m, method) {
			return true
		}
	}
	return false
}

// handleKeyed does what the idempotency key of a call says: has the call done, or answers for it. The gate has admitted it:
// what is refused burns no key.
func (x *exchange) handleKeyed(in *sender, values []string, store idempotency.Store, c *idempotency.Config, until time.Duration, req any, handler grpc.UnaryHandler) (any, error) {
	if len(values) == 0 {
		return nil, x.refuseKey(&keyMissing, "", 0)
	}
	key, err := idempotency.ParseKey(strings.Join(values, ", "))
	if err != nil {
		return nil, x.refuseKey(&keyInvalid, err.Error(), 0)
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
	k := &keyedTry{x: x, store: store, config: c, ctx: context.WithoutCancel(x.client), key: idempotency.StoreKey(x.gate.Name(), in.caller(), key)}
	begun, err := k.begin(idempotency.FingerprintOf("gRPC", x.method, body), until)
	switch {
	case err != nil:
		x.gate.KeyDecided(unavailable(err))
		if c.WhenAway != "open" {
			return nil, x.refuseKey(&keyUnavailable, "", time.Second+rand.N(2*time.Second))
		}
		resp, err := handler(x.context(x.client, in, until), req)
		x.finish(err)
		return resp, err
	case begun.State != idempotency.Run:
		return x.answerKey(&begun)
	case x.client.Err() == context.Canceled: // the client left meanwhile, and nothing has been done
		k.done(func(ctx context.Context) error { return store.Fail(ctx, k.key, begun.Token) })
		return nil, x.refuseKey(&clientLeft, "", 0)
	}
	k.hold(&begun, key)
	// From here on the client may leave: what it asked for is done all the same, and its next try finds the answer.
	ctx := context.WithValue(k.record.under(k.ctx), tryKey{}, &k.try)
	resp, err := handler(x.context(ctx, in, until), req)
	k.end(resp, err)
	x.finish(err)
	return resp, err
}

// unavailable is what observers call an error of the store.
func unavailable(err error) string {
	if errors.Is(err, idempotency.ErrFull) {
		return "full"
	}
	return "away"
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
	x.gate.KeyDecided(b.State.String())
	if b.State != idempotency.Replay || b.Response.Truncated {
		why, wait := refusalForKey(b)
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

// keyedTry is a try that holds a key.
type keyedTry struct {
	x      *exchange
	store  idempotency.Store
	config *idempotency.Config
	ctx    context.Context // of the call, without its end
	key    string          // in the store
	try    Try
	record record

	mu    sync.Mutex // guards what follows
	lease *time.Timer
	over  bool
}

// begin asks the store, until the deadline of the call or for as long as a lease.
func (k *keyedTry) begin(fp idempotency.Fingerprint, until time.Duration) (idempotency.Begun, error) {
	limit := k.config.Lease
	if until != abate.NoDeadline {
		limit = min(limit, until-abate.Now())
	}
	ctx, cancel := context.WithTimeout(k.ctx, limit)
	defer cancel()
	return k.store.Begin(ctx, k.key, fp, k.config.Lease)
}

// done tells the store something about a key that is held. By the end of a lease it is too late.
func (k *keyedTry) done(tell func(context.Context) error) {
	ctx, cancel := context.WithTimeout(k.ctx, k.config.Lease)
	defer cancel()
	switch err := tell(ctx); {
	case errors.Is(err, idempotency.ErrLost):
		k.x.gate.KeyDecided("lost")
	case err != nil:
		k.x.gate.KeyDecided("away")
	}
}

// hold begins the try: the lease is renewed from now on, and the answer recorded.
func (k *keyedTry) hold(b *idempotency.Begun, key string) {
	what := "run"
	if b.TakenOver {
		what = "taken-over"
	}
	k.x.gate.KeyDecided(what)
	k.try = Try{Key: key, Token: b.Token, TakenOver: b.TakenOver}
	k.record.out, k.record.client = grpc.ServerTransportStreamFromContext(k.ctx), k.x.client
	k.record.method = k.x.method
	k.x.key = k
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lease = time.AfterFunc(k.config.Lease/3, k.renew)
}

// renew keeps the key for another lease. If the store cannot be reached, there are two more times to try.
func (k *keyedTry) renew() {
	k.mu.Lock()
	over := k.over
	k.mu.Unlock()
	if over {
		return
	}
	lost := false
	k.done(func(ctx context.Context) error {
		err := k.store.Renew(ctx, k.key, k.try.Token, k.config.Lease)
		lost = errors.Is(err, idempotency.ErrLost)
		return err
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if !lost && !k.over {
		k.lease.Reset(k.config.Lease / 3)
	}
}

// release ends the renewing. False if that has been done.
func (k *keyedTry) release() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return false
	}
	k.over = true
	k.lease.Stop()
	return true
}

// end ends the try: with the answer, so that repeats get it, or without if there is none that is for good. The client has it
// only after that.
func (k *keyedTry) end(resp any, err error) {
	if !k.release() {
		return
	}
	k.done(func(ctx context.Context) error {
		if idempotency.KeepsCode(uint32(codeOf(err))) {
			return k.store.Complete(ctx, k.key, k.try.Token, k.record.response(resp, err, k.config.MaxBody), k.config.Retention)
		}
		return k.store.Fail(ctx, k.key, k.try.Token)
	})
}

// abandon lets the key go, if the handler panicked.
func (k *keyedTry) abandon() {
	if k.release() {
		k.done(func(ctx context.Context) error { return k.store.Fail(ctx, k.key, k.try.Token) })
	}
}
