package abatehttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
)

// unbroken is the default policy without a circuit breaker, which would hide what the budget does, and without waits.
func unbroken() abate.Policy {
	p := abate.DefaultPolicy()
	p.CircuitBreaker.Disabled = true
	p.Backoff = retry.NoBackoff
	return p
}

// down counts what it is sent, and fails it.
type down struct{ sent atomic.Int64 }

func (d *down) RoundTrip(r *http.Request) (*http.Response, error) {
	d.sent.Add(1)
	return answer(r, 503, nil, ""), nil
}

// again sends a request as a retrier above does, and reports whether the budget refused it.
func again(t *testing.T, client *http.Client, req *http.Request) (refused bool) {
	t.Helper()
	if req.GetBody != nil {
		req.Body, _ = req.GetBody()
	}
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return errors.Is(err, abate.ErrBudgetExhausted)
}

// A repeat that somebody above sends draws from the budget and earns nothing, by whatever it is known.
func TestRetriesStackedAboveStayWithinTheBudget(t *testing.T) {
	const users, tries = 200, 5
	with := func(name string, value func(user, try int) string) func(*testing.T, *http.Client, int) {
		return func(t *testing.T, client *http.Client, user int) {
			for try := range tries {
				req := newRequest(t, "GET", "http://down.test/", nil)
				req.Header.Set(name, value(user, try))
				again(t, client, req)
			}
		}
	}
	for name, call := range map[string]func(*testing.T, *http.Client, int){
		"Amz-Sdk-Request": with("Amz-Sdk-Request", func(_, try int) string {
			return "attempt=" + strconv.Itoa(try+1) + "; max=5"
		}),
		"X-Envoy-Attempt-Count": with("X-Envoy-Attempt-Count", func(_, try int) string { return strconv.Itoa(try + 1) }),
		"Grpc-Previous-Rpc-Attempts": with("Grpc-Previous-Rpc-Attempts", func(_, try int) string {
			return strconv.Itoa(try)
		}),
		"X-Goog-Api-Client": with("X-Goog-Api-Client", func(_, try int) string {
			return "gl-go/1 gccl-attempt-count/" + strconv.Itoa(try+1)
		}),
		"X-Stainless-Retry-Count": with("X-Stainless-Retry-Count", func(_, try int) string { return strconv.Itoa(try) }),
		"Idempotency-Key":         with("Idempotency-Key", func(user, _ int) string { return strconv.Itoa(user) }),
		"X-Ms-Client-Request-Id":  with("X-Ms-Client-Request-Id", func(user, _ int) string { return strconv.Itoa(user) }),
		"the same request value": func(t *testing.T, client *http.Client, _ int) {
			req := newRequest(t, "POST", "http://down.test/", strings.NewReader("order"))
			for range tries {
				again(t, client, req)
			}
		},
		"the same header in new requests, under a time limit of the client": func(t *testing.T, client *http.Client, _ int) {
			limited := *client
			limited.Timeout = time.Hour
			header := http.Header{}
			for range tries {
				req := newRequest(t, "GET", "http://down.test/", nil)
				req.Header = header
				again(t, &limited, req)
			}
		},
		"the same context of a piece of work": func(t *testing.T, client *http.Client, _ int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for range tries {
				again(t, client, newRequest(t, "POST", "http://down.test/", strings.NewReader("order")).WithContext(ctx))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := new(down)
			client := &http.Client{Transport: abatehttp.NewTransport(d, guard(t, unbroken()))}
			for user := range users {
				call(t, client, user)
			}
			if n := d.sent.Load(); n < users || n > users*12/10 {
				t.Errorf("%d attempts of %d calls, want 1.2 a call at most", n, users)
			}
		})
	}
}

// What is not the same call is a call of its own: it earns, and nobody refuses it.
func TestCallsThatOnlyLookAlikeAreCallsOfTheirOwn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	const calls = 100
	for name, next := range map[string]func(i int) *http.Request{
		"other bodies under one context": func(i int) *http.Request {
			return newRequest(t, "POST", "http://down.test/", strings.NewReader(strconv.Itoa(i))).WithContext(ctx)
		},
		"other paths under one context": func(i int) *http.Request {
			return newRequest(t, "GET", "http://down.test/"+strconv.Itoa(i), nil).WithContext(ctx)
		},
		"other keys": func(i int) *http.Request {
			req := newRequest(t, "POST", "http://down.test/", nil).WithContext(ctx)
			req.Header.Set("Idempotency-Key", strconv.Itoa(i))
			return req
		},
		"a context as long as the program": func(int) *http.Request { return newRequest(t, "GET", "http://down.test/", nil) },
		"first attempts of a client library": func(i int) *http.Request {
			req := newRequest(t, "GET", "http://down.test/", nil).WithContext(ctx)
			req.Header.Set("Amz-Sdk-Request", "attempt=1; max=3")
			return req
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, p := new(down), unbroken()
			p.MaxRetries = 0
			client := &http.Client{Transport: abatehttp.NewTransport(d, guard(t, p))}
			for i := range calls {
				if again(t, client, next(i)) {
					t.Fatalf("call %d was refused", i)
				}
			}
			if n := d.sent.Load(); n != calls {
				t.Errorf("%d attempts of %d calls", n, calls)
			}
		})
	}
}

