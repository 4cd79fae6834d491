package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

// statusError is an answer that is not a success.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// newTransport returns the connections of one client, on which every attempt that is really sent is recorded.
func newTransport(r *Recorder, since func() time.Duration) *countingTransport {
	return &countingTransport{
		base: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		},
		record: r, since: since,
	}
}

// tookHeader is how countingTransport tells its caller how long the attempt took that an answer belongs to.
const tookHeader = "Drill-Attempt-Took"

// countingTransport counts and times attempts below all retries, in both acts alike.
type countingTransport struct {
	base   *http.Transport
	record *Recorder
	since  func() time.Duration
}

func (t *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	begin := t.since()
	t.record.Attempt(begin)
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Header.Set(tookHeader, (t.since() - begin).String())
	return answer, nil
}

func (t *countingTransport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// httpCaller makes one request per charge. With a plain transport that is one attempt; with a guarded one it is as many
// as the policy allows.
type httpCaller struct {
	client *http.Client
	url    string
}

func (c *httpCaller) charge(ctx context.Context, key string) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(`{"amount":4200,"currency":"EUR"}`))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key) // a second try cannot charge twice, so trying again is allowed
	answer, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)); err != nil {
		return 0, err
	}
	if answer.StatusCode >= 400 {
		return 0, statusError(answer.StatusCode)
	}
	return time.ParseDuration(answer.Header.Get(tookHeader))
}

func (c *httpCaller) close() { c.client.CloseIdleConnections() }

// stubborn tries again after a fixed delay, as so many do.
type stubborn struct {
	httpCaller
	retries int
	delay   time.Duration
}

func (s *stubborn) charge(ctx context.Context, key string) (time.Duration, error) {
	for n := 0; ; n++ {
		took, err := s.httpCaller.charge(ctx, key)
		if err == nil || n == s.retries || !sleep(s.delay, ctx.Done()) {
			return took, err
		}
	}
}

// endingOf tells how a call ended from its error.
func endingOf(err error) Ending {
	if err == nil {
		return Answered
	}
	var own *abate.Error
	if errors.As(err, &own) && own.Attempts == 0 {
		return RefusedEarly
	}
	var (
		status statusError
		last   *abatehttp.StatusError // of a call that the guard ended between two attempts
	)
	if errors.As(err, &last) {
		status = statusError(last.StatusCode)
	}
	if status != 0 || errors.As(err, &status) {
		switch status {
		case http.StatusServiceUnavailable:
			return QueueFull
		case http.StatusGatewayTimeout:
			return DatabaseError
		}
		return OtherAnswer
	}
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return TimedOut
	}
	return NoConnection
}
