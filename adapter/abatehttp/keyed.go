package abatehttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

const (
	keyHeader      = "Idempotency-Key"
	xKeyHeader     = "X-Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
)

// Drain waits until all that is done under idempotency keys in this process, by Handlers and by the servers of abategrpc, has ended and is
// recorded, or ctx is over, whose error it returns then. Call it after http.Server.Shutdown, which does not wait for runs whose client of
// HTTP/2 has left, and before the stores are closed: what is not recorded by the end of the process looks like a crash to the next
// try, which takes over after the lease.
func Drain(ctx context.Context) error { return serving.Drain(ctx) }

// handleKeyed does what the idempotency key of a request says: has the request done, or answers for it. The gate has
// admitted it: what is refused burns no key.
func (x *exchange) handleKeyed(s *sender, store idempotency.Store, c *idempotency.Config, until time.Duration) {
	r := s.request
	key, p, detail := keyOf(r.Header[keyHeader], r.Header[xKeyHeader])
	if p != nil {
		x.refuseKey(p, detail, 0)
		return
	}
	body, p := readBody(r, c.MaxBody)
	if p != nil {
		x.refuseKey(p, "", 0)
		return
	}
	if abate.Now() >= until {
		x.refuseKey(&deadlinePassed, "", 0)
		return
	}
	principal, compared := idempotency.Principal(c.Scope, s.principal())
	k := &keyedTry{sent: key, until: until, Hold: serving.Hold{
		Gate: x.gate, Store: store, Config: c, Ctx: context.WithoutCancel(r.Context()), Key: idempotency.StoreKey(x.gate.Name(), principal, key),
	}}
	begun, err := k.Begin(idempotency.FingerprintOf(r.Method, r.URL.RequestURI(), body).With(compared), until)
	ctx := r.Context()
	switch {
	case err != nil:
		if c.WhenAway != "open" {
			x.refuseKey(&KeyUnavailable, "", KeyWait(x.gate))
			return
		}
	case begun.State != idempotency.Run:
		x.answerKey(&begun)
		return
	case ctx.Err() == context.Canceled: // the client left meanwhile, and nothing has been done
		k.Fail()
		x.refuseKey(nil, "", 0)
		return
	default:
		k.Keep()
		k.record = record{
			out: x.out, before: maps.Clone(x.out.Header()), max: c.MaxAnswer, keeps: c.Keeps,
			mark: func(status int) bool { return k.Mark(status, until) }, grow: k.Grow,
		}
		x.key = k
		// From here on the client may leave: what it asked for is done all the same, and its next try finds the answer.
		ctx = context.WithValue(k.Ctx, tryKey{}, k)
	}
	handed := *x.with(r, ctx, s, until)
	handed.Body = wholeBody{bytes.NewReader(body), r.Body}
	x.handle(&handed)
}

// keyOf reads the key, or says what is wrong with it. It may stand in both headers.
func keyOf(standard, older []string) (key string, p *Problem, detail string) {
	key, err := idempotency.ParseKeys(strings.Join(standard, ", "), strings.Join(older, ", "))
	switch {
	case err != nil:
		return "", &KeyInvalid, err.Error()
	case key == "":
		return "", &KeyMissing, ""
	}
	return key, nil, ""
}

// readBody reads a body of at most max bytes.
func readBody(r *http.Request, max int) ([]byte, *Problem) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > int64(max) {
		return nil, &KeyedBodyTooLarge
	}
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= 64<<10 {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r.Body, int64(max)+1))
	var tooLarge *http.MaxBytesError
	switch {
	case b.Len() > max, errors.As(err, &tooLarge):
		return nil, &KeyedBodyTooLarge
	case err != nil:
		return nil, &KeyedBodyBroken
	}
	return b.Bytes(), nil
}

// wholeBody is a body that has been read, for a handler to read again.
type wholeBody struct {
	*bytes.Reader
	io.Closer
}

// refuseKey refuses an admitted request for its key. It never came to the service, so the gate learns nothing from it.
func (x *exchange) refuseKey(p *Problem, detail string, retryAfter time.Duration) {
	x.settle(abate.Ignored)
	x.ended = true
	switch {
	case x.client.Err() == context.Canceled:
		x.WriteHeader(statusClientLeft)
		return
	case p == &KeyMissing || p == &KeyInvalid:
		x.gate.KeyDecided("missing")
	}
	x.refuse(p, detail, retryAfter)
}

// answerKey answers for a request that is being done, or has been.
func (x *exchange) answerKey(b *idempotency.Begun) {
	switch {
	case b.State == idempotency.Running:
		x.refuseKey(&KeyRunning, "", KeyWait(x.gate))
	case b.State == idempotency.Mismatch:
		x.refuseKey(&KeyMismatch, "", 0)
	case b.Response.EffectUnknown():
		x.refuseKey(&KeyEffectUnknown, "", 0)
	case b.Response.Truncated:
		x.refuseKey(&KeyNotStored, "", 0)
	default:
		x.settle(abate.Ignored)
		x.ended = true
		x.tell(b.Response.Status, false)
		replay(x.out, &b.Response)
	}
}

// keyedTry is a try that holds a key, and what it has answered.
type keyedTry struct {
	serving.Hold
	sent   string        // the key, as the client has sent it
	until  time.Duration // the end of the request's time
	record record
}

// endKey ends the try: with the answer, so that repeats get it, or without if there is none that is for good. What was held
// back of the answer goes to the client only then, and only if the store has confirmed it. A handler that panicked may have had
// its effect before. If it did so behind the head of an answer for good, it has said so: a reverse proxy panics when the service
// behind it breaks off.
func (x *exchange) endKey() {
	k := x.key
	defer k.Shrink()
	if x.ended && x.status == 0 {
		x.beginImplicitly()
	}
	switch {
	case x.ended && k.Config.Keeps(x.status):
		if recorded := k.Complete(k.record.response(), k.until); !recorded || k.record.refused {
			x.unrecorded()
			return
		}
	case !x.ended && k.Config.Keeps(x.status):
		k.Complete(idempotency.Response{Status: x.status, Truncated: true}, abate.Now()) // nobody waits for it
	case !x.ended && k.Config.KeepServerErrors:
		k.Complete(idempotency.Unknown(), abate.Now()) // nobody waits for it
	default:
		k.Fail()
	}
	if x.ended {
		k.record.marked = true
		_ = k.record.flush()
	}
}

// unrecorded refuses to give out an answer that the store has not confirmed. Of one that has begun to go out it has.
func (x *exchange) unrecorded() {
	if x.key.record.opened {
		return
	}
	header := x.out.Header()
	made := header[hops.Made]
	clear(header)
	maps.Copy(header, x.key.record.before)
	if made != nil {
		header[hops.Made] = made
	}
	x.key.record.opened = true // by what follows
	x.refuse(&KeyUnrecorded, "", KeyWait(x.gate))
}
