package main

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"
)

var silent = log.New(io.Discard, "", 0)

// answered sends one request and reports whether the answer is good, read to its end.
func answered(ctx context.Context, t http.RoundTripper, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// attempt is one that takes no longer than an attempt may.
func attempt(ctx context.Context, t http.RoundTripper, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return answered(ctx, t, url)
}

// throughProxy calls a program that stands before the service, and leaves when, for how long and how often it is tried
// to that program.
func (r *rig) throughProxy(addr string) caller {
	t := r.transport()
	return func(ctx context.Context) bool { return answered(ctx, t, "http://"+addr+"/") }
}

// spread sends requests to the endpoints in turn, for callers that have no balancing of their own.
type spread struct {
	next      http.RoundTripper
	addresses []string
	turn      *atomic.Uint64
}

// RoundTrip implements http.RoundTripper.
func (s spread) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(s.addresses) > 1 {
		req = req.Clone(req.Context())
		req.URL.Host = s.addresses[s.turn.Add(1)%uint64(len(s.addresses))]
	}
	return s.next.RoundTrip(req)
}

// direct is a transport to the service itself, and a URL of it.
func (r *rig) direct() (http.RoundTripper, string) {
	turn := new(atomic.Uint64)
	turn.Store(rand.Uint64N(64))
	all := r.addresses()
	return spread{r.transport(), all, turn}, "http://" + all[0] + "/"
}

func startNothing(r *rig) (caller, error) {
	t, url := r.direct()
	return func(ctx context.Context) bool { return attempt(ctx, t, url) }, nil
}

// startNaive retries three times at once, as loops do that somebody wrote in an afternoon.
func startNaive(r *rig) (caller, error) {
	t, url := r.direct()
	return func(ctx context.Context) bool {
		for range 4 {
			if attempt(ctx, t, url) {
				return true
			}
			if ctx.Err() != nil {
				return false
			}
		}
		return false
	}, nil
}

// startFailsafe composes what failsafe-go has, from the outside: retries under its budget; its adaptive limit, which
// lets a few wait; the time limit of an attempt. There is no circuit breaker and no throttler: both refuse, for a fixed
// time or by a share of the past, what would be answered, and the limit bounds a hang already.
func startFailsafe(r *rig) (caller, error) {
	retries := failsafehttp.NewRetryPolicyBuilder().
		WithMaxRetries(3).
		WithBackoff(100*time.Millisecond, time.Second).
		WithJitterFactor(0.5).
		WithBudget(budget.NewBuilder().WithMaxRate(0.2).WithMinConcurrency(3).Build()). // its defaults
		Build()
	// Up to what the service can do within an attempt's time: 20 workers are 400 requests a second.
	limit := adaptivelimiter.NewBuilder[*http.Response]().
		WithLimits(workers, uint(attemptTimeout/serviceTime*workers/2), workers).
		WithQueueing(2, 3).
		WithMaxWaitTime(attemptTimeout / 2).
		Build()
	once := timeout.New[*http.Response](attemptTimeout)
	t, url := r.direct()
	executor := failsafe.With[*http.Response](retries, limit, once)
	guarded := failsafehttp.NewRoundTripperWithExecutor(t, executor)
	return func(ctx context.Context) bool { return answered(ctx, guarded, url) }, nil
}
