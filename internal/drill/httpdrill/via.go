package httpdrill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policyfile"
)

// Via starts what stands between one client and the service and carries out the policy for it, such as a proxy of its
// own. policy is a policy file that lists the service with its upstreams; observer is to be told what its guard does.
// proxy is the address that the client has to use as its HTTP proxy; end stops it all.
type Via func(policy []byte, observer abate.Observer) (proxy *url.URL, end func(), err error)

// relayed is the policy of a client as a file for what stands before the service.
func relayed(service string, upstreams []string, p policyfile.Policy) []byte {
	p.Fallback.Disabled = true // a degraded answer is not goodput
	p.Upstreams, p.Routes = upstreams, nil
	if n := len(p.Weights); n > 0 { // of the replicas, again from the first one on
		p.Weights = slices.Repeat(p.Weights, len(upstreams)/n+1)[:len(upstreams)]
	}
	f := policyfile.File{Defaults: policyfile.DefaultPolicy(),
		Services: []policyfile.Service{{Name: service, Policy: p}}, GatewayRetries: true}
	return f.Format()
}

// newRelayed returns a caller that knows nothing of policies: it sends every request once, to its HTTP proxy.
func newRelayed(via Via, service string, upstreams []string, p policyfile.Policy, watch Watchers, e edge) (*caller,
	error) {
	proxy, end, err := via(relayed(service, upstreams, p), watch.observer(service, attemptRecorder{e}))
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", service, err)
	}
	t := &http.Transport{Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: e.idle, DisableCompression: true}
	return &caller{client: &http.Client{Transport: t}, url: upstreams[0], end: end}, nil
}

// attemptRecorder notes the attempts of a guard that is somewhere else, and what it refuses.
type attemptRecorder struct{ edge }

// Observe is told by the guard.
func (r attemptRecorder) Observe(e abate.Event) {
	switch e.Kind {
	case core.AttemptBegan, core.HedgeSent:
		r.record.Attempt(r.service, r.since(), e.Attempt > 1)
	default:
		r.record.Observe(e)
	}
}

// refusal is the error in an answer that the service's gate or a proxy gave by itself, nil if it is the service's own.
// The fields are those of their problem+json. A gate's has a code, and no attempts.
func refusal(answer *http.Response, body []byte) error {
	if answer.Header.Get("Content-Type") != "application/problem+json" {
		return nil
	}
	var p struct {
		Code           string `json:"code"`
		Reason         string `json:"reason"`
		Cause          string `json:"cause"`
		Attempts       int    `json:"attempts"`
		UpstreamStatus int    `json:"upstreamStatus"`
	}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&p) != nil {
		return nil
	}
	if end, ok := endOfRefusal[p.Code]; ok && p.Attempts == 0 {
		return gateError(end)
	}
	e := &abate.Error{Attempts: p.Attempts, Reason: abate.ErrDeadline}
	switch p.Reason {
	case "circuit-open":
		e.Reason = abate.ErrCircuitOpen
	case "bulkhead-full":
		e.Reason = abate.ErrBulkheadFull
	}
	switch {
	case p.UpstreamStatus > 0:
		e.Err = statusError(p.UpstreamStatus)
	case p.Cause == "timeout":
		e.Err = context.DeadlineExceeded
	case p.Cause == "connection":
		e.Err, e.Reason = io.ErrUnexpectedEOF, abate.ErrAttemptsExhausted
	}
	return e
}
