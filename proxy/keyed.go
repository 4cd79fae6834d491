package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/proxy/h1"
)

// keyed is a request that holds an idempotency key: the first try, whose answer is kept for its repeats. A nil keyed, of a
// request without one, does nothing.
type keyed struct {
	proxy   *Proxy
	gate    *abate.Gate
	store   idempotency.Store
	config  *idempotency.Config
	key     string
	token   uint64
	answer  idempotency.Response
	over    bool // the answer is larger than what is kept
	settled bool // the store has been told how it ended
	stop    context.CancelFunc
}

// trailerMark begins the name of a stored field that came in the trailer of a gRPC answer. No field is called so.
const trailerMark = ":"

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
	return (key == nil || abate.Now()-x.began > key.config.Lease) && x.client.gone()
}

// claim asks for the request's idempotency key. It is false when the request has been answered without the service.
func (x *exchange) claim(until time.Duration) (run bool, err error) {
	in := x.in
	if in.keyCount == 0 {
		if in.keys.Required {
			x.refuseKey(&abatehttp.KeyMissing, "", 0)
		}
		return !in.keys.Required, nil
	}
	key, problem := idempotency.ParseKey(string(in.keyField))
	if problem != nil {
		x.refuseKey(&abatehttp.KeyInvalid, problem.Error(), 0)
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
	k := &keyed{proxy: x.proxy, gate: gate, store: store, config: in.keys, key: idempotency.StoreKey(gate.Name(), in.caller, key)}
	ctx, cancel := context.WithTimeout(context.Background(), min(in.keys.Lease, until-abate.Now()))
	defer cancel()
	begun, err := store.Begin(ctx, k.key, idempotency.FingerprintOf(string(x.req.Method), string(x.req.Path), x.body.bytes), in.keys.Lease)
	if err != nil {
		return x.withoutStore(err)
	}
	gate.KeyDecided(decision(begun))
	switch begun.State {
	case idempotency.Run:
		k.token = begun.Token
		ctx, stop := context.WithCancel(x.proxy.life)
		k.stop = stop
		go k.renew(ctx)
		in.key = k
		return true
	case idempotency.Replay:
		x.replay(&begun.Response)
	case idempotency.Running:
		x.refuseKey(&abatehttp.KeyRunning, "", time.Second)
	default:
		x.refuseKey(&abatehttp.KeyMismatch, "", 0)
	}
	return false
}

// decision is the word for what became of a key, for metrics.
func decision(b idempotency.Begun) string {
	if b.State == idempotency.Run && b.TakenOver {
		return "taken-over"
	}
	return b.State.String()
}

// withoutStore decides about a request whose key cannot be looked up.
func (x *exchange) withoutStore(err error) (run bool) {
	what := "away"
	if errors.Is(err, idempotency.ErrFull) {
		what = "full"
	}
	x.in.post.gate.KeyDecided(what)
	if x.in.keys.WhenAway == "open" {
		return true
	}
	x.refuseKey(&abatehttp.KeyUnavailable, "", time.Second+rand.N(2*time.Second))
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
	if r.Truncated {
		x.refuseKey(&abatehttp.KeyNotStored, "", 0)
		return
	}
	x.served(abate.Ignored)
	fields, trailer := make([]h1.Field, 0, len(r.Header)), []h1.Field(nil)
	for _, f := range r.Header {
		if name, behind := strings.CutPrefix(f.Name, trailerMark); behind {
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

// renew keeps the key while the request is being done.
func (k *keyed) renew(ctx context.Context) {
	t := time.NewTicker(max(k.config.Lease/3, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := k.store.Renew(ctx, k.key, k.token, k.config.Lease); errors.Is(err, idempotency.ErrLost) {
			return
		}
	}
}

// head begins to keep an answer.
func (k *keyed) head(a *answer) {
	k.answer = idempotency.Response{Status: a.resp.Status}
	if !idempotency.Keeps(a.resp.Status) {
		return
	}
	size := 0
	for _, f := range a.resp.Fields {
		if notReplayed(f) {
			continue
		}
		k.answer.Header = append(k.answer.Header, idempotency.Field{Name: string(f.Name), Value: string(f.Value)})
		size += len(f.Name) + len(f.Value)
	}
	k.over = size > k.config.MaxBody || a.resp.Length > int64(k.config.MaxBody)
}

// notReplayed tells of fields that belong to one time or to one answer of a gate. Cookies are credentials of one session:
// they are not kept where answers are kept.
func notReplayed(f h1.Field) bool {
	switch len(f.Name) {
	case 4:
		return f.Is("date")
	case 7:
		return f.Is("trailer")
	case 9:
		return f.Is("ratelimit")
	case 10:
		return f.Is("set-cookie")
	case 14:
		return f.Is(strings.ToLower(noRetryField))
	case 16:
		return f.Is("ratelimit-policy")
	case 17, 21:
		return begins(f.Name, "x-ratelimit-")
	case 18:
		return isMade(f)
	case 20:
		return f.Is(strings.ToLower(replayedField))
	}
	return false
}

// write keeps a piece of the content.
func (k *keyed) write(data []byte) {
	if k == nil || k.over || !idempotency.Keeps(k.answer.Status) {
		return
	}
	if k.over = len(k.answer.Body)+len(data) > k.config.MaxBody; !k.over {
		k.answer.Body = append(k.answer.Body, data...)
	}
}

// complete tells the store that the answer has come: one that is kept, or one that says that the request may be tried again.
// An answer with trailer fields cannot be repeated.
func (k *keyed) complete(trailer []h1.Field) {
	if k == nil || k.settled {
		return
	}
	if k.over = k.over || len(trailer) > 0; k.over {
		k.answer = idempotency.Response{Status: k.answer.Status, Truncated: true}
	}
	k.settle(func(ctx context.Context) error {
		if !idempotency.Keeps(k.answer.Status) {
			return k.store.Fail(ctx, k.key, k.token)
		}
		return k.store.Complete(ctx, k.key, k.token, k.answer, k.config.Retention)
	})
}

// completeRPC is complete for a gRPC answer: whether it is kept, its own status says, which stands in its trailer.
func (k *keyed) completeRPC(a *answer) {
	if k == nil || k.settled {
		return
	}
	if !idempotency.KeepsCode(uint32(a.verdict.code)) {
		k.settle(func(ctx context.Context) error { return k.store.Fail(ctx, k.key, k.token) })
		return
	}
	size := len(k.answer.Body)
	for _, f := range a.trailer() {
		if !notReplayed(f) {
			k.answer.Header = append(k.answer.Header, idempotency.Field{Name: trailerMark + string(f.Name), Value: string(f.Value)})
		}
	}
	for _, f := range k.answer.Header {
		size += len(f.Name) + len(f.Value)
	}
	k.over = k.over || size > k.config.MaxBody
	k.complete(nil)
}

// unanswered is for a try that brought no answer. If it has not reached the service the next one may run at once; else the
// service may still be doing it, or have done it: the key is held until its lease is over.
func (k *keyed) unanswered(reached bool) {
	if k == nil || k.settled {
		return
	}
	if k.settled = reached; !reached {
		k.settle(func(ctx context.Context) error { return k.store.Fail(ctx, k.key, k.token) })
	}
}

// end is for a try that is over. An answer that broke off in its middle has been done, but cannot be repeated.
func (k *keyed) end() {
	if k != nil {
		k.over = true
		k.complete(nil)
		k.stop()
	}
}

// settle tells the store how the try ended. By the end of a lease it is too late.
func (k *keyed) settle(tell func(context.Context) error) {
	k.settled = true
	ctx, cancel := context.WithTimeout(context.Background(), k.config.Lease)
	defer cancel()
	switch err := tell(ctx); {
	case err == nil:
	case errors.Is(err, idempotency.ErrLost):
		k.gate.KeyDecided("lost")
	default:
		k.gate.KeyDecided("away")
		k.proxy.config.Log.Warn("the end of a request with an idempotency key could not be told: a repeat waits for the end of its lease", "gate", k.gate.Name(), "error", err)
	}
}
