package abatehttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
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

// Drain waits until all that is done under idempotency keys in this process, by Handlers and by the servers of
// abategrpc, has ended and is recorded, or ctx is over, whose error it returns then. Call it after
// http.Server.Shutdown, which does not wait for runs whose client of HTTP/2 has left, and before the stores are
// closed: what is not recorded by the end of the process looks like a crash to the next try, which takes over after
// the lease.
func Drain(ctx context.Context) error { return serving.Drain(ctx) }

// Try is one try of a request that has an idempotency key.
type Try = idempotency.Try

// TryOf returns the try under which a Handler has the request done that ctx belongs to; false if it has no key.
func TryOf(ctx context.Context) (Try, bool) { return serving.TryOf(ctx) }

// handleKeyed does what the idempotency key of a request says: has the request done, or answers for it. The gate has
// admitted it: what is refused burns no key.
func (x *exchange) handleKeyed(s *serving.Sender, store idempotency.Store, c *idempotency.Config) {
	r := x.request
	key, p, detail := serving.ReadKey(r.Header[keyHeader], r.Header[xKeyHeader])
	if p != nil {
		x.refuseKey(p, detail)
		return
	}
	body, p := readBody(r, c.MaxBody)
	if p != nil {
		x.refuseKey(p, "")
		return
	}
	if now, config, on := x.Gate.Idempotency(); on { // a slow body may have come across an Update
		store, c = now, config
	}
	k := &keyedTry{Hold: &serving.Hold{Store: store, Config: c}}
	ctx := r.Context()
	switch claim := x.Claim(ctx, k.Hold, s, key, idempotency.FingerprintOf(r.Method, r.URL.RequestURI(), body)); {
	case claim.Refused != nil:
		x.refuseKey(claim.Refused, "")
		return
	case claim.Answer != nil:
		x.settle(abate.Ignored)
		x.ended = true
		x.tell(claim.Answer.Status, false)
		replay(x.out, claim.Answer)
		return
	case claim.Held:
		k.record = record{
			out: x.out, send: x.send, before: maps.Clone(x.out.Header()), max: c.MaxAnswer,
			mark: func(status int) bool { return k.Mark(status, x.Until) }, grow: k.Grow, shrink: k.Shrink,
			bodyless: r.Method == http.MethodHead,
		}
		x.key = k
		under, cancel := context.WithCancel(k.Under())
		defer cancel()
		k.record.streams = func() { k.record.unwatch = k.watch(r.Context(), under, cancel) }
		ctx = under
	}
	handed := *x.with(r, ctx, s)
	handed.Body = wholeBody{bytes.NewReader(body), r.Body}
	x.handle(&handed)
}

// readBody reads a body of at most max bytes.
func readBody(r *http.Request, max int) ([]byte, *serving.Problem) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > int64(max) {
		return nil, &serving.KeyedBodyTooLarge
	}
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= 64<<10 {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r.Body, int64(max)+1))
	var tooLarge *http.MaxBytesError
	switch {
	case b.Len() > max, errors.As(err, &tooLarge):
		return nil, &serving.KeyedBodyTooLarge
	case err != nil:
		return nil, &serving.KeyedBodyBroken
	}
	return b.Bytes(), nil
}

// wholeBody is a body that has been read, for a handler to read again.
type wholeBody struct {
	*bytes.Reader
	io.Closer
}

func (x *exchange) refuseKey(p *serving.Problem, detail string) {
	x.RefuseKey(x.request.Context(), p)
	x.ended = true
	if x.request.Context().Err() == context.Canceled {
		x.WriteHeader(serving.StatusClientLeft)
		return
	}
	x.refuse(x.out, p, detail)
}

// keyedTry is a try that holds a key, and what it has answered. The hold may outlive it, and must not keep the answer.
type keyedTry struct {
	*serving.Hold
	record record
}

// watch bounds a stream whose client leaves: it may last for ever, and nobody but a repeat wants the rest. It has one
// lease for that, then its context ends, and nothing can be written any more.
func (k *keyedTry) watch(client, under context.Context, cancel func()) (stop func() bool) {
	lease, gone := k.Config.Lease, &k.record.gone
	return context.AfterFunc(client, func() {
		timer := time.NewTimer(lease)
		defer timer.Stop()
		select {
		case <-under.Done(): // it has ended
		case <-timer.C:
			gone.Store(true)
			cancel()
		}
	})
}

// endKey ends the try: with the answer, so that repeats get it, or without if there is none that is for good. What
// was held back of the answer goes to the client only then, and only if the store has confirmed it.
func (x *exchange) endKey() {
	k := x.key
	defer k.Shrink()
	if k.record.unwatch != nil {
		k.record.unwatch()
	}
	if x.ended {
		x.beginImplicitly()
	}
	switch kept := k.record.kept; {
	case !x.ended:
		k.Panicked(x.status, kept)
		return
	case !kept:
		k.Fail()
	case !k.Complete(k.record.response(), x.Until) || k.record.refused:
		x.unrecorded()
		return
	}
	k.record.marked = true
	_ = k.record.flush()
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
	x.refuse(x.out, &serving.KeyUnrecorded, "")
}
