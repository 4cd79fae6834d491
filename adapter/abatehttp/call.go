package abatehttp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/abate-go/abate"
)

// call is one request on its way through a guard: the abate.Operation. What the first attempt and its answer need lies
// inside, so that a request that succeeds at once costs one allocation for all of it.
type call struct {
	transport *Transport
	guard     *abate.Guard
	request   *http.Request // the caller's, never changed

	content requestBody
	again   bool // another attempt may be sent: the request may be repeated, and its body can be
	hedged  bool // so may two at once
	sent    bool // the first attempt has been handed to the base, and with it the caller's body

	first attempt
	body  responseBody
}

// attempt is what one attempt sends. It lives as long as the base may look at it.
type attempt struct {
	request  http.Request
	watch    watchedContext
	timeLeft [1]string // the value of that header
}

// prepare finds out whether the request may be repeated, and buffers its body if need be. When it fails, nothing has
// been sent and the body is closed.
func (c *call) prepare() error {
	p := c.guard.Describe()
	c.again = repeatable(c.request, p.RetryMethods)
	repeats := c.again && (p.MaxRetries > 0 || p.Hedge.Enabled())
	limit := int64(-1)
	if repeats {
		limit = c.transport.bodyLimit()
	}
	if err := c.content.open(c.request, limit, p.Timeout); err != nil {
		return c.unread(err)
	}
	c.again = c.again && c.content.replayable()
	// Two copies of a request that takes the connection over would be two conversations.
	c.hedged = c.again && repeats && c.request.Header["Upgrade"] == nil
	return nil
}

// unread is the error of a call whose body could not be read. The dependency has no part in it.
func (c *call) unread(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &abate.Error{Guard: c.guard.Name(), Reason: abate.ErrDeadline, Err: err}
	}
	return err
}

// safeMethods may be repeated: RFC 9110 §9.2.1.
var safeMethods = []string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

// repeatable tells whether sending the request twice does no harm. An Idempotency-Key header with no value at all
// counts, as it does in net/http: it says so without sending the header.
func repeatable(req *http.Request, methods []string) bool {
	if len(methods) == 0 {
		methods = safeMethods
	}
	return slices.Contains(methods, req.Method) || req.Method == "" && slices.Contains(methods, http.MethodGet) ||
		keyed(req.Header, "Idempotency-Key") || keyed(req.Header, "X-Idempotency-Key")
}

func keyed(h http.Header, name string) bool {
	v, ok := h[name]
	return ok && (len(v) == 0 || v[0] != "")
}

// Attempt sends the request.
func (c *call) Attempt(ctx context.Context, n int) (*http.Response, error) {
	a := &c.first
	if n > 1 {
		a = new(attempt)
	}
	body, err := c.content.copy(c.request, n)
	if err != nil {
		return nil, abate.Ignore(err)
	}
	watched := a.watch.begin(ctx)
	a.request = *c.request.WithContext(watched)
	a.request.Body = body
	if !c.transport.OmitHeaders {
		a.request.Header = c.transport.header(a, c.request.Header, ctx, n)
	}
	if n == 1 {
		c.sent = true
	}
	resp, err := c.transport.base().RoundTrip(&a.request)
	c.transport.noteHidden(c.guard, a.watch.end())
	return c.received(a, resp, err)
}

// errNoAnswer is what a broken base gets: its contract is one of the two.
var errNoAnswer = errors.New("abatehttp: base transport returned neither a response nor an error")

// received evens out what base transports return.
func (c *call) received(a *attempt, resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, errNoAnswer
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if resp.Request == nil || resp.Request == &a.request {
		resp.Request = c.request
	}
	return resp, nil
}

// Discard makes the connection of an unwanted response free for the next request.
func (c *call) Discard(resp *http.Response) { drain(resp) }

// MayHedge tells whether two copies may be on their way at once.
func (c *call) MayHedge() bool { return c.hedged }

// finish makes the end of the call what a RoundTripper returns.
func (c *call) finish(resp *http.Response, release abate.Release, err error) (*http.Response, error) {
	if !c.sent {
		c.content.close(c.request)
	}
	if err != nil {
		if f := &c.guard.Describe().Fallback; f.Enabled() && c.degradable(err) {
			drain(resp)
			release.Done()
			c.guard.UsedFallback(err)
			return fallbackResponse(f, c.request), nil
		}
	}
	if resp == nil {
		release.Done()
		return nil, err
	}
	c.body.attach(resp, release)
	return resp, nil
}

// degradable tells whether a failed call gets the fallback: not when its caller has left, and not when its caller made
// a mistake that a degraded answer would hide.
func (c *call) degradable(err error) bool {
	return c.request.Context().Err() != context.Canceled && !c.callersFault(err)
}
