package abatehttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/idempotency"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
)

// handleKeyed does what the idempotency key of a request says: has the request done, or answers for it. The gate has
// admitted it: what is refused burns no key.
func (x *exchange) handleKeyed(s *sender, store idempotency.Store, c *idempotency.Config, until time.Duration) {
	r := s.request
	key, p, detail := keyOf(r.Header[keyHeader])
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
	k := &keyedTry{x: x, store: store, config: c, ctx: context.WithoutCancel(r.Context()), key: idempotency.StoreKey(x.gate.Name(), s.caller(), key)}
	begun, err := k.begin(idempotency.FingerprintOf(r.Method, r.URL.RequestURI(), body), until)
	ctx := r.Context()
	switch {
	case err != nil:
		x.gate.KeyDecided(unavailable(err))
		if c.WhenAway != "open" {
			x.refuseKey(&KeyUnavailable, "", time.Second+rand.N(2*time.Second))
			return
		}
	case begun.State != idempotency.Run:
		x.answerKey(&begun)
		return
	case ctx.Err() == context.Canceled: // the client left meanwhile, and nothing has been done
		k.done(func(ctx context.Context) error { return store.Fail(ctx, k.key, begun.Token) })
		x.refuseKey(nil, "", 0)
		return
	default:
		k.hold(&begun, key)
		// From here on the client may leave: what it asked for is done all the same, and its next try finds the answer.
		ctx = context.WithValue(k.ctx, tryKey{}, &k.try)
	}
	handed := *x.with(r, ctx, s, until)
	handed.Body = wholeBody{bytes.NewReader(body), r.Body}
	x.handle(&handed)
}

// keyOf reads the key, or says what is wrong with it.
func keyOf(values []string) (key string, p *Problem, detail string) {
	value := strings.Join(values, ", ")
	if value == "" {
		return "", &KeyMissing, ""
	}
	key, err := idempotency.ParseKey(value)
	if err != nil {
		return "", &KeyInvalid, err.Error()
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

// unavailable is what observers call an error of the store.
func unavailable(err error) string {
	if errors.Is(err, idempotency.ErrFull) {
		return "full"
	}
	return "away"
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
	x.gate.KeyDecided(b.State.String())
	switch {
	case b.State == idempotency.Running:
		x.refuseKey(&KeyRunning, "", time.Second)
	case b.State == idempotency.Mismatch:
		x.refuseKey(&KeyMismatch, "", 0)
	case b.Response.Truncated:
		x.refuseKey(&KeyNotStored, "", 0)
	default:
		x.settle(abate.Ignored)
		x.ended = true
		x.tell(b.Response.Status, false)
		replay(x.out, &b.Response)
	}
}

// keyedTry is a try that holds a key.
type keyedTry struct {
	x      *exchange
	store  idempotency.Store
	config *idempotency.Config
	ctx    context.Context // of the request, without its end
	key    string          // in the store
	try    Try
	record record

	mu    sync.Mutex // guards what follows
	lease *time.Timer
	over  bool
}

// begin asks the store, until the deadline of the request or for as long as a lease.
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
	k.record = record{out: k.x.out, before: maps.Clone(k.x.out.Header()), max: k.config.MaxBody}
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

// end ends the try: with the answer, so that repeats get it, or without if there is none that is for good. What was held
// back of the answer goes to the client only then.
func (k *keyedTry) end() {
	k.mu.Lock()
	k.over = true
	k.lease.Stop()
	k.mu.Unlock()
	x := k.x
	if x.ended && x.status == 0 {
		x.beginImplicitly()
	}
	k.done(func(ctx context.Context) error {
		if x.ended && idempotency.Keeps(x.status) {
			return k.store.Complete(ctx, k.key, k.try.Token, k.record.response(), k.config.Retention)
		}
		return k.store.Fail(ctx, k.key, k.try.Token)
	})
	if x.ended {
		_ = k.record.flush()
	}
}
