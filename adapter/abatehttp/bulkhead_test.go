package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
)

// Where a permit is meant for the answer too, it comes back however the body ends, and once.
func TestAPermitIsHeldUntilTheBodyEnds(t *testing.T) {
	policies := map[string]abate.Policy{
		"bare": {}, "with a breaker": {CircuitBreaker: breaker.Config{FailureThreshold: 9}},
		"hedged": {Hedge: hedge.Config{Delay: time.Hour}}, "in time": {AttemptTimeout: time.Minute},
	}
	for _, tt := range []struct {
		name         string
		method, body string
		broken       error
		status       int
		held         int // while the body is there
		end          func(*http.Response)
	}{
		{"read", "GET", "answer", nil, 200, 1, func(r *http.Response) { io.Copy(io.Discard, r.Body); r.Body.Close() }},
		{"read, never closed", "GET", "answer", nil, 200, 1, func(r *http.Response) { io.Copy(io.Discard, r.Body) }},
		{"closed twice", "GET", "answer", nil, 200, 1, func(r *http.Response) { r.Body.Close(); r.Body.Close() }},
		{"broken", "GET", "answer", errors.New("reset"), 200, 1, func(r *http.Response) {
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}},
		{"no body", "HEAD", "", nil, 200, 0, func(r *http.Response) { r.Body.Close() }},
		{"an error page", "GET", "sorry", nil, 503, 0, func(r *http.Response) { r.Body.Close() }},
		{"a missing page", "GET", "sorry", nil, 404, 1, func(r *http.Response) { r.Body.Close() }},
	} {
		for name, p := range policies {
			p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true, HoldDuringBody: true}
			g := guard(t, p)
			base := roundTrip(func(req *http.Request) (*http.Response, error) {
				body := io.Reader(strings.NewReader(tt.body))
				if tt.broken != nil {
					body = io.MultiReader(body, breaking{tt.broken})
				}
				resp := &http.Response{StatusCode: tt.status, Body: io.NopCloser(body), Request: req, Header: http.Header{}}
				if tt.body == "" {
					resp.Body = http.NoBody
				}
				return resp, nil
			})
			transport := abatehttp.NewTransport(base, g)
			for range 2 {
				req, _ := http.NewRequestWithContext(context.Background(), tt.method, "http://s.test/", nil)
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatalf("%s, %s: %v", tt.name, name, err)
				}
				if n := g.State().Bulkhead.InFlight; n != tt.held {
					t.Errorf("%s, %s: %d permits held before the end of the body, want %d", tt.name, name, n, tt.held)
				}
				if tt.held > 0 {
					if _, err := transport.RoundTrip(req.Clone(req.Context())); !errors.Is(err, abate.ErrBulkheadFull) {
						t.Errorf("%s, %s: a second call beside the body: %v", tt.name, name, err)
					}
				}
				tt.end(resp)
				if n := g.State().Bulkhead.InFlight; n != 0 {
					t.Errorf("%s, %s: %d permits held after the body", tt.name, name, n)
				}
			}
		}
	}
}

type breaking struct{ err error }

func (f breaking) Read([]byte) (int, error) { return 0, f.err }
