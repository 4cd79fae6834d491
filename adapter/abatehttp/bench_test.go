package abatehttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/bulkhead"
)

// stub answers without a network, so that what is left is the price of the client and the guard.
type stub struct{ body string }

func (s stub) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
	if s.body != "" {
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(s.body)), int64(len(s.body))
	}
	return resp, nil
}

// BenchmarkClient compares an http.Client with and without a Transport; the difference is what a guarded request costs.
func BenchmarkClient(b *testing.B) {
	full := abate.DefaultPolicy()
	full.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 100}
	timed := full
	timed.Timeout, timed.AttemptTimeout = 2*time.Second, 500*time.Millisecond
	for _, c := range []struct {
		name   string
		policy *abate.Policy
		omit   bool
	}{{"plain", nil, false}, {"guarded", &full, false}, {"guarded-timeouts", &timed, false},
		{"guarded-timeouts-no-headers", &timed, true}} {
		b.Run(c.name, func(b *testing.B) {
			client := &http.Client{Transport: stub{body: "ok"}}
			if c.policy != nil {
				t := abatehttp.NewTransport(client.Transport, guard(b, *c.policy))
				t.OmitHeaders = c.omit
				client.Transport = t
			}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Get("http://payments.test/charge")
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
