package abatehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
)

func TestCallersRequestIsNeverChanged(t *testing.T) {
	b := serve(t, always(503))
	_, transport := newClient(t, guard(t, patient()))
	inner := transport.Base
	transport.Base = roundTrip(func(req *http.Request) (*http.Response, error) {
		req.Header.Add("Accept", "text/html") // what middlewares should not do, and do
		return inner.RoundTrip(req)
	})
	req := newRequest(t, "GET", b.URL, nil)
	req.Header["Accept"] = append(make([]string, 0, 8), "application/json")
	before, accept := req.Clone(req.Context()), req.Header["Accept"]
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !reflect.DeepEqual(req.Header, before.Header) || accept[:2][1] != "" || req.Context() != before.Context() {
		t.Errorf("header %v", req.Header)
	}
}

func TestHeadersSayAttemptAndTimeLeft(t *testing.T) {
	seen := make(chan http.Header, 9)
	b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		w.WriteHeader(503)
	})
	limited := eager()
	limited.AttemptTimeout = 119 * time.Second // never to be written as 1 minute
	for _, c := range []struct {
		name   string
		policy abate.Policy
		omit   bool
		counts []string
		left   string
	}{
		{"time limit", limited, false, []string{"9", "10", "11", "12"}, "119000"},
		{"no time limit", eager(), false, []string{"9", "10", "11", "12"}, ""},
		{"left out", limited, true, []string{"", "", "", ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, transport := newClient(t, guard(t, c.policy))
			transport.OmitHeaders = c.omit
			req := newRequest(t, "GET", b.URL, nil)
			req.Header.Set("X-Envoy-Attempt-Count", "9") // somebody above has made 8
			req.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", "7")
			mustDo(t, client, req)
			for _, want := range c.counts {
				h := <-seen
				if got := h.Values("X-Envoy-Attempt-Count"); len(got) > 1 || strings.Join(got, "") != want {
					t.Errorf("attempt %q, want %s", got, want)
				}
				if got := h.Get("X-Envoy-Expected-Rq-Timeout-Ms"); got != c.left {
					t.Errorf("time left %q, want %q", got, c.left)
				}
			}
		})
	}
}

func TestAttemptsAreCountedAsFarAsTheyGo(t *testing.T) {
	p := eager()
	p.MaxRetries = 100
	want := 0
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		want++
		if got := req.Header["X-Envoy-Attempt-Count"]; len(got) != 1 || got[0] != fmt.Sprint(want) {
			t.Errorf("attempt %d counts itself as %q", want, got)
		}
		return answer(req, 503, nil, ""), nil
	})
	resp, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(newRequest(t, "GET", "http://payments.test", nil))
	if err != nil || want != 101 {
		t.Errorf("%d attempts, error %v", want, err)
	}
	resp.Body.Close()
}

func TestTimeLeftIsRoundedUpAndNeverZero(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		time.Second: "1000", 1500 * time.Microsecond: "2", time.Nanosecond: "1",
	} {
		var got string
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			got = req.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms")
			return answer(req, 200, nil, ""), nil
		})
		transport := abatehttp.NewTransport(base, guard(t, abate.Policy{}))
		synctest.Test(t, func(t *testing.T) { // where no time passes between the deadline's making and its reading
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			resp, err := transport.RoundTrip(newRequest(t, "GET", "http://payments.test", nil).WithContext(ctx))
			if err != nil || got != want {
				t.Fatalf("%v: %q, want %s, error %v", limit, got, want, err)
			}
			resp.Body.Close()
		})
	}
}

// fading is a context whose deadline is over when it is looked at for the second time.
type fading struct {
	context.Context
	looks int
}

func (f *fading) Deadline() (time.Time, bool) {
	f.looks++
	return time.Now().Add(time.Duration(3-2*f.looks) * time.Hour), true
}

func TestTimeLeftOfALateAttemptIsNotZero(t *testing.T) {
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		if left := req.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"); left != "1" {
			t.Errorf("time left %q", left)
		}
		return answer(req, 200, nil, ""), nil
	})
	req := newRequest(t, "GET", "http://payments.test", nil).WithContext(&fading{Context: t.Context()})
	if _, err := abatehttp.NewTransport(base, guard(t, abate.Policy{})).RoundTrip(req); err != nil {
		t.Error(err)
	}
}

