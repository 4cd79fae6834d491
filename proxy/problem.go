package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/proxy/h1"
)

// problem is an answer of the proxy's own: RFC 9457.
type problem struct {
	Type    string `json:"type,omitempty"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Service string `json:"service,omitempty"`
	Reason  string `json:"reason"`
	// Code is the same under the name that the answers of gates give it.
	Code string `json:"code"`
	// Cause is why the last attempt brought no answer: "timeout" or "connection".
	Cause    string `json:"cause,omitempty"`
	Attempts int    `json:"attempts"`
	// UpstreamStatus is what the service answered to the last attempt, if it did.
	UpstreamStatus int `json:"upstreamStatus,omitempty"`
	// Circuit is the state of a circuit breaker that refused: open, half-open or ramp-up.
	Circuit    string `json:"circuit,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds
	// wait is RetryAfter as gRPC says it, in milliseconds.
	wait time.Duration
}

// The fields of an answer that tell a caller what happened.
const (
	// reasonField says why the proxy and not the service decided the answer.
	reasonField = "Abate-Reason"
	// noRetryField is how API providers tell clients not to try again at once: the proxy has done what could be done.
	noRetryField = "X-Should-Retry"
)

// refusals are the answers to what the policy decided.
var refusals = []struct {
	err    error
	slug   string
	status int
}{
	{abate.ErrCircuitOpen, "circuit-open", http.StatusServiceUnavailable},
	{abate.ErrBudgetExhausted, "budget-exhausted", http.StatusServiceUnavailable},
	{abate.ErrBulkheadFull, "bulkhead-full", http.StatusServiceUnavailable},
	{abate.ErrOverloaded, "overloaded", http.StatusServiceUnavailable},
	{abate.ErrDeadline, "deadline", http.StatusGatewayTimeout},
	{abate.ErrAttemptsExhausted, "attempts-exhausted", http.StatusBadGateway},
	{abate.ErrTreeExhausted, "tree-exhausted", http.StatusBadGateway},
}

// exhaustedReason is the reason of an answer when the proxy itself has run out of something: the service was not asked.
const exhaustedReason = "proxy-exhausted"

// leftReason stands in the access log when the client did not wait.
const leftReason = "the client left"

// answer gives the client what came of the call, which ended with err.
func (x *exchange) answer(err error) {
	switch {
	case x.delivered:
		return
	case err == nil:
		x.pass(x.got, nil)
		return
	}
	var policy *abate.Error
	decided := errors.As(err, &policy)
	x.spent = decided && policy.Reason == abate.ErrTreeExhausted
	switch {
	case (x.client.gone() || errors.Is(err, errGone)) && (x.got == nil || x.keyInUse() == nil): // the client's next try gets what is kept
		x.reason = leftReason
		x.client.abort()
	case x.body.failed() != nil:
		x.badBody(x.body.failed())
	case x.degrade(err):
	case x.got != nil && decided: // whatever the policy decided about another attempt, this one was answered
		x.reason, _ = refusal(policy.Reason)
		extra := h1.AppendField(nil, reasonField, x.reason)
		if x.lastWord(x.reason) {
			x.got.resp.Fields = withoutShouldRetry(x.got.resp.Fields)
			extra = x.sayNoRetry(extra)
		}
		x.pass(x.got, extra)
	case x.got != nil:
		x.pass(x.got, nil)
	case decided:
		x.refuse(policy)
	default:
		x.unreachable(err)
	}
}

// withoutShouldRetry takes that field out, in place: what the proxy knows of the call is the later word.
func withoutShouldRetry(fields []h1.Field) []h1.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !f.Is("x-should-retry") {
			kept = append(kept, f)
		}
	}
	return kept
}

// refusal is the short name of a reason, and the status of the answer when there is none of the service.
func refusal(reason error) (slug string, status int) {
	for _, r := range refusals {
		if r.err == reason {
			return r.slug, r.status
		}
	}
	return "failed", http.StatusBadGateway
}

