package abateotel

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// Calls returns an http.RoundTripper with a span for each request that callers make, in which the policy's decisions
// are events. Put it around an abatehttp.Transport. A request that no guard is responsible for has a span too, with the
// name "call". A nil base is http.DefaultTransport.
func (t *Telemetry) Calls(base http.RoundTripper) http.RoundTripper {
	return &calls{traced{t, base}}
}

// Attempts returns an http.RoundTripper with a CLIENT span for each request that is really sent, by the conventions for
// HTTP, and writes it into the request's headers, so that the server's span hangs below it. Put it under an
// abatehttp.Transport, as its Base: the attempt's number, for http.request.resend_count, is in the header that one
// sets, and with OmitHeaders it is known only below Calls. Its own base should be a plain transport: what lies below
// another instrumentation has two spans. A nil base is http.DefaultTransport.
func (t *Telemetry) Attempts(base http.RoundTripper) http.RoundTripper {
	return &attempts{traced{t, base}}
}

// traced is a base transport whose requests have spans.
type traced struct {
	telemetry *Telemetry
	next      http.RoundTripper
}

func (t *traced) base() http.RoundTripper {
	if t.next == nil {
		return http.DefaultTransport
	}
	return t.next
}

// CloseIdleConnections closes the idle connections of the base, if it has any. http.Client.CloseIdleConnections calls
// it.
func (t *traced) CloseIdleConnections() {
	if closer, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// send sends a request in the place of original through the base, and gives the answer the original's name.
func (t *traced) send(req, original *http.Request, span trace.Span) (*http.Response, error) {
	back := false
	defer func() {
		if !back {
			span.SetStatus(codes.Error, "the base transport panicked")
			span.End()
		}
	}()
	resp, err := t.base().RoundTrip(req)
	if resp != nil && resp.Request == req {
		resp.Request = original // without the contexts of the spans
	}
	back = true
	return resp, err
}

type calls struct{ traced }

// RoundTrip sends the request through the base, under a span.
func (c *calls) RoundTrip(req *http.Request) (*http.Response, error) {
	t := c.telemetry
	ctx, span := t.tracer.Start(req.Context(), "call", trace.WithAttributes(t.describe(req)...))
	if !span.IsRecording() { // those below have to know that, or they begin traces of their own
		return c.send(req.WithContext(ctx), req, span)
	}
	d := &decisions{span: span, own: true}
	resp, err := c.send(req.WithContext(abate.WithObserver(ctx, d)), req, span)
	if err != nil && !d.over { // else the guard has said what it was
		failed(span, err)
	}
	if err != nil || resp == nil {
		span.End()
		return resp, err
	}
	span.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
	lastUntilRead(resp, req.Method, span)
	return resp, nil
}

type attempts struct{ traced }

// RoundTrip sends the attempt through the base, under a span.
func (a *attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	t := a.telemetry
	what := append(t.describe(req), semconv.URLFull(redacted(req.URL)))
	if n := resends(req); n > 0 {
		what = append(what, semconv.HTTPRequestResendCount(n))
	}
	ctx, span := t.tracer.Start(req.Context(), t.spanName(req.Method), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(what...))
	resp, err := a.send(t.propagate(ctx, req), req, span)
	if !span.IsRecording() {
		return resp, err
	}
	if err != nil {
		failed(span, err)
	}
	if err != nil || resp == nil {
		span.End()
		return resp, err
	}
	answered(span, resp)
	lastUntilRead(resp, req.Method, span)
	return resp, nil
}

// answered says on the span of an attempt what the answer was. To the conventions a 404 is an error of the client's.
func answered(span trace.Span, resp *http.Response) {
	span.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
	if version := protocolVersion(resp); version != "" {
		span.SetAttributes(semconv.NetworkProtocolVersion(version))
	}
	if resp.StatusCode >= 400 {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(resp.StatusCode)))
		span.SetStatus(codes.Error, "")
	}
}

// attemptCountHeader is what abatehttp sets: the attempt's number, from 1.
const attemptCountHeader = "X-Envoy-Attempt-Count"

// resends returns how often the request has been sent before this attempt, 0 if nobody knows.
func resends(req *http.Request) int {
	number := 0
	if v := req.Header[attemptCountHeader]; len(v) == 1 {
		if n, err := strconv.Atoi(v[0]); err == nil && n > 0 {
			number = n
		}
	}
	if d, ok := core.ObserverOf(req.Context()).(*decisions); ok {
		if sent := int(d.sent.Load()); number == 0 || number > sent { // one that came from further out is not about this call
			number = sent
		}
	}
	return max(number-1, 0)
}

// propagate returns the request that carries the span of ctx. The original is the caller's, and is not changed.
func (t *Telemetry) propagate(ctx context.Context, req *http.Request) *http.Request {
	sent := req.WithContext(ctx)
	t.propagator.Inject(ctx, &carrier{request: sent})
	return sent
}

// carrier writes into a request's header, of which it makes a copy before it does: mostly there is nothing to write.
type carrier struct {
	request *http.Request
	own     bool
}

// Get returns a field of the header.
func (c *carrier) Get(key string) string { return c.request.Header.Get(key) }

// Set sets a field in the copy of the header.
func (c *carrier) Set(key, value string) {
	if !c.own {
		h := make(http.Header, len(c.request.Header)+2)
		maps.Copy(h, c.request.Header)
		c.request.Header, c.own = h, true
	}
	c.request.Header.Set(key, value)
}

// Keys lists the fields of the header.
func (c *carrier) Keys() []string { return slices.Collect(maps.Keys(c.request.Header)) }
