package abatehttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
)

// degrading is eager with a fallback.
func degrading() abate.Policy {
	p := eager()
	p.Fallback = core.Fallback{Status: 203, Body: `{"degraded":true}`}
	return p
}

func TestFallbackReplacesAFailedCall(t *testing.T) {
	once := degrading()
	once.MaxRetries = 0
	once.CircuitBreaker = staysOpen(1)
	torn := roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection torn") })
	for name, c := range map[string]struct {
		policy   abate.Policy
		base     http.RoundTripper
		calls    int
		attempts int
	}{
		"status after retries": {degrading(), answering(503, nil), 1, 4},
		"status not retried":   {degrading(), answering(501, nil), 1, 1},
		"error":                {degrading(), torn, 1, 4},
		"refusal":              {once, torn, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, events := watched(c.policy)
			client := &http.Client{Transport: abatehttp.NewTransport(c.base, guard(t, p))}
			for range c.calls {
				resp, err := client.Get("http://payments.test")
				if err != nil {
					t.Fatal(err)
				}
				if resp.Header.Get(abatehttp.FallbackHeader) != "true" || resp.Header.Get("Content-Type") != "application/json" ||
					resp.Status != "203 Non-Authoritative Information" || resp.ContentLength != 17 {
					t.Errorf("%+v", resp)
				}
				resp.Body.Close()
			}
			used := events.all(core.FallbackUsed)
			if len(used) != c.calls || used[0].Err == nil || len(events.all(core.AttemptBegan)) != c.attempts {
				t.Errorf("%d attempts, fallbacks %+v", len(events.all(core.AttemptBegan)), used)
			}
		})
	}
}

func TestFallbackHasItsBody(t *testing.T) {
	client := &http.Client{Transport: abatehttp.NewTransport(answering(503, nil), guard(t, degrading()))}
	if status, body := mustDo(t, client, newRequest(t, "GET", "http://payments.test", nil)); status != 203 ||
		body != `{"degraded":true}` {
		t.Errorf("%d %q", status, body)
	}
	if status, body := mustDo(t, client, newRequest(t, "HEAD", "http://payments.test", nil)); status != 203 || body != "" {
		t.Errorf("HEAD: %d %q", status, body)
	}
}

func TestFallbackClosesTheAnswerItReplaces(t *testing.T) {
	body := &closing{Reader: strings.NewReader("x")}
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 501, Body: body}, nil
	})
	resp, err := abatehttp.NewTransport(base, guard(t, degrading())).RoundTrip(
		newRequest(t, "GET", "http://payments.test", nil))
	if err != nil || resp.StatusCode != 203 || !body.closed.Load() {
		t.Errorf("%v, error %v, closed %v", resp, err, body.closed.Load())
	}
}

func TestFallbackIsNotForAnswersNorForCallersWhoLeft(t *testing.T) {
	client := &http.Client{Transport: abatehttp.NewTransport(answering(404, nil), guard(t, degrading()))}
	if status, _ := mustDo(t, client, newRequest(t, "GET", "http://payments.test", nil)); status != 404 {
		t.Errorf("a 404 became %d", status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		cancel()
		return nil, req.Context().Err()
	})
	_, err := abatehttp.NewTransport(base, guard(t, degrading())).RoundTrip(
		newRequest(t, "GET", "http://payments.test", nil).WithContext(ctx))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