func TestBaseSeesTheCallersContext(t *testing.T) {
	type key struct{}
	for _, p := range []abate.Policy{eager(), patient(), hedging(time.Hour)} {
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if got := req.Context().Value(key{}); got != "trace 7" {
				t.Errorf("value %v", got)
			}
			return answer(req, 200, nil, ""), nil
		})
		req := newRequest(t, "GET", "http://payments.test", nil)
		resp, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(
			req.WithContext(context.WithValue(req.Context(), key{}, "trace 7")))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

func TestServerErrorsOpenTheBreaker(t *testing.T) {
	for _, status := range []int{500, 501, 503, 429} {
		b := serve(t, always(status))
		p := abate.Policy{CircuitBreaker: staysOpen(5)}
		client, _ := newClient(t, guard(t, p))
		for range 5 {
			mustDo(t, client, newRequest(t, "GET", b.URL, nil))
		}
		_, err := client.Get(b.URL)
		if !errors.Is(err, abate.ErrCircuitOpen) || b.requests.Load() != 5 {
			t.Errorf("%d: error %v after %d requests", status, err, b.requests.Load())
		}
	}
}

func TestBusinessAnswersKeepTheBreakerClosed(t *testing.T) {
	b := serve(t, always(404))
	p := abate.Policy{}
	p.CircuitBreaker.FailureThreshold = 1
	client, _ := newClient(t, guard(t, p))
	for range 5 {
		mustDo(t, client, newRequest(t, "GET", b.URL, nil))
	}
}

func TestHangingAttemptsOpenTheBreaker(t *testing.T) {
	b := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p, events := watched(eager())
	p.AttemptTimeout = 5 * time.Millisecond
	p.CircuitBreaker = staysOpen(3)
	client, _ := newClient(t, guard(t, p))
	if _, err := client.Get(b.URL); !errors.Is(err, abate.ErrCircuitOpen) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if n := len(events.all(core.AttemptBegan)); n != 3 {
		t.Errorf("%d attempts: a retry went on against an open breaker", n)
	}
}

func TestRedirectsAreFollowed(t *testing.T) {
	b := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case n%2 == 1:
			w.WriteHeader(503)
		case r.URL.Path == "/old":
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
		default:
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s", r.URL.Path, body)
		}
	})
	client, _ := newClient(t, guard(t, patient()))
	req := newRequest(t, "PUT", b.URL+"/old", strings.NewReader("content"))
	req.Header.Set("Idempotency-Key", "k1")
	if status, body := mustDo(t, client, req); status != 200 || body != "/new content" {
		t.Errorf("%d %q", status, body)
	}
}

func TestManyCallersShareOneTransport(t *testing.T) {
	b := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%3 == 0 {
			w.WriteHeader(503)
		}
		io.Copy(w, r.Body)
	})
	p := patient()
	p.MaxRetries = 20
	p.Hedge.Delay = time.Millisecond
	client, _ := newClient(t, guard(t, p))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				content := fmt.Sprint(worker, i)
				req := newRequest(t, "POST", b.URL, io.NopCloser(strings.NewReader(content)))
				req.Header.Set("Idempotency-Key", content)
				if status, body := mustDo(t, client, req); status != 200 || body != content {
					t.Errorf("%d %q, want %q", status, body, content)
				}
			}
		})
	}
	wg.Wait()
}

func TestBasesThatBreakTheContractAreBorne(t *testing.T) {
	body := &closing{Reader: strings.NewReader("x")}
	for name, base := range map[string]roundTrip{
		"nothing": func(*http.Request) (*http.Response, error) { return nil, nil },
		"both":    func(req *http.Request) (*http.Response, error) { return &http.Response{Body: body}, io.EOF },
	} {
		if resp, err := abatehttp.NewTransport(base, guard(t, eager())).RoundTrip(
			newRequest(t, "GET", "http://payments.test", nil)); resp != nil || err == nil {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
	}
	if !body.closed.Load() {
		t.Error("body is open")
	}
}
