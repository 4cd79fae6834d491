package abateadmin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/shed"
)

// stage is a page with guards, and what runs on them.
type stage struct {
	t testing.TB
	*abateadmin.Page
	guards map[string]*abate.Guard
	tell   map[string]abate.Observer
	asks   map[string]inbound.GateObserver
}

func newStage(t testing.TB, c abateadmin.Config) *stage {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &stage{t, abateadmin.New(c), map[string]*abate.Guard{}, map[string]abate.Observer{},
		map[string]inbound.GateObserver{}}
	t.Cleanup(s.Close)
	return s
}

// guard makes one that is shown.
func (s *stage) guard(name string, p abate.Policy) *abate.Guard {
	s.t.Helper()
	s.Adjust(name, &p)
	g, err := abate.New(name, p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Add(g)
	s.guards[name], s.tell[name] = g, p.Observer
	return g
}

func (s *stage) gate(name string, p inbound.Protection) *inbound.Gate {
	s.t.Helper()
	s.AdjustProtection(name, &p)
	g, err := inbound.NewGate(name, p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.AddGate(g)
	s.asks[name] = p.Observer
	return g
}

// serve serves the page on loopback.
func (s *stage) serve() *httptest.Server {
	server := httptest.NewServer(s)
	s.t.Cleanup(func() {
		s.Close() // first: the server waits for its readers
		server.Close()
	})
	return server
}

// calls reports n calls that end at a time: of each thousand, so many fail, and each failure was tried again so often.
func (s *stage) calls(name string, at time.Duration, n, failing, again int) {
	o := s.tell[name]
	for i := range n {
		class, attempts := abate.Success, 1
		if i*1000/max(n, 1) < failing {
			class, attempts = abate.Failure, 1+again
		}
		e := abate.Event{Guard: name, At: at, Class: class, Latency: 12 * time.Millisecond}
		e.Kind = core.CallBegan
		o.Observe(e)
		for k := range attempts {
			e.Attempt = k + 1
			e.Kind = core.AttemptBegan
			o.Observe(e)
			e.Kind, e.Err = core.AttemptEnded, nil
			if class == abate.Failure {
				e.Err, e.Latency = errors.New("Get \"http://user:secret@payments:8080/charge?card=4111\": dial tcp "+
					"10.2.3.4:8080: connect: connection refused"), 350*time.Millisecond
			}
			o.Observe(e)
			if k+1 < attempts {
				e.Kind, e.Retries, e.Delay = core.RetryScheduled, k+1, 120*time.Millisecond
				o.Observe(e)
			}
		}
		e.Kind = core.CallEnded
		if class == abate.Failure {
			e.Reason = abate.ErrAttemptsExhausted
		}
		o.Observe(e)
	}
}

// refused reports n calls that were refused.
func (s *stage) refused(name string, at time.Duration, n int, reason error) {
	o := s.tell[name]
	for range n {
		o.Observe(abate.Event{Kind: core.CallBegan, At: at})
		o.Observe(abate.Event{Kind: core.CallEnded, At: at, Class: abate.Failure, Reason: reason})
	}
}

// storm runs five minutes with a storm in the last of them, as seen at now.
func storm(s *stage, now time.Duration) {
	p := abate.DefaultPolicy()
	naive := abate.Policy{Retry: abate.Retry{MaxRetries: 3}}
	for _, name := range []string{
		"accounts", "catalogue", "checkout", "emails", "inventory", "prices", "search", "sessions",
	} {
		s.guard(name, p)
	}
	s.guard("payment-service", naive)
	s.guard("reports", abate.DefaultPolicy())
	s.guard("<b onload=alert(1)>legacy</b>", abate.DefaultPolicy())
	s.gate("orders", inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 64}})
	for ago := 299; ago >= 0; ago-- {
		at := now - time.Duration(ago)*time.Second
		wave := func(n, k int) int { return n + (ago*k)%(n/4+1) }
		for i, name := range []string{"accounts", "catalogue", "emails", "inventory", "prices"} {
			s.calls(name, at, wave(4+5*i, 7+i), 0, 0)
		}
		failing, again := 5, 1
		if ago < 70 {
			failing, again = 900, 3
		}
		s.calls("payment-service", at, wave(20, 5), failing, again)
		switch {
		case ago > 60:
			s.calls("checkout", at, wave(12, 3), 0, 0)
		case ago > 50:
			s.calls("checkout", at, 14, 800, 0)
		default:
			s.refused("checkout", at, 13, abate.ErrCircuitOpen)
		}
		if ago < 100 {
			s.calls("search", at, 16, 120, 1)
		} else {
			s.calls("search", at, 16, 0, 0)
		}
		for i := range wave(18, 7) {
			e := inbound.GateEvent{At: at, Kind: inbound.RequestAdmitted, Attempt: 1, Latency: 9 * time.Millisecond}
			if ago < 70 && i%4 == 0 {
				s.asks["orders"].ObserveGate(inbound.GateEvent{
					At: at, Kind: inbound.RequestRefused, Attempt: 2, Reason: abate.ErrOverloaded, Shed: shed.LaterAttempt,
				})
				continue
			}
			s.asks["orders"].ObserveGate(e)
			e.Kind = inbound.RequestDone
			s.asks["orders"].ObserveGate(e)
		}
	}
	for range 100 {
		_, _ = abate.Do(context.Background(), s.guards["checkout"], func(context.Context) (int, error) {
			return 0, errors.New("connection refused")
		})
	}
	for _, e := range []struct {
		ago      time.Duration
		from, to breaker.State
	}{{50 * time.Second, breaker.Closed, breaker.Open}, {40 * time.Second, breaker.Open, breaker.HalfOpen},
		{38 * time.Second, breaker.HalfOpen, breaker.Open}} {
		s.tell["checkout"].Observe(abate.Event{
			Kind: core.BreakerChanged, At: now - e.ago, From: e.from, To: e.to, Detail: "failure rate",
		})
	}
}
