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

// refusals are the answers to what the policy decided.
var refusals = []struct {
	err    error
	slug   string
	status int
}{
	{abate.ErrCircuitOpen, "circuit-open", http.StatusServiceUnavailable},
	{abate.ErrBudgetExhausted, "budget-exhausted", http.StatusServiceUnavailable},
	{abate.ErrBulkheadFull, "bulkhead-full", http.StatusServiceUnavailable},
	{abate.ErrRateLimited, "rate-limited", http.StatusServiceUnavailable},
	{abate.ErrThrottled, "throttled", http.StatusServiceUnavailable},
	{abate.ErrOverloaded, "overloaded", http.StatusServiceUnavailable},
	{abate.ErrDeadline, "deadline", http.StatusGatewayTimeout},
	{abate.ErrSilent, "retry-held-back", http.StatusBadGateway},
	{abate.ErrAttemptsExhausted, "attempts-exhausted", http.StatusBadGateway},
	{abate.ErrTreeExhausted, "tree-exhausted", http.StatusBadGateway},
}

// exhaustedReason is the reason of an answer when the proxy itself has run out of something: the service was not asked.
const exhaustedReason = "proxy-exhausted"

// deniedReason is the reason of an answer when a host is not let through, or its address.
const deniedReason = "denied"

// drainingReason is the reason of an answer when the proxy is about to end, and begins nothing that may last.
const drainingReason = "draining"

const noMoreTunnels = "the proxy is about to end, and begins no tunnel any more: ask again, on another connection"

// leftReason stands in the access log when the client did not wait.
const leftReason = "the client left"

// refusal is the short name of a reason, and the status of the answer when there is none of the service.
func refusal(reason error) (slug string, status int) {
	for _, r := range refusals {
		if r.err == reason {
			return r.slug, r.status
		}
	}
	return "failed", http.StatusBadGateway
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

// problem gives the client an answer of the proxy's own.
func (w *reply) problem(p problem) {
	if p.Title = http.StatusText(p.Status); w.req.route.Guard != nil {
		p.Service = w.req.service()
	}
	// a gate says so only when too many try again
	never := p.Status >= 500 && w.req.in == nil && p.Reason != exhaustedReason && p.Reason != drainingReason &&
		w.lastWord(p.Reason)
	if w.req.rpc {
		w.problemRPC(&p, never)
		return
	}
	w.reason, p.Code = p.Reason, p.Reason
	body, _ := json.Marshal(p) // strings and numbers: it cannot fail
	body = append(body, '\n')
	extra := h1.AppendField(nil, "Content-Type", "application/problem+json")
	extra = h1.AppendField(extra, "Cache-Control", "no-store")
	extra = h1.AppendField(extra, reasonField, p.Reason)
	if never {
		extra = w.sayNoRetry(extra)
	}
	if p.RetryAfter > 0 {
		extra = h1.AppendField(extra, "Retry-After", strconv.Itoa(p.RetryAfter))
	}
	w.own(p.Status, extra, body)
}

// refuseUnrouted answers a request that belongs to no service.
func (w *reply) refuseUnrouted() {
	names := w.req.plane.policies.Names()
	more := ""
	if len(names) > 10 {
		names, more = names[:10], ", ..."
	}
	from := w.req.client.origin()
	if from.listen == "" {
		w.req.plane.outside.strayed(meant(w.req))
	} else {
		w.problem(problem{Status: http.StatusNotFound, Reason: "no-route",
			Detail: "nothing is served here for this host and path"})
		return
	}
	w.problem(problem{Status: http.StatusNotFound, Reason: "no-route", Detail: fmt.Sprintf(
		"no service of the policy file has a route or upstream for host %.200q and path %.200q; services: %s",
		w.req.Host, w.req.Path, strings.Join(names, ", ")+more)})
}

// refusePath answers a request whose path is in doubt.
func (w *reply) refusePath(doubt string) {
	w.problem(problem{Status: http.StatusBadRequest, Reason: pathReason,
		Detail: "the path holds " + doubt + ": servers differ in what that means; " +
			"write it in its plain form (ambiguousPaths in the policy file says what is taken)"})
}

// pathReason is the reason of an answer to a path in doubt.
const pathReason = "ambiguous-path"
