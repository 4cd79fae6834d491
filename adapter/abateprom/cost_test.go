package abateprom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	inner "github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/breaker"
)

// events are one of each kind.
var events = []abate.Event{
	{Kind: core.CallBegan},
	{Kind: core.CallQueued},
	{Kind: core.AttemptBegan, Attempt: 1},
	{Kind: core.AttemptEnded, Attempt: 1, Class: abate.Failure, Latency: time.Millisecond, Err: errDown},
	{Kind: core.RetryScheduled, Attempt: 1, Retries: 1, Delay: time.Second},
	{Kind: core.HedgeSent, Attempt: 3},
	{Kind: core.HedgeDenied, Reason: abate.ErrBudgetExhausted},
	{Kind: core.HiddenRetry},
	{Kind: core.CallEnded, Attempt: 3, Retries: 1, Reason: abate.ErrOverloaded, Class: abate.Overload},
	{Kind: core.BreakerChanged, To: breaker.Open},
	{Kind: core.FallbackUsed},
	{Kind: core.PolicyChanged},
}

func TestCountingAllocatesNothing(t *testing.T) {
	m := metrics(t)
	o := m.observer("s")
	for _, e := range events {
		if n := testing.AllocsPerRun(100, func() { o.Observe(e) }); n != 0 {
			t.Errorf("%v allocates %v times", e.Kind, n)
		}
	}
	e := m.Endpoint("s", "/r")
	if n := testing.AllocsPerRun(100, func() { // the run before the first one is not counted
		e.Began()
		e.Retried(3)
		e.Ended(200, time.Millisecond)
	}); n != 0 {
		t.Errorf("a request allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { m.Endpoint("s", "/r") }); n != 0 {
		t.Errorf("finding an endpoint allocates %v times", n)
	}
	requests := m.Requests(stub(func(*http.Request) (*http.Response, error) { return nil, errDown }), byPath)
	req := request(t, "/r")
	if n := testing.AllocsPerRun(100, func() { _, _ = requests.RoundTrip(req) }); n != 0 {
		t.Errorf("the transport allocates %v times", n)
	}
}

// TestNothingIsLostWhenManyCount: the race detector looks on, and the sums are exact.
func TestNothingIsLostWhenManyCount(t *testing.T) {
	const workers, rounds = 8, 200
	m := metrics(t)
	g := m.guard(t, "s", abate.Policy{})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range rounds {
				e := m.Endpoint("s", fmt.Sprint("/", i%5))
				e.Began()
				_, _ = abate.Do(context.Background(), g, func(context.Context) (int, error) { return 0, nil })
				e.Retried(2 + i%3)
				e.Ended(200+i%7, time.Millisecond)
				m.Add(g)
				m.observer(fmt.Sprint("service-", i%20))
			}
		})
	}
	for range 10 {
		m.scrape(t)
	}
	all.Wait()
	p := m.scrape(t)
	p.want(t, map[string]float64{
		`abate_calls_total{outcome="success",service="s"}`: workers * rounds,
		`abate_amplification_ratio{service="s"}`:           1,
		`http_client_concurrent_requests{service="s"}`:     0,
	})
	for _, metric := range []string{"http_client_requests_total", "http_client_retry_attempts_total"} {
		sum := 0.0
		for _, v := range p.of(metric) {
			sum += v
		}
		if sum != workers*rounds {
			t.Errorf("%s: %v, want %v", metric, sum, workers*rounds)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	o := metrics(b).observer("s")
	for _, e := range events {
		b.Run(e.Kind.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(e)
			}
		})
	}
}

// BenchmarkObserveParallel is the first event of every call, from all processors at once.
func BenchmarkObserveParallel(b *testing.B) {
	o := metrics(b).observer("s")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 1, At: time.Second})
		}
	})
}

// BenchmarkCall is a guarded call that succeeds at once, without the metrics and with them.
func BenchmarkCall(b *testing.B) {
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			p := abate.DefaultPolicy()
			if name == "with" {
				metrics(b).Adjust("s", &p)
			}
			g, err := abate.New("s", p)
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = abate.Do(ctx, g, func(context.Context) (int, error) { return 0, nil })
			}
		})
	}
}

func BenchmarkEndpoint(b *testing.B) {
	m := metrics(b)
	e := m.Endpoint("s", "/users/{id}")
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Began()
			e.Ended(200, 3*time.Millisecond)
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Endpoint("s", "/users/{id}")
		}
	})
}

// BenchmarkScrape writes 100 services of ten routes each, by the client library and as the proxy does.
func BenchmarkScrape(b *testing.B) {
	m := metrics(b)
	for i := range 100 {
		name := fmt.Sprint("service-", i)
		m.guard(b, name, abate.DefaultPolicy())
		for j := range 10 {
			m.Endpoint(name, fmt.Sprint("/", j)).Ended(200, time.Millisecond)
		}
	}
	registry := new(series.Registry)
	if err := registry.Register((*inner.Metrics)(m.Metrics)); err != nil {
		b.Fatal(err)
	}
	for name, page := range map[string]http.Handler{"library": m.handler(), "proxy": series.Handler(registry)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				answer.Body = nil
				page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
		})
	}
}
