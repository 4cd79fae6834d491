package abatehttp

import (
	"net/http"
	"sync/atomic"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/repeats"
)

// Transport is an http.RoundTripper that sends every request under a guard. Put it into any http.Client. Set the fields
// before the first request; after that a Transport is safe for concurrent use, and must not be copied.
//
// A call that ends on an answer returns that answer with a nil error, also when it is the last 503 of several, as users
// of http.Client expect. A call that ends without one returns the last attempt's error or an *abate.Error, which
// http.Client wraps in a *url.Error; errors.Is and errors.As see through it.
type Transport struct {
	// Base makes the attempts. Nil means http.DefaultTransport.
	Base http.RoundTripper

	// Guard is the guard of all requests. Nil means that requests pass through unguarded.
	Guard *abate.Guard

	// Select, if set, chooses the guard of each request instead. It must be quick and safe for concurrent use, must not
	// change the request and must not read its body. A request for which it returns nil passes through unguarded,
	// without headers that begin with Abate- or X-Envoy-.
	Select func(*http.Request) *abate.Guard

	// MaxBufferedBody is the size, in bytes, up to which a request body is held in memory so that it can be sent
	// again. It matters only for bodies without GetBody (http.NewRequest sets that for bytes and strings), under a
	// policy that retries or hedges, in requests that may be repeated. A longer body is sent once, as a stream. Zero
	// means 64 KiB; a negative number means never to hold a body.
	//
	// Such a body is read by the first attempt, within its permits and the time of the call: a call that is refused does
	// not read it, and one whose body fails or comes too late ends without a retry and is not held against the server.
	// No hedge is sent while it is being read. When the time is up, the body is closed; if its Read does not end by that,
	// as under io.NopCloser, the goroutine that reads it stays until it does.
	//
	// While the Read of any body lasts, the time is the caller's: the time limit of the attempt, its latency and the
	// circuit breaker's clock begin anew with each piece. What the server does not take is the server's time.
	MaxBufferedBody int64

	// OmitHeaders leaves out the request headers that tell the server the attempt's number, the time left for it and
	// what is left of the call tree's retries, takes off all others that begin with Abate- or X-Envoy-, and does not
	// look at what the answers count. Set it for servers of other companies. A policy's InternalHeaders does the same
	// for one guard, and a request that http.Client sends because of a redirect to another host is sent so anyway.
	OmitHeaders bool

	// NoHiddenRetries keeps net/http from sending a request again by itself when a kept-alive connection ends with the
	// request on it. It does that with GET, HEAD, OPTIONS, TRACE and with whatever has an Idempotency-Key, although the
	// server may have done the request; see HiddenRetries. Set it where a server must never see more attempts than the
	// policy and the call tree allow. The price: an idle connection that the server closes at just the wrong moment is
	// a failed attempt of the policy's, and each request costs four more allocations. Over HTTP/2, which has no such
	// retries, a request without a body then ends in an empty DATA frame. Requests of other methods without a body, but
	// with a key, are not covered. Above another Transport it does nothing: set it there.
	NoHiddenRetries bool

	hidden     atomic.Uint64
	timeouts   millisCache
	allowances allowanceCache
	failed     repeats.Memory[sign]
}

// NewTransport returns a Transport that sends requests through base under g. A nil base is http.DefaultTransport.
func NewTransport(base http.RoundTripper, g *abate.Guard) *Transport {
	return &Transport{Base: base, Guard: g}
}

// unguarded is the policy of a guard that nobody has made: a request under it goes straight to Base, as under none.
var unguarded = (*abate.Guard)(nil).Describe()

// RoundTrip sends req under its guard: as often as the policy allows, and not at all when it must not be sent. It never
// changes req, and always closes its body. Under a policy that hedges, copies are made from a copy of req, since one
// that lost may still be on its way when RoundTrip returns; only GetBody may be called as late as that.
//
// The old Request.Cancel ends attempts, and in requests without a deadline the waits between them too, at the price of
// a goroutine until the answer's body is closed. In a request with a deadline, waits end with that and with the context
// only.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.Guard
	if t.Select != nil {
		g = t.Select(req)
	}
	if g == nil || g.Describe() == unguarded {
		if t.Select != nil && internalIn(req.Header) {
			req = req.WithContext(req.Context()) // a copy
			req.Header = withoutInternal(req.Header)
		}
		return t.base().RoundTrip(req)
	}
	c := &call{transport: t, guard: g, request: req}
	c.prepare()
	resp, release, err := core.Run[*http.Response](c.context(), g, c)
	resp, err = c.finish(resp, release, err)
	c.remember(resp, err)
	return resp, err
}

// HiddenRetries returns how often Base sent a request again by itself. An http.Transport does that, unasked, when a
// kept-alive connection turns out to be dead: attempts that no policy has allowed, unless NoHiddenRetries is set. They
// are few, one for each connection that died; they are drawn from the guard's retry budget and from what the call tree
// has left, and told to its observer.
func (t *Transport) HiddenRetries() uint64 { return t.hidden.Load() }

// CloseIdleConnections closes the idle connections of Base, if it has any. http.Client.CloseIdleConnections calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// bodyLimit is MaxBufferedBody with its default.
func (t *Transport) bodyLimit() int64 {
	if t.MaxBufferedBody == 0 {
		return 64 << 10
	}
	return t.MaxBufferedBody
}
