package httpdrill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/sim/engine"
)

// statusError is an answer that is not a success.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// gateError is the refusal of the service's gate.
type gateError engine.EndKind

func (e gateError) Error() string { return "refused by the gate: " + engine.EndKind(e).String() }

// edge is what the connections of one caller to one service need to know.
type edge struct {
	record  *Recorder
	service int // number in the record
	since   func() time.Duration
	idle    int        // connections that are kept
	naive   bool       // knows nothing of what Abate says in headers, and hears nothing of it
	to      *endpoints // nil: there is one
}

// countingTransport counts attempts below all retries.
type countingTransport struct {
	edge
	guard *abate.Guard
	base  *http.Transport
}

func newTransport(e edge, g *abate.Guard) *countingTransport {
	return &countingTransport{e, g, &http.Transport{
		DialContext:  (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConns: 0, MaxIdleConnsPerHost: e.idle, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}}
}

// What abatehttp says in headers: how often a request has been sent, this time included, and for how long its caller
// waits.
const (
	attemptCount = "X-Envoy-Attempt-Count"
	timeLeft     = "X-Envoy-Expected-Rq-Timeout-Ms"
)

func (t *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.record.Attempt(t.service, t.since(), r.Header.Get(attemptCount) != "1")
	if !t.naive {
		return t.send(r)
	}
	r = r.Clone(r.Context())
	for _, name := range told {
		r.Header.Del(name)
	}
	answer, err := t.send(r)
	if err == nil {
		for _, name := range asked {
			answer.Header.Del(name)
		}
	}
	return answer, err
}

func (t *countingTransport) send(r *http.Request) (*http.Response, error) {
	if t.to == nil {
		return t.base.RoundTrip(r)
	}
	return t.to.send(r, t.guard, t.base)
}

// What Abate tells a server, and what it heeds in an answer.
var (
	told  = []string{attemptCount, timeLeft, "Abate-Priority", "Abate-Retry-Allowance"}
	asked = []string{"Retry-After", "X-Should-Retry", "Abate-Retries-Made"}
)

func (t *countingTransport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// caller sends requests to one service through a guard.
type caller struct {
	client *http.Client
	url    string
	end    func() // of what stands before the service, or of what is shown of the guard
}

// newCaller returns a caller with connections and a guard of its own, as one program has. Its fallback is left out: a
// degraded answer is not goodput.
func newCaller(service, url string, p abate.Policy, observer abate.Observer, watch Watchers, e edge) (*caller, error) {
	p.Fallback.Disabled = true
	p.Observer = observer
	watch.adjust(service, &p)
	g, err := abate.New(service, p)
	if err != nil {
		return nil, err
	}
	watch.add(g)
	return &caller{client: &http.Client{Transport: abatehttp.NewTransport(newTransport(e, g), g)}, url: url,
		end: func() { watch.remove(g) }}, nil
}

// send makes one call: as many attempts as the policy allows.
func (c *caller) send(ctx context.Context, key string) error {
	request, err := http.NewRequestWithContext(withTried(ctx), http.MethodPost, c.url,
		strings.NewReader(`{"amount":4200,"currency":"EUR"}`))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key) // a second try cannot charge twice, so trying again is allowed
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return err
	}
	if err := refusal(answer, body); err != nil {
		return err
	}
	if answer.StatusCode >= 400 {
		return statusError(answer.StatusCode)
	}
	return nil
}

func (c *caller) close() {
	c.client.CloseIdleConnections()
	if c.end != nil {
		c.end()
		c.end = nil
	}
}

// endOf reports how a call ended from its error: by its last attempt, or by a policy before there was one.
func endOf(err error) engine.EndKind {
	if err == nil {
		return engine.Answered
	}
	var gate gateError
	if errors.As(err, &gate) {
		return engine.EndKind(gate)
	}
	var own *abate.Error
	if errors.As(err, &own) && own.Attempts == 0 {
		switch own.Reason {
		case abate.ErrCircuitOpen:
			return engine.CircuitOpen
		case abate.ErrBulkheadFull:
			return engine.BulkheadFull
		}
		return engine.TimedOut
	}
	var (
		status statusError
		last   *abatehttp.StatusError // of a call that the guard ended between two attempts
	)
	if errors.As(err, &last) {
		status = statusError(last.StatusCode)
	}
	if status != 0 || errors.As(err, &status) {
		return endOfStatus(int(status))
	}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return engine.RefusedConnection
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return engine.TimedOut
	}
	return engine.Reset
}

func endOfStatus(status int) engine.EndKind {
	for end, s := range statuses {
		if s == status {
			return end
		}
	}
	return engine.ServerError
}
