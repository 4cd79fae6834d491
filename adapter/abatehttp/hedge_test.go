package abatehttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
)

// hedging sends one further copy after delay.
func hedging(delay time.Duration) abate.Policy {
	p := abate.Policy{}
	p.Hedge.Delay = delay
	p.Hedge.MaxHedges = 1
	return p
}

func TestFastSecondCopyWins(t *testing.T) {
	counts, arrived := make(chan string, 2), make(chan struct{}, 1)
	b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		count := r.Header.Get("X-Envoy-Attempt-Count")
		counts <- count
		body, _ := io.ReadAll(r.Body)
		if count == "1" { // which need not be the first to arrive
			arrived <- struct{}{}
			<-r.Context().Done() // until the client gives this copy up
			return
		}
		<-arrived // or the client might give the first copy up before it is sent
		w.Write(body)
	})
	for name, body := range map[string]io.Reader{
		"GetBody":  strings.NewReader("content"),
		"buffered": io.NopCloser(strings.NewReader("content")),
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := newClient(t, guard(t, hedging(20*time.Millisecond)))
			req := newRequest(t, "PUT", b.URL, body)
			req.Header.Set("Idempotency-Key", "k1")
			if status, got := mustDo(t, client, req); status != 200 || got != "content" {
				t.Errorf("%d %q", status, got)
			}
			if one, other := <-counts, <-counts; min(one, other) != "1" || max(one, other) != "2" {
				t.Errorf("copies counted themselves as %s and %s", one, other)
			}
		})
	}
}

func TestHedgeWhoseCopiesAllFailReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("connection torn")
		second := make(chan struct{})
		var sent atomic.Int64
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if sent.Add(1) == 2 {
				close(second)
			}
			<-second
			return nil, broken
		})
		begin := time.Now()
		_, err := abatehttp.NewTransport(base, guard(t, hedging(time.Second))).RoundTrip(
			newRequest(t, "GET", "http://payments.test", nil))
		if !errors.Is(err, broken) || time.Since(begin) != time.Second || sent.Load() != 2 {
			t.Errorf("error %v after %v and %d copies", err, time.Since(begin), sent.Load())
		}
	})
}

func TestLosersBodyIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loser := &closing{Reader: strings.NewReader("late")}
		var sent atomic.Int64
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if sent.Add(1) == 1 {
				<-req.Context().Done() // given up, and answers all the same
				return &http.Response{StatusCode: 200, Body: loser}, nil
			}
			return answer(req, 200, nil, "fast"), nil
		})
		resp, err := abatehttp.NewTransport(base, guard(t, hedging(time.Second))).RoundTrip(
			newRequest(t, "GET", "http://payments.test", nil))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "fast" || err != nil {
			t.Errorf("%q, error %v", body, err)
		}
		resp.Body.Close()
		synctest.Wait()
		if !loser.closed.Load() {
			t.Error("the loser's body is open")
		}
	})
}

func TestOnlyWhatMayRunTwiceIsHedged(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		header string
		body   func() io.Reader
		want   int64
	}{
		"GET":             {method: "GET", want: 2},
		"POST":            {method: "POST", want: 1},
		"POST with a key": {method: "POST", header: "Idempotency-Key", want: 2},
		"stream with a key": {method: "POST", header: "Idempotency-Key", body: func() io.Reader {
			return strings.NewReader(strings.Repeat("a", 1<<20))
		}, want: 1},
		"GET for an upgrade": {method: "GET", header: "Upgrade", want: 1},
		"short body with key": {method: "POST", header: "Idempotency-Key", body: func() io.Reader {
			return strings.NewReader("a")
		}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int64
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					sent.Add(1)
					select {
					case <-time.After(time.Minute):
						return answer(req, 200, nil, ""), nil
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
				})
				var body io.Reader
				if c.body != nil {
					body = io.NopCloser(c.body())
				}
				req := newRequest(t, c.method, "http://payments.test", body)
				if c.header != "" {
					req.Header.Set(c.header, "x")
				}
				resp, err := abatehttp.NewTransport(base, guard(t, hedging(time.Second))).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if sent.Load() != c.want {
					t.Errorf("%d copies, want %d", sent.Load(), c.want)
				}
			})
		})
	}
}

