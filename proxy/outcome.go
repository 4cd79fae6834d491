package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/proxy/h1"
)

// answer gives the client what came of the call, which ended with err.
func (x *exchange) answer(err error) {
	switch {
	case x.call.delivered:
		return
	case err == nil:
		x.transfer.pass(x.call.got, nil)
		return
	}
	var policy *abate.Error
	decided := errors.As(err, &policy)
	x.reply.spent = decided && policy.Reason == abate.ErrTreeExhausted
	switch {
	case (x.req.client.gone() || errors.Is(err, errGone)) &&
		(x.call.got == nil || x.req.keyInUse() == nil): // the client's next try gets what is kept
		x.reply.reason = leftReason
		x.req.client.abort()
	case x.body.failed() != nil:
		x.badBody(x.body.failed())
	case x.transfer.degrade(err):
	case x.call.got != nil && decided: // whatever the policy decided about another attempt, this one was answered
		x.reply.reason, _ = refusal(policy.Reason)
		extra := h1.AppendField(nil, reasonField, x.reply.reason)
		if x.reply.lastWord(x.reply.reason) {
			x.call.got.resp.Fields = without(x.call.got.resp.Fields, "x-should-retry")
			extra = x.reply.sayNoRetry(extra)
		}
		x.transfer.pass(x.call.got, extra)
	case x.call.got != nil:
		x.transfer.pass(x.call.got, nil)
	case decided:
		x.refuse(policy)
	default:
		x.unreachable(err)
	}
}

// refuse answers a call that the policy ended.
func (x *exchange) refuse(e *abate.Error) {
	p := problem{Detail: x.detail(e), Attempts: e.Attempts}
	p.Reason, p.Status = refusal(e.Reason)
	if p.Cause = cause(e.Err); e.Reason == abate.ErrCircuitOpen {
		p.Circuit = x.req.route.Guard.State().Breaker.State.String()
	}
	if timedOut(e.Err) && p.Status == http.StatusBadGateway {
		p.Status = http.StatusGatewayTimeout
	}
	if last := (*abatehttp.StatusError)(nil); errors.As(e.Err, &last) {
		p.UpstreamStatus = last.StatusCode
	}
	if p.Status == http.StatusServiceUnavailable {
		p.Type = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.wait, p.RetryAfter = x.retryAfter(e.Reason)
	}
	x.reply.problem(p)
}

// detail says how the call ended. The addresses behind a gateway are not for its clients: there the attempt's error
// is left to the access log.
func (x *exchange) detail(e *abate.Error) string {
	if !x.req.discreet() {
		return e.Error()
	}
	public := *e
	public.Err, public.Opened = nil, ""
	return public.Error()
}

// retryAfter is when to come back, also in whole seconds: when an open breaker lets probes through, and not before;
// else in a second or a little more. Clients that are told so come one after the other.
func (x *exchange) retryAfter(reason error) (wait time.Duration, seconds int) {
	wait = x.req.route.Guard.ComeBack(reason)
	if reason == abate.ErrCircuitOpen {
		return wait, int(abatehttp.WholeSeconds(wait))
	}
	return wait, int(wait / time.Second)
}

// unreachable answers a call whose only attempt failed and was not worth another.
func (x *exchange) unreachable(err error) {
	p := problem{Status: http.StatusBadGateway, Reason: "upstream-error", Attempts: x.call.tries.sent, Cause: cause(err)}
	if p.Detail = x.req.service() + ": " + err.Error(); x.req.discreet() && err != errNoUpstreams {
		p.Detail = x.req.service() + ": no answer (" + p.Cause + ")"
	}
	var denied *deniedError
	switch {
	case errors.As(err, &denied):
		p.Status, p.Reason, p.Cause = http.StatusForbidden, deniedReason, ""
		if p.Detail = denied.Error(); x.req.discreet() {
			p.Detail = "the policy does not let requests go there"
		}
	case err == errNoUpstreams:
		p.Reason, p.Cause = "no-upstreams", ""
	case errors.As(err, new(*noEndpointsError)):
		p.Status, p.Reason, p.Cause = http.StatusServiceUnavailable, "no-endpoints", ""
		p.Type = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.wait, p.RetryAfter = x.retryAfter(nil)
		if x.req.discreet() {
			p.Detail = x.req.service() + ": it has no endpoints at the moment"
		}
	case exhausted.Own(err):
		p.Status, p.Reason, p.Cause = http.StatusServiceUnavailable, exhaustedReason, ""
		p.Type = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.wait, p.RetryAfter = x.retryAfter(nil)
		if p.Detail = x.req.service() + ": the proxy has run out of descriptors, ports or memory"; !x.req.discreet() {
			p.Detail += ": " + err.Error()
		}
	case timedOut(err):
		p.Status, p.Reason = http.StatusGatewayTimeout, "upstream-timeout"
		p.Detail += fmt.Sprintf(", given up after %v", (core.Now() - x.req.began).Round(time.Millisecond))
	}
	x.reply.problem(p)
}

// badBody answers a request whose body did not come.
func (x *exchange) badBody(err error) {
	var bad *h1.Error
	if !errors.As(err, &bad) {
		x.reply.reason = "the client broke off its request: " + err.Error()
		x.req.client.abort()
		return
	}
	x.reply.problem(problem{Status: bad.Status, Reason: "bad-request", Detail: bad.Problem, Attempts: x.call.tries.sent})
}

// refuseUnread answers a request that could not be read.
func (x *exchange) refuseUnread(bad *h1.Error) {
	x.req.Request, x.req.route = h1.Request{Minor: 1, Fields: x.req.Fields[:0]}, route{}
	x.renew()
	x.reply.problem(problem{Status: bad.Status, Reason: "bad-request", Detail: bad.Problem})
	x.log(nil)
}