// Two calls at the same time are no repeats of each other, even if nothing tells them apart.
func TestConcurrentCallsAreNoRepeats(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	synctest.Test(t, func(t *testing.T) {
		p, sent := unbroken(), atomic.Int64{}
		p.MaxRetries, p.RetryBudget = 0, budget.Config{Ratio: 0.1, Reserve: 1}
		client := &http.Client{Transport: abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			sent.Add(1)
			time.Sleep(time.Second)
			return answer(r, 503, nil, ""), nil
		}), guard(t, p))}
		for range 50 {
			go func() {
				if again(t, client, newRequest(t, "GET", "http://down.test/", nil).WithContext(ctx)) {
					t.Error("refused")
				}
			}()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if sent.Load() != 50 {
			t.Errorf("%d sent", sent.Load())
		}
	})
}

// Who only ever repeats one request comes through again, when the dependency is back.
func TestARepeatThatIsRefusedIsNotRefusedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := unbroken()
		p.MaxRetries, p.RetryBudget = 0, budget.Config{Ratio: 0.1, Reserve: 1}
		d := new(down)
		client := &http.Client{Transport: abatehttp.NewTransport(d, guard(t, p))}
		req := newRequest(t, "GET", "http://down.test/", nil)
		for range 600 {
			again(t, client, req)
			time.Sleep(time.Second)
		}
		if n := d.sent.Load(); n < 20 || n > 75 {
			t.Errorf("%d attempts in ten minutes, want a few: one in 30 s at least, one in 10 s at most", n)
		}
	})
}

// An attempt's number that a stranger has written into a request which a service passes on draws from nobody's budget.
func TestForgedNumbersOfStrangersDrainNoBudget(t *testing.T) {
	for name, c := range map[string]struct {
		peer    string
		refused bool
	}{
		"a stranger":     {"203.0.113.9:1", false},
		"a trusted peer": {"10.0.0.1:1", true},
	} {
		t.Run(name, func(t *testing.T) {
			p, d := unbroken(), new(down)
			p.RetryBudget = budget.Config{Ratio: 0.1, Reserve: 5}
			p.MaxRetries = 0
			g := guard(t, p)
			target, _ := url.Parse("http://down.test")
			forwards := httputil.NewSingleHostReverseProxy(target)
			forwards.Transport = abatehttp.NewTransport(d, g)
			forwards.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(502) }
			h := abatehttp.NewHandler(newGate(t, trusting), forwards)
			for range 50 {
				h.ServeHTTP(httptest.NewRecorder(), from(c.peer, "X-Envoy-Attempt-Count", "5"))
			}
			if left := g.State().Budget; (left < 5) != c.refused {
				t.Errorf("%v of 5 are left", left)
			}
			if n := d.sent.Load(); (n < 50) != c.refused {
				t.Errorf("%d of 50 were passed on", n)
			}
		})
	}
}

// What is remembered of failed calls is bounded, and let go when it is over.
func TestTheMemoryOfFailedCallsIsBounded(t *testing.T) {
	p, d := unbroken(), new(down)
	p.MaxRetries = 0
	transport := abatehttp.NewTransport(d, guard(t, p))
	for range 20_000 {
		resp, err := transport.RoundTrip(newRequest(t, "GET", "http://down.test/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if n := abatehttp.Remembered(transport); n > 1<<13 || n < 1<<12 {
		t.Errorf("%d remembered", n)
	}
}

// The bound holds with hedges, which draw from the same budget, with a guard for each host, and with several guards for
// one host, each with its own reserve.
func TestTheBoundHoldsWithHedgesAndSeveralGuards(t *testing.T) {
	const users, tries = 400, 4
	hedges := unbroken()
	hedges.Hedge.Delay = time.Millisecond
	for name, c := range map[string]struct {
		policy  abate.Policy
		guards  int
		perHost bool
	}{
		"hedges":                       {hedges, 1, false},
		"a guard for each host":        {unbroken(), 1, true},
		"two guards for the same host": {unbroken(), 2, false},
		"two, with hedges":             {hedges, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int64
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					sent.Add(1)
					select {
					case <-time.After(5 * time.Millisecond):
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
					return answer(r, 503, nil, ""), nil
				})
				clients := make([]*http.Client, c.guards)
				for i := range clients {
					transport := abatehttp.NewTransport(base, guard(t, c.policy))
					if c.perHost {
						transport.Select, _ = abatehttp.PerHost(c.policy, 0)
					}
					clients[i] = &http.Client{Transport: transport}
				}
				for user := range users {
					req := newRequest(t, "GET", "http://down.test/", nil)
					for range tries {
						again(t, clients[user%len(clients)], req)
					}
				}
				if n := sent.Load(); n < users || n > users*12/10 {
					t.Errorf("%d attempts of %d calls, want 1.2 a call at most", n, users)
				}
			})
		})
	}
}