// refuse answers a call that the policy ended.
func (x *exchange) refuse(e *abate.Error) {
	p := problem{Detail: x.detail(e), Attempts: e.Attempts}
	p.Reason, p.Status = refusal(e.Reason)
	if p.Cause = cause(e.Err); e.Reason == abate.ErrCircuitOpen {
		p.Circuit = x.route.Guard.State().Breaker.State.String()
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
	x.problem(p)
}

// detail says how the call ended. The addresses behind a gateway are not for its clients: there the attempt's error is left
// to the access log.
func (x *exchange) detail(e *abate.Error) string {
	if !x.discreet() {
		return e.Error()
	}
	public := *e
	public.Err, public.Opened = nil, ""
	return public.Error()
}

// discreet tells that the clients are strangers, who need not know the addresses behind the proxy.
func (x *exchange) discreet() bool { return x.plane.config.Gateway || x.in != nil }

// retryAfter is when to come back, also in whole seconds: when an open breaker lets probes through, and not before; else in a second or a
// little more. Clients that are told so come one after the other.
func (x *exchange) retryAfter(reason error) (wait time.Duration, seconds int) {
	wait = x.route.Guard.ComeBack(reason)
	if reason == abate.ErrCircuitOpen {
		return wait, int(abatehttp.WholeSeconds(wait))
	}
	return wait, int(wait / time.Second)
}

// unreachable answers a call whose only attempt failed and was not worth another.
func (x *exchange) unreachable(err error) {
	p := problem{Status: http.StatusBadGateway, Reason: "upstream-error", Attempts: x.sent, Cause: cause(err)}
	if p.Detail = x.service() + ": " + err.Error(); x.discreet() && err != errNoUpstreams {
		p.Detail = x.service() + ": no answer (" + p.Cause + ")"
	}
	switch {
	case err == errNoUpstreams:
		p.Reason, p.Cause = "no-upstreams", ""
	case exhausted.Own(err):
		p.Status, p.Reason, p.Cause = http.StatusServiceUnavailable, exhaustedReason, ""
		p.Type = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.wait, p.RetryAfter = x.retryAfter(nil)
		if p.Detail = x.service() + ": the proxy has run out of descriptors, ports or memory"; !x.discreet() {
			p.Detail += ": " + err.Error()
		}
	case timedOut(err):
		p.Status, p.Reason = http.StatusGatewayTimeout, "upstream-timeout"
		p.Detail += fmt.Sprintf(", given up after %v", (abate.Now() - x.began).Round(time.Millisecond))
	}
	x.problem(p)
}

// cause is the kind of an attempt's error, "" for an answer.
func cause(err error) string {
	var status *abatehttp.StatusError
	switch {
	case err == nil || errors.As(err, &status):
		return ""
	case timedOut(err):
		return "timeout"
	}
	return "connection"
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// badBody answers a request whose body did not come.
func (x *exchange) badBody(err error) {
	var bad *h1.Error
	if !errors.As(err, &bad) {
		x.reason = "the client broke off its request: " + err.Error()
		x.client.abort()
		return
	}
	x.problem(problem{Status: bad.Status, Reason: "bad-request", Detail: bad.Problem, Attempts: x.sent})
}

// refuseUnrouted answers a request that belongs to no service.
func (x *exchange) refuseUnrouted() {
	names := x.plane.policies.Names()
	more := ""
	if len(names) > 10 {
		names, more = names[:10], ", ..."
	}
	if listen := x.client.origin().door.name; listen != "" {
		x.problem(problem{Status: http.StatusNotFound, Reason: "no-route", Detail: "nothing is served here for this host and path"})
		return
	}
	x.problem(problem{Status: http.StatusNotFound, Reason: "no-route", Detail: fmt.Sprintf(
		"no service of the policy file has a route or upstream for host %.200q and path %.200q; services: %s",
		x.req.Host, x.req.Path, strings.Join(names, ", ")+more)})
}

// refuseUnread answers a request that could not be read.
func (x *exchange) refuseUnread(bad *h1.Error) {
	x.route, x.fleet, x.in, x.sent, x.bytes, x.began = route{}, nil, nil, 0, 0, abate.Now()
	x.req, x.called, x.rpc = h1.Request{Minor: 1, Fields: x.req.Fields[:0]}, called{}, false
	x.problem(problem{Status: bad.Status, Reason: "bad-request", Detail: bad.Problem})
	x.log(nil)
}

// problem gives the client an answer of the proxy's own.
func (x *exchange) problem(p problem) {
	if p.Title = http.StatusText(p.Status); x.route.Guard != nil {
		p.Service = x.service()
	}
	never := p.Status >= 500 && x.in == nil && p.Reason != exhaustedReason && x.lastWord(p.Reason) // a gate says so only when too many try again
	if x.rpc {
		x.problemRPC(&p, never)
		return
	}
	x.reason, p.Code = p.Reason, p.Reason
	body, _ := json.Marshal(p) // strings and numbers: it cannot fail
	body = append(body, '\n')
	extra := h1.AppendField(nil, "Content-Type", "application/problem+json")
	extra = h1.AppendField(extra, "Cache-Control", "no-store")
	extra = h1.AppendField(extra, reasonField, p.Reason)
	if never {
		extra = x.sayNoRetry(extra)
	}
	if p.RetryAfter > 0 {
		extra = h1.AppendField(extra, "Retry-After", strconv.Itoa(p.RetryAfter))
	}
	x.own(p.Status, extra, body)
}

// sayNoRetry adds the field that tells a client not to try again: the proxy has done what could be done.
func (x *exchange) sayNoRetry(dst []byte) []byte {
	if x.rpc {
		return pushBack(dst, hops.Pushback{Never: true})
	}
	return h1.AppendField(dst, noRetryField, "false")
}

// own gives the client an answer from memory.
func (x *exchange) own(status int, extra, body []byte) {
	x.respond(head{status: status, length: int64(len(body)), extra: appendDate(extra)})
	x.bytes = int64(len(body))
	x.client.write(body)
	x.client.end(nil)
}

// appendDate writes when an answer of the proxy's own was made.
func appendDate(dst []byte) []byte {
	dst = time.Now().UTC().AppendFormat(append(dst, "Date: "...), http.TimeFormat)
	return append(dst, "\r\n"...)
}
