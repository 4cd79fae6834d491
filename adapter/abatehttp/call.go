package abatehttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// call is one request on its way through a guard: the core.Operation. What the first attempt and its answer need lies
// inside, so that a request that succeeds at once costs one allocation for all of it.
type call struct {
	transport *Transport
	guard     *abate.Guard
	request   *http.Request // the caller's, never changed
	source    *http.Request // what attempts are made from: request, or a private copy of it

	content  requestBody
	again    bool          // the request may be repeated, if its body can be
	hedged   bool          // so may two copies be on their way at once
	begun    bool          // the first attempt has taken over the caller's body
	omits    bool          // the server is told nothing that is meant for services of one's own
	numbered bool          // somebody above says which attempt this is
	earlier  int           // attempts that somebody above has made before, as far as is known
	sent     time.Duration // when the last of them was, if nobody has said which this is
	resent   atomic.Int32  // extra attempts that the base made by itself, and that no outcome has told of yet

	first attempt
	body  responseBody
}

// attempt is what one attempt sends. It lives as long as the base may look at it.
type attempt struct {
	request  http.Request
	watch    watchedContext
	timeLeft [1]string // the value of that header
}

// prepare finds out how often the request may be sent.
func (c *call) prepare() {
	p := c.guard.Describe()
	c.source = c.request
	c.again = repeatable(c.request, p.RetryMethods)
	c.lookBack()
	c.omits = c.transport.OmitHeaders || p.InternalHeaders == core.OmitInternal || redirected(c.request)
	hold := int64(-1)
	if c.again && (p.MaxRetries > 0 || p.Hedge.Enabled()) {
		hold = c.transport.bodyLimit()
	}
	c.content.open(c.request, hold)
	// Two copies of a request that takes the connection over would be two conversations. The values of a trailer come
	// with the reading of the caller's body, too late for the other copy.
	c.hedged = c.again && p.Hedge.Enabled() && c.content.replayable() && c.request.Header["Upgrade"] == nil &&
		c.request.Trailer == nil
	if c.hedged {
		// A hedge that has lost may still be on its way when the caller, who has the answer, uses the request again.
		c.source = c.request.Clone(c.request.Context())
	}
}

// lookBack finds out whether somebody above has made this call before.
func (c *call) lookBack() {
	number, said := numberOf(c.request)
	c.earlier, c.numbered = number-1, said
	if c.numbered || c.transport.failed.Len() == 0 {
		return
	}
	all, n := signs(c.guard, c.request)
	if sent, ok := c.transport.failed.Take(core.Now(), all[:n]); ok {
		c.earlier, c.sent = 1, sent
	}
}

// Repeated tells core.Run whether somebody above has made this call before.
func (c *call) Repeated() bool { return c.earlier > 0 }

// remember notes a call that has failed: who made it may make it again. What the caller has broken off or got wrong is
// no such failure.
func (c *call) remember(resp *http.Response, err error) {
	if c.numbered {
		return
	}
	failed := err == nil && hops.StatusFailed(resp.StatusCode) ||
		err != nil && c.request.Context().Err() != context.Canceled && !c.callersFault(err)
	if c.begun {
		c.sent = core.Now()
	}
	switch took := c.earlier > 0; {
	case failed && (c.begun || took): // else nothing has been sent for it so far
		all, n := signs(c.guard, c.request)
		c.transport.failed.Add(c.sent, all[:n], took, c.request.Header)
	case took:
		all, n := signs(c.guard, c.request)
		c.transport.failed.Done(all[:n])
	}
}

// context is the caller's, made to end when the caller closes Request.Cancel: net/http looks at that during an attempt,
// and nobody would during the waits. In a request with a deadline the waits end with that: there it is
// http.Client.Timeout that sets Cancel, for every request, and a goroutine each would be dear.
func (c *call) context() context.Context {
	ctx := c.request.Context()
	//lint:ignore SA1019 callers still use it
	cancel := c.request.Cancel
	if cancel == nil {
		return ctx
	}
	if _, ok := ctx.Deadline(); ok {
		return ctx
	}
	ctx, end := context.WithCancel(ctx)
	c.body.end = end
	go func() {
		select {
		case <-cancel:
			end()
		case <-ctx.Done():
		}
	}()
	return ctx
}

// bodyError is the error of a call whose body could not be read. The dependency has no part in it.
func (c *call) bodyError(err error, n int) error {
	if err == context.DeadlineExceeded {
		err = &abate.Error{Guard: c.guard.Name(), Reason: abate.ErrDeadline, Attempts: n, Err: err}
	}
	return abate.Ignore(err)
}

// safeMethods may be repeated: RFC 9110 §9.2.1.
var safeMethods = []string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

