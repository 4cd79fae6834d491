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

// countingTransport counts below all retries, in both acts alike.
type countingTransport struct {
	base   *http.Transport
	record *Recorder
	since  func() time.Duration
}

func (t *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.record.Attempt(t.since())
	return t.base.RoundTrip(r)
}

func (t *countingTransport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// httpCaller makes one request per charge. With a plain transport that is one attempt; with a guarded one it is as many
// as the policy allows.
type httpCaller struct {
	client *http.Client
	url    string
}

func (c *httpCaller) charge(ctx context.Context, key string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(`{"amount":4200,"currency":"EUR"}`))
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
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)); err != nil {
		return err
	}
	if answer.StatusCode >= 400 {
		return statusError(answer.StatusCode)
	}
	return nil
}

func (c *httpCaller) close() { c.client.CloseIdleConnections() }

// stubborn tries again after a fixed delay, as so many do.
type stubborn struct {
	httpCaller
	retries int
	delay   time.Duration
}

func (s *stubborn) charge(ctx context.Context, key string) error {
	for n := 0; ; n++ {
		err := s.httpCaller.charge(ctx, key)
		if err == nil || n == s.retries || !sleep(s.delay, ctx.Done()) {
			return err
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
