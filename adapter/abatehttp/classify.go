package abatehttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

// Classify judges an attempt.
func (c *call) Classify(resp *http.Response, err error) abate.Outcome {
	if err != nil {
		return c.classifyError(err)
	}
	o := ClassifyStatus(c.guard, resp.StatusCode, resp.Header, c.repeats(false))
	if c.omits { // it was told nothing, so what it counts is not of our call tree
		o.Below.Said, o.Below.Made = false, 0
	}
	o.NoRetry = o.NoRetry || o.Class != abate.Success && refusedInside(resp)
	o.Resent = c.takeResent()
	o.Unfinished = o.Class == abate.Success && resp.Body != http.NoBody &&
		resp.StatusCode != http.StatusSwitchingProtocols && !bodiless(c.request.Method, resp.StatusCode)
	return o
}

func (c *call) classifyError(err error) abate.Outcome {
	unsent, known := err.(unsentError)
	if known {
		err = unsent.error
	}
	o := abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	if !c.callersFault(err) {
		o = ClassifyError(c.guard, err, c.repeats(known))
	}
	o.Unsent, o.Resent = known, c.takeResent()
	return o
}

// takeResent returns the extra attempts that nobody has been told of yet. With hedges they may be another copy's: the
// call pays for all.
func (c *call) takeResent() int {
	if c.resent.Load() == 0 {
		return 0
	}
	return int(c.resent.Swap(0))
}

// ClassifyError judges an attempt of g that brought no answer, because the connection to the server failed with err
// or the time was up. again reports whether the request may be sent again. A failure to connect (a *net.OpError of a
// dial) means that it was not sent. Transport judges so; it is exported for data planes that speak HTTP without
// net/http. What the caller of the request did is not judged here.
func ClassifyError(g *abate.Guard, err error, again bool) abate.Outcome {
	o := abate.Outcome{Class: abate.Failure, NoRetry: !again || distrusted(err) || !g.Retryable(0, err, true), Err: err}
	o.Unsent = dialFailed(err)
	return o
}

// ClassifyStatus judges an attempt of g by its answer's status and header; see ClassifyError. Below 400 it is a
// success. Most of 4xx is the caller's doing: the dependency answered, and well. What the answer says about attempts
// behind it, in Abate-Retries-Made, is in Outcome.Below, whatever the status. A failure that the server asks not to
// be repeated, in whichever header, is final: the callers of this one should not repeat it either. A conflict with a
// try of the same idempotency key that is still running, as a gate reports it, is no answer: a hedge that gets it
// leaves the first copy alone, and a retry waits.
func ClassifyStatus(g *abate.Guard, status int, header http.Header, again bool) (o abate.Outcome) {
	if made := header[hops.Made]; made != nil {
		o.Below = hops.MostMade(made)
	}
	if status < 400 {
		o.Below.Final = false
		return o
	}
	class, passes := hops.JudgeStatus(status)
	running := status == http.StatusConflict && header.Get(reasonHeader) == KeyRunning.Code
	retryable := g.Retryable(status, nil, passes || running)
	switch {
	case running:
		class = abate.Overload
	case class == abate.Success && !retryable:
		o.Below.Final = false
		return o
	case class == abate.Success: // the policy knows better
		class = abate.Failure
	}
	o.Class, o.Neutral = class, running
	o.Below.Final = o.Below.Final || forbidsRetry(header)
	o.NoRetry = !again || !retryable || o.Below.Final
	if class == abate.Overload {
		o.RetryAfter = retryAfter(header)
	}
	o.Err = &StatusError{StatusCode: status, RetryAfter: o.RetryAfter}
	return o
}

// forbidsRetry reports whether the server asked not to be asked again: Envoy's rate limit answers, Finagle's and the
// header that API providers use.
func forbidsRetry(h http.Header) bool {
	return h["X-Envoy-Ratelimited"] != nil || h["Finagle-Http-Nonretryable-Nack"] != nil ||
		strings.EqualFold(h.Get("X-Should-Retry"), "false")
}

// unsendable is how net/http begins the errors about requests that it cannot send. They have no types.
var unsendable = []string{
	"unsupported protocol scheme", "http: no Host in request URL", "http: nil Request.", "net/http: invalid ",
	"http: invalid ", "net/http: can't write control character", "http: ContentLength=", "http: Request.ContentLength=",
	"http: Request.RequestURI", "http2: invalid ", "http2: request header list larger", "http2: request body larger",
}

// callersFault reports whether an error was made by the caller and says nothing about the dependency: a request that
// cannot be sent, a body that could not be read, or a cancellation through the old Request.Cancel.
func (c *call) callersFault(err error) bool {
	if c.content.failed(err) || c.cancelled() {
		return true
	}
	msg := err.Error()
	for _, begin := range unsendable {
		if strings.HasPrefix(msg, begin) {
			return true
		}
	}
	return strings.Contains(msg, ": stopped after ") && strings.HasSuffix(msg, " redirects")
}

// cancelled reports whether the caller closed Request.Cancel. http.Client.Timeout closes it too, when the deadline that
// it sets in the context is over: that is a time limit, not a cancellation.
func (c *call) cancelled() bool {
	//lint:ignore SA1019 callers still use it, and it is how http.Client.Timeout ends a request
	cancel := c.source.Cancel
	select {
	case <-cancel:
		deadline, ok := c.source.Context().Deadline()
		return !ok || time.Now().Before(deadline)
	default:
		return false
	}
}

// distrusted reports whether the connection failed because the server is not who it should be, or does not speak TLS.
// Another attempt finds the same.
func distrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &authority) ||
		errors.As(err, &hostname) || errors.As(err, &invalid)
}
