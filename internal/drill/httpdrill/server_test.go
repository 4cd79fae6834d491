package httpdrill_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/scenario"
)

// post sends one request and returns the status, 0 for none, and the error.
func post(ctx context.Context, s *httpdrill.Server) (int, error) {
	ctx, enough := context.WithTimeout(ctx, 20*time.Second) // so that a server that never answers fails the test
	defer enough()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Idempotency-Key", "1") // as the drill's clients: net/http finds out by itself that a connection is gone
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Body.Close()
}

func status(t *testing.T, s *httpdrill.Server) int {
	t.Helper()
	got, err := post(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// serve starts a server with some changes to the service pay, whose call takes as long as backend.
func serve(t *testing.T, change func(*scenario.Service), backend func(context.Context) error) *httpdrill.Server {
	t.Helper()
	s := read(t, small)
	spec := s.Services[0]
	spec.ServiceTime = distribution.Fixed(0)
	if change != nil {
		change(&spec)
	}
	begin := time.Now()
	since := func() time.Duration { return time.Since(begin) }
	server, err := httpdrill.StartServer(spec, 0, 1, httpdrill.NewRecorder(s, &s.Variants[0], 1, since), since,
		backend, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	t.Cleanup(server.Close)
	return server
}

// gate is a backend that waits until it is opened, and counts who waits.
type gate struct {
	waiting atomic.Int32
	open    chan struct{}
}

func (g *gate) call(ctx context.Context) error {
	g.waiting.Add(1)
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestServiceRefusesWhenItsQueueIsFull(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	server := serve(t, func(s *scenario.Service) { s.Workers, s.Queue.Limit, s.RetryAfter = 1, 1, 2*time.Second }, g.call)
	go func() { _, _ = post(t.Context(), server) }()
	eventually(t, "a worker is busy", func() bool { return g.waiting.Load() == 1 })
	go func() { _, _ = post(t.Context(), server) }()
	eventually(t, "the queue is full", func() bool { return server.Waiting() == 1 })
	client := http.Client{Timeout: 20 * time.Second}
	answer, err := client.Post(server.URL(), "text/plain", strings.NewReader("x"))
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "2" {
		t.Fatalf("%v, %v; want 503 and Retry-After: 2", answer, err)
	}
	_ = answer.Body.Close()
}

func TestServiceWithoutAQueueRefusesWhenItsWorkersAreBusy(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	server := serve(t, func(s *scenario.Service) { s.Workers, s.Queue.Limit, s.Queue.None = 1, 0, true }, g.call)
	go func() { _, _ = post(t.Context(), server) }()
	eventually(t, "a worker is busy", func() bool { return g.waiting.Load() == 1 })
	if got := status(t, server); got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
}

func TestServiceWorksForCallersThatHaveLeft(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	server := serve(t, func(s *scenario.Service) { s.Workers = 1 }, g.call)
	go func() { _, _ = post(t.Context(), server) }()
	eventually(t, "a worker is busy", func() bool { return g.waiting.Load() == 1 })
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		_, _ = post(ctx, server)
		close(left)
	}()
	eventually(t, "the second request waits", func() bool { return server.Waiting() == 1 })
	leave()
	<-left
	close(g.open)
	eventually(t, "the worker takes up the abandoned request", func() bool { return g.waiting.Load() == 2 })
}

func TestServiceAnswersAsTheOneBehindItDoes(t *testing.T) {
	for _, first := range []bool{true, false} {
		var behind error
		server := serve(t, func(s *scenario.Service) { s.CallsFirst = first }, func(context.Context) error { return behind })
		if got := status(t, server); got != http.StatusOK {
			t.Errorf("status %d when all is well, want 200", got)
		}
		behind = errors.New("away")
		if got := status(t, server); got != http.StatusBadGateway {
			t.Errorf("status %d when the call fails, want 502", got)
		}
	}
}

func TestServiceFailsAsOftenAsItIsSaidTo(t *testing.T) {
	server := serve(t, func(s *scenario.Service) { s.ErrorRate = 0.5 }, nil)
	failed := 0
	for range 200 {
		if status(t, server) == http.StatusInternalServerError {
			failed++
		}
	}
	if failed < 60 || failed > 140 { // 5.6 standard deviations
		t.Errorf("%d of 200 failed, want about 100", failed)
	}
}

func TestFaultsBeginAndEnd(t *testing.T) {
	well := func(t *testing.T, s *httpdrill.Server) {
		t.Helper()
		if got := status(t, s); got != http.StatusOK {
			t.Errorf("status %d while all is well", got)
		}
	}
	tests := []struct {
		name  string
		fault scenario.Fault
		want  int // status; 0 for an error
		err   func(error) bool
	}{
		{"refuse", scenario.Fault{Outage: "pay", Mode: scenario.Refuse}, 0, func(err error) bool {
			return errors.Is(err, syscall.ECONNREFUSED)
		}},
		{"fail", scenario.Fault{Outage: "pay", Mode: scenario.Fail}, http.StatusServiceUnavailable, nil},
		{"errors", scenario.Fault{Errors: "pay"}, http.StatusInternalServerError, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := serve(t, nil, nil)
			for range 2 {
				well(t, server)
				server.Break(&tt.fault)
				got, err := post(t.Context(), server)
				if got != tt.want || tt.err != nil && !tt.err(err) {
					t.Errorf("status %d, %v", got, err)
				}
				if err := server.Fix(&tt.fault); err != nil {
					t.Fatal(err)
				}
			}
			well(t, server)
		})
	}
}

func TestInABlackholeNobodyIsEverAnswered(t *testing.T) {
	server := serve(t, nil, nil)
	fault := scenario.Fault{Outage: "pay", Mode: scenario.Blackhole}
	server.Break(&fault)
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if got, err := post(ctx, server); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("status %d, %v", got, err)
	}
	if err := server.Fix(&fault); err != nil || status(t, server) != http.StatusOK {
		t.Errorf("it did not end: %v", err)
	}
}

func TestWhatHangsIsAnsweredWhenItIsOver(t *testing.T) {
	server := serve(t, nil, nil)
	fault := scenario.Fault{Outage: "pay"}
	server.Break(&fault)
	answered := make(chan int, 1)
	go func() {
		got, _ := post(t.Context(), server)
		answered <- got
	}()
	eventually(t, "the request waits", func() bool { return server.Waiting() == 1 })
	if err := server.Fix(&fault); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got != http.StatusOK {
		t.Errorf("status %d, want 200", got)
	}
}

func TestASlowdownMakesWorkLonger(t *testing.T) {
	took := func(f *scenario.Fault) time.Duration {
		server := serve(t, func(s *scenario.Service) { s.ServiceTime = distribution.Fixed(5 * time.Millisecond) }, nil)
		if f != nil {
			server.Break(f)
		}
		begin := time.Now()
		status(t, server)
		return time.Since(begin)
	}
	// Only from below: a busy machine makes everything longer.
	if d := took(&scenario.Fault{Slowdown: "pay", Factor: 10}); d < 50*time.Millisecond {
		t.Errorf("×10: %v", d)
	}
	if d := took(&scenario.Fault{Slowdown: "pay", Add: distribution.Fixed(60 * time.Millisecond)}); d <
		65*time.Millisecond {
		t.Errorf("+60ms: %v", d)
	}
}
