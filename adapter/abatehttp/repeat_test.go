package abatehttp_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
)

func TestOnlyHarmlessRequestsAreRepeated(t *testing.T) {
	b := serve(t, always(500))
	for _, c := range []struct {
		name    string
		method  string
		header  http.Header
		methods []string // of the policy
		want    int64    // requests that the server sees
	}{
		{name: "GET", method: "GET", want: 4},
		{name: "HEAD", method: "HEAD", want: 4},
		{name: "OPTIONS", method: "OPTIONS", want: 4},
		{name: "TRACE", method: "TRACE", want: 4},
		{name: "POST", method: "POST", want: 1},
		{name: "PUT is idempotent but not safe", method: "PUT", want: 1},
		{name: "DELETE", method: "DELETE", want: 1},
		{name: "POST with a key", method: "POST", header: http.Header{"Idempotency-Key": {"k1"}}, want: 4},
		{name: "POST with the older key", method: "POST", header: http.Header{"X-Idempotency-Key": {"k1"}}, want: 4},
		{name: "a header without a value is net/http's way to say so", method: "POST",
			header: http.Header{"Idempotency-Key": nil}, want: 4},
		{name: "an empty key is no key", method: "POST", header: http.Header{"Idempotency-Key": {""}}, want: 1},
		{name: "PUT by policy", method: "PUT", methods: []string{"PUT"}, want: 4},
		{name: "GET not, by policy", method: "GET", methods: []string{"PUT"}, want: 1},
		{name: "key over policy", method: "POST", methods: []string{"PUT"},
			header: http.Header{"Idempotency-Key": {"k1"}}, want: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.requests.Store(0)
			p := eager()
			p.RetryMethods = c.methods
			client, _ := newClient(t, guard(t, p))
			req := newRequest(t, c.method, b.URL, nil)
			for k, v := range c.header {
				req.Header[k] = v
			}
			status, _ := mustDo(t, client, req)
			if status != 500 || b.requests.Load() != c.want {
				t.Errorf("status %d after %d requests, want 500 after %d", status, b.requests.Load(), c.want)
			}
		})
	}
}

func TestEmptyMethodIsGET(t *testing.T) {
	b := serve(t, always(500))
	_, transport := newClient(t, guard(t, eager()))
	req := newRequest(t, "GET", b.URL, nil)
	req.Method = ""
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if b.requests.Load() != 4 {
		t.Errorf("%d requests, want 4", b.requests.Load())
	}
}

func TestRequestsThatAreSentOnceStillCountForTheBreaker(t *testing.T) {
	b := serve(t, always(500))
	p := eager()
	p.CircuitBreaker = staysOpen(3)
	client, _ := newClient(t, guard(t, p))
	for range 3 {
		mustDo(t, client, newRequest(t, "POST", b.URL, nil))
	}
	if _, err := client.Do(newRequest(t, "POST", b.URL, nil)); err == nil || b.requests.Load() != 3 {
		t.Errorf("error %v after %d requests, want a refusal after 3", err, b.requests.Load())
	}
}

func TestATransportBehindATransportIsNotRepeatedAgain(t *testing.T) {
	for name, body := range map[string]string{"with a body": "sorry", "without": ""} {
		attempts := 0
		inner := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			attempts++
			resp := answer(r, 503, nil, body)
			if body == "" {
				resp.Body = http.NoBody
			}
			return resp, nil
		}), guard(t, eager()))
		resp, err := abatehttp.NewTransport(inner, guard(t, eager())).RoundTrip(
			newRequest(t, "GET", "http://payments.test", nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || string(got) != body || resp.StatusCode != 503 || attempts != 4 {
			t.Errorf("%s: %d attempts, want 4; %d %q, error %v", name, attempts, resp.StatusCode, got, err)
		}
	}
}