// repeatable reports whether sending the request twice does no harm. An Idempotency-Key header with no value at all
// counts, as it does in net/http: it says so without sending the header.
func repeatable(req *http.Request, methods []string) bool {
	return Repeatable(req.Method, keyed(req.Header, "Idempotency-Key") || keyed(req.Header, "X-Idempotency-Key"), methods)
}

// Repeatable reports whether sending a request twice does no harm: it is keyed (it has an Idempotency-Key), or its
// method is one of methods, a policy's RetryMethods. None means the safe methods. An empty method is GET.
func Repeatable(method string, keyed bool, methods []string) bool {
	if len(methods) == 0 {
		methods = safeMethods
	}
	return keyed || slices.Contains(methods, method) || method == "" && slices.Contains(methods, http.MethodGet)
}

func keyed(h http.Header, name string) bool {
	v, ok := h[name]
	return ok && (len(v) == 0 || v[0] != "")
}

// Attempt sends the request.
func (c *call) Attempt(ctx context.Context, s core.Sending) (*http.Response, error) {
	n := s.Number
	a := &c.first
	if n == 1 {
		c.begun = true
	} else {
		a = new(attempt)
	}
	var u *upload
	if c.Hands() {
		u, ctx = follow(ctx, s)
	}
	body, err := c.content.copy(ctx, c.source, n, u)
	if err != nil {
		u.end(err)
		return nil, c.bodyError(err, n)
	}
	u.begin(ctx, body, c.content.buffered != nil)
	watched := a.watch.begin(ctx)
	a.request = *c.source.WithContext(watched)
	a.request.Body = body
	if c.omits {
		a.request.Header = withoutInternal(c.source.Header)
	} else {
		a.request.Header = c.header(a, ctx, s, n == 1 && c.content.hold > 0)
	}
	// that one has retries of its own
	if _, guarded := c.transport.Base.(*Transport); c.transport.NoHiddenRetries && !guarded {
		sendOnce(&a.request)
	}
	if u != nil && a.request.GetBody != nil {
		a.request.GetBody = c.content.rewinds(c.source, u)
	}
	resp, waited, err := c.roundTrip(&a.request, u)
	if waited && err != nil && ctx.Err() != nil && !u.late.Load() { // it ended while the caller was waited for
		err = c.content.late(ctx.Err())
		err = c.bodyError(err, n)
	}
	hidden, unsent := a.watch.end(err)
	if hidden > 0 {
		c.transport.noteHidden(c.guard, hidden)
		c.resent.Add(int32(hidden * (1 + s.Allowance.Left))) // the callee may have used what it was told each time
	}
	if unsent {
		err = unsentError{err}
	}
	return c.received(a, resp, err)
}

// roundTrip has the base send r, whose body u follows, and reports whether the caller was waited for at the end.
func (c *call) roundTrip(r *http.Request, u *upload) (resp *http.Response, waited bool, err error) {
	err = errNoAnswer // if it panics
	defer func() { waited = u.end(err) }()
	resp, err = c.transport.base().RoundTrip(r)
	return resp, false, err
}

// unsentError tells Classify that a request has not reached the server. It never leaves the package.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

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

// repeats reports whether another attempt may be sent. One that has certainly not reached the server has done nothing
// there, so what follows it is a first request, whatever its method.
func (c *call) repeats(unsent bool) bool {
	return c.again && c.content.replayable() || unsent && c.content.untouched()
}

// MayHedge reports whether two copies may be on their way at once.
func (c *call) MayHedge() bool { return c.hedged }

// Hands reports whether the body may take its time to come: see upload.
func (c *call) Hands() bool { return c.content.comes(c.request) }

// finish makes the end of the call what a RoundTripper returns.
func (c *call) finish(resp *http.Response, release core.Release, err error) (*http.Response, error) {
	if !c.begun && c.request.Body != nil {
		c.request.Body.Close()
	}
	c.content.finish()
	if err != nil {
		if f := &c.guard.Describe().Fallback; f.Enabled() && c.degradable(err) {
			drain(resp)
			c.body.over(release)
			c.guard.UsedFallback(err)
			return fallbackResponse(f, c.request), nil
		}
	}
	if resp == nil {
		c.body.over(release)
		if unsent, ok := err.(unsentError); ok { // the caller has left, and nobody has judged it
			err = unsent.error
		}
		return nil, err
	}
	_, c.body.refused = err.(*abate.Error)
	c.body.attach(c, resp, release, bodiless(c.request.Method, resp.StatusCode))
	return resp, nil
}

// bodiless reports whether the answer to a request has no body whatever its header says: RFC 9110 §6.4.1.
func bodiless(method string, status int) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
}

// degradable reports whether a failed call gets the fallback: not when its caller has left, and not when its caller
// made a mistake that a degraded answer would hide.
func (c *call) degradable(err error) bool {
	return c.request.Context().Err() != context.Canceled && !c.callersFault(err)
}