// The caller has the answer and may use its request again; the copy that lost is still on its way.
func TestLosingHedgeDoesNotSeeTheRequestsNextUse(t *testing.T) {
	for name, inBase := range map[string]bool{"before it is sent": false, "while it is sent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second, used, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
				hold := func() {
					close(second)
					<-used
				}
				var sent atomic.Int64
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					if sent.Add(1) == 1 {
						<-second
						return answer(req, 200, nil, "ok"), nil
					}
					defer close(over)
					if inBase {
						hold()
					}
					if h := req.Header.Get("X-Next"); h != "" || req.URL.Path != "/first" {
						t.Errorf("the copy became one of the next request: %s, header %q", req.URL, h)
					}
					return nil, req.Context().Err()
				})
				transport := abatehttp.NewTransport(base, guard(t, hedging(time.Second)))
				transport.OmitHeaders = inBase // then nothing has copied the header on the way
				req := newRequest(t, "PUT", "http://payments.test/first", strings.NewReader("x"))
				req.Header.Set("Idempotency-Key", "k1")
				req.GetBody = func() (io.ReadCloser, error) {
					if !inBase {
						hold()
					}
					return io.NopCloser(strings.NewReader("x")), nil
				}
				resp, err := transport.RoundTrip(req)
				if err != nil || resp.Request != req {
					t.Fatalf("%+v, error %v", resp, err)
				}
				resp.Body.Close()
				req.Header.Set("X-Next", "1")
				req.URL.Path = "/next"
				close(used)
				//lint:ignore SA1019 beside the copy that is being judged: the race detector looks
				req.Cancel = make(chan struct{})
				<-over
				synctest.Wait()
			})
		})
	}
}

func TestHedgeThatCannotHelpDoesNotEndTheFirstCopy(t *testing.T) {
	for name, spoil := range map[string]func(*abate.Policy, *http.Request){
		"it may not be retried": func(p *abate.Policy, _ *http.Request) { p.RetryOn = []string{"503"} },
		"it has no body": func(_ *abate.Policy, req *http.Request) {
			req.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int64
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					if sent.Add(1) == 2 {
						return nil, errors.New("connection refused") // by one replica that is down
					}
					select {
					case <-time.After(2 * time.Second):
						return answer(req, 200, nil, "ok"), nil
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
				})
				p := hedging(time.Second)
				req := newRequest(t, "PUT", "http://payments.test", strings.NewReader("x"))
				req.Header.Set("Idempotency-Key", "k1")
				spoil(&p, req)
				if status, body := mustDo(t, &http.Client{Transport: abatehttp.NewTransport(base, guard(t, p))}, req); status !=
					200 || body != "ok" {
					t.Errorf("%d %q", status, body)
				}
			})
		})
	}
}

func TestAHedgeThatMeetsItsOwnFirstCopyIsNoAnswer(t *testing.T) {
	released := make(chan struct{})
	var handled atomic.Int32
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handled.Add(1) == 1 {
			<-released
		}
		io.WriteString(w, "charged")
	})
	p := inbound.DefaultProtection()
	p.Idempotency.Methods = []string{"POST"}
	gate, err := inbound.NewGate("payments", p)
	if err != nil {
		t.Fatal(err)
	}
	h := abatehttp.NewHandler(gate, service)
	b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })
	policy := hedging(20 * time.Millisecond)
	policy.Observer = abate.ObserverFunc(func(e abate.Event) {
		// of the copy that came second and found the other one running
		if e.Kind == core.AttemptEnded && e.Class == abate.Overload {
			close(released)
		}
	})
	client, _ := newClient(t, guard(t, policy))
	req := newRequest(t, "POST", b.URL, strings.NewReader("order"))
	req.Header.Set("Idempotency-Key", `"order-7"`)
	if status, got := mustDo(t, client, req); status != 200 || got != "charged" || handled.Load() != 1 {
		t.Errorf("%d %q, handled %d times; want the answer of the copy that came first", status, got, handled.Load())
	}
}

func TestAConflictWithARunningTryIsNobodysFailure(t *testing.T) {
	header := http.Header{"Abate-Reason": {abatehttp.KeyRunning.Code}, "Retry-After": {"1"}}
	if o := abatehttp.ClassifyStatus(guard(t, abate.Policy{}), http.StatusConflict, header, true); !o.Neutral ||
		o.NoRetry || o.Class != abate.Overload {
		t.Errorf("%+v", o)
	}
	if o := abatehttp.ClassifyStatus(guard(t, abate.Policy{}), http.StatusServiceUnavailable, header, true); o.Neutral {
		t.Errorf("%+v", o)
	}
}
