package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/breaker"
)

// halfServer sends the first half of a body, and then hangs until its client leaves, breaks off, or ends it.
func halfServer(t *testing.T) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2000")
		w.Write(make([]byte, 1000))
		http.NewResponseController(w).Flush()
		switch r.URL.Path {
		case "/hangs":
			<-r.Context().Done()
		case "/breaks":
			panic(http.ErrAbortHandler)
		default:
			w.Write(make([]byte, 1000))
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s.URL
}

// A body that dies is a failure of the service, whose head came in time. It counts once, and only for what the service
// did.
func TestABodyThatDiesIsAFailureThatTheBreakerSees(t *testing.T) {
	url := halfServer(t)
	for _, row := range []struct {
		name, path string
		timeout    time.Duration
		read       func(*http.Response, context.CancelFunc) error
		failed     float64
	}{
		{"runs into attemptTimeout", "/hangs", 30 * time.Millisecond, nil, 1},
		{"breaks off", "/breaks", 0, nil, 1},
		{"comes whole", "/", 0, nil, 0},
		{"is closed by the caller", "/hangs", time.Minute, func(resp *http.Response, _ context.CancelFunc) error {
			resp.Body.Read(make([]byte, 10))
			resp.Body.Close()
			_, err := resp.Body.Read(make([]byte, 10))
			return err
		}, 0},
		{"is cancelled by the caller", "/hangs", time.Minute, func(resp *http.Response, cancel context.CancelFunc) error {
			resp.Body.Read(make([]byte, 10))
			cancel()
			_, err := io.Copy(io.Discard, resp.Body)
			return err
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, err := fifteenBodies(t, row.timeout, url+row.path, row.read)
			// On a busy machine a short time can end before the head is there, or before anybody reads the body.
			for more := 10 * row.timeout; (err != nil || g.State().Breaker.Calls != 15) && more <= 3*time.Second &&
				row.timeout > 0; more *= 10 {
				g, err = fifteenBodies(t, more, url+row.path, row.read)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := g.State().Breaker; got.Calls != 15 || got.FailureRate != row.failed {
				t.Errorf("%d calls, %v of them failed; want 15, %v", got.Calls, got.FailureRate, row.failed)
			}
		})
	}
}

// fifteenBodies asks for a body fifteen times, and returns the guard that saw it. Those of "/" come whole, the others
// do not. The error is that of a request to which no answer came.
func fifteenBodies(t *testing.T, timeout time.Duration, url string,
	read func(*http.Response, context.CancelFunc) error) (*abate.Guard, error) {
	g := guard(t, abate.Policy{
		AttemptTimeout: timeout, CircuitBreaker: breaker.Config{FailureRateThreshold: 1, MinimumNumberOfCalls: 100},
	})
	client := &http.Client{Transport: abatehttp.NewTransport(nil, g)}
	for range 15 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		resp, err := client.Do(req)
		if err != nil {
			return g, err
		}
		if read != nil {
			err = read(resp, cancel)
		} else {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		if strings.HasSuffix(url, "/") != (err == nil) {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	return g, nil
}

func TestFifteenBodiesThatDieOpenTheCircuit(t *testing.T) {
	g := guard(t, abate.Policy{AttemptTimeout: 20 * time.Millisecond, CircuitBreaker: staysOpen(15)})
	client := &http.Client{Transport: abatehttp.NewTransport(nil, g)}
	url := halfServer(t) + "/hangs"
	// On a busy machine a time limit can end before anybody reads: then it says nothing about the service.
	for i := range 1000 {
		resp, err := client.Get(url)
		switch {
		case errors.Is(err, abate.ErrCircuitOpen):
			if i < 15 {
				t.Errorf("the circuit is open after %d bodies", i)
			}
			return
		case err == nil:
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	t.Error("the circuit is not open after 1000 bodies")
}
