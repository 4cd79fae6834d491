package abatehttp_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
)

// eager retries three times, at once.
func eager() abate.Policy {
	return abate.Policy{Retry: abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff}}
}

// staysOpen is a circuit that opens at so many failures and lets nothing through for an hour, however long the machine
// stands still.
func staysOpen(failures int) breaker.Config {
	return breaker.Config{
		FailureThreshold: failures, WaitDurationInOpenState: time.Hour, MaxWaitDurationInOpenState: time.Hour,
	}
}

// alone declines in words what a policy that retries or hedges gets if it says nothing: budget and circuit breaker.
func alone(p abate.Policy) abate.Policy {
	if p.Budget == nil && p.RetryBudget == (budget.Config{}) {
		p.RetryBudget.Disabled = true
	}
	if p.CircuitBreaker == (breaker.Config{}) {
		p.CircuitBreaker.Disabled = true
	}
	return p
}

// guard makes a guard for a test of one thing.
func guard(t testing.TB, p abate.Policy) *abate.Guard {
	t.Helper()
	g, err := abate.New("payments", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// backend is a real server on the loopback that counts its requests and connections.
type backend struct {
	*httptest.Server
	requests atomic.Int64
	opened   atomic.Int64 // connections so far
	open     atomic.Int64 // connections now
}

// serve starts a server and, when the test ends, looks for goroutines that are left over. handle gets the number of the
// request, from 1.
func serve(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) *backend {
	t.Helper()
	checkGoroutines(t)
	b := new(backend)
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(int(b.requests.Add(1)), w, r)
	}))
	b.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			b.opened.Add(1)
			b.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			b.open.Add(-1)
		}
	}
	b.Start()
	t.Cleanup(b.Close)
	return b
}

// always answers every request with status.
func always(status int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// checkGoroutines fails the test if more goroutines are left at its end than there were at this moment.
func checkGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if !settles(func() bool { return runtime.NumGoroutine() <= before }) {
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines are left, %d were there before\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// settles waits until what other goroutines have to do is done.
func settles(done func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		if done() {
			return true
		}
	}
	return done()
}

// newClient returns a client with a transport and connections of its own.
func newClient(t *testing.T, g *abate.Guard) (*http.Client, *abatehttp.Transport) {
	t.Helper()
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 16
	t.Cleanup(base.CloseIdleConnections)
	transport := abatehttp.NewTransport(base, g)
	return &http.Client{Transport: transport}, transport
}

// newRequest makes a request, and fails the test if it cannot be made.
func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// mustDo sends req and returns status and body.
func mustDo(t *testing.T, c *http.Client, req *http.Request) (int, string) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// roundTrip makes a RoundTripper of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer is a response for a roundTrip to give.
func answer(req *http.Request, status int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: status, Header: header, Request: req,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// recorder is an observer that remembers.
type recorder struct {
	mu     sync.Mutex
	events []abate.Event
}

func (r *recorder) Observe(e abate.Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
}

func (r *recorder) all(kind core.EventKind) []abate.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []abate.Event
	for _, e := range r.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// watched returns p with a recorder as its observer.
func watched(p abate.Policy) (abate.Policy, *recorder) {
	r := new(recorder)
	p.Observer = r
	return p, r
}

// closing is a body that knows whether it was closed.
type closing struct {
	io.Reader
	closed atomic.Bool
}

func (c *closing) Close() error {
	c.closed.Store(true)
	return nil
}
