package abateadmin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

func TestAStorySaysCauseEffectAndWhatComesNext(t *testing.T) {
	const last = ` The last error: Get "http://…@payments:8080/charge?…": dial tcp 10.2.3.4:8080: connect: ` +
		`connection refused.`
	off := abate.Policy{Retry: abate.Retry{MaxRetries: 3}}
	off.RetryBudget.Disabled, off.CircuitBreaker.Disabled = true, true
	narrow := off
	narrow.Bulkhead.MaxConcurrentCalls, narrow.Bulkhead.MaxQueue = 1, 1
	for _, tt := range []struct {
		name   string
		policy abate.Policy
		play   func(s *stage)
		want   abateadmin.Story
	}{
		{"nobody calls", off, func(*stage) {}, abateadmin.Story{}},
		{"all is well", off, func(s *stage) { s.calls("a", 5*sec, 50, 0, 0) }, abateadmin.Story{}},
		{"a storm", off, func(s *stage) { s.calls("a", 5*sec, 40, 1000, 3) }, abateadmin.Story{
			Cause:  "160 of 160 attempts failed. No retry budget bounds what is sent again." + last,
			Effect: "In the last 10 seconds 40 calls ended: all failed.",
			Next:   "Every call goes on being sent: no circuit breaker is on.",
		}},
		{"the errors of a minute ago", off, func(s *stage) {
			s.calls("a", -60*sec, 40, 1000, 0)
			s.refused("a", 5*sec, 20, abate.ErrThrottled)
		}, abateadmin.Story{
			Cause:  "Calls are refused, most often for this: throttled.",
			Effect: "In the last 10 seconds 20 calls ended: all were refused at once.",
		}},
		{"retries that are refused do not say why calls are", off, func(s *stage) {
			s.refused("a", 5*sec, 20, abate.ErrRateLimited)
			for range 30 {
				s.tell["a"].Observe(abate.Event{Kind: core.CallBegan, At: 5 * sec})
				s.tell["a"].Observe(abate.Event{Kind: core.CallEnded, At: 5 * sec, Attempt: 1,
					Reason: abate.ErrBudgetExhausted})
			}
		}, abateadmin.Story{
			Cause:  "Calls are refused, most often for this: rate limited.",
			Effect: "In the last 10 seconds 50 calls ended: 30 answered, 20 refused at once.",
		}},
		{"a bulkhead is full", narrow, func(s *stage) {
			s.refused("a", 5*sec, 20, abate.ErrBulkheadFull)
			running, done := make(chan struct{}), make(chan struct{})
			s.t.Cleanup(func() { close(done) })
			go func() {
				_, _ = abate.Do(s.t.Context(), s.guards["a"], func(context.Context) (int, error) {
					close(running)
					<-done
					return 0, nil
				})
			}()
			<-running
		}, abateadmin.Story{
			Cause:  "The bulkhead is full: 1 of 1 permits are taken, and 0 calls wait.",
			Effect: "In the last 10 seconds 20 calls ended: all were refused at once.",
		}},
		{"disabled by hand", abate.DefaultPolicy(), func(s *stage) {
			_ = s.guards["a"].Override(abate.OverrideDisabled)
		}, abateadmin.Story{
			Cause: "Somebody disabled the circuit breaker by hand.", Effect: "In the last 10 seconds no call ended.",
		}},
		{"forced open by hand", abate.DefaultPolicy(), func(s *stage) {
			_ = s.guards["a"].Override(abate.OverrideForcedOpen)
			s.refused("a", 5*sec, 1, abate.ErrCircuitOpen)
		}, abateadmin.Story{
			Cause:  "Somebody forced the circuit open by hand.",
			Effect: "In the last 10 seconds 1 call ended: it was refused at once.",
			Next:   "It stays open until somebody takes that back.",
		}},
	} {
		s := newStage(t, abateadmin.Config{})
		s.guard("a", tt.policy)
		tt.play(s)
		if r := s.RowAt("a", false, 10*sec); r.Story != tt.want {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, r.Story, tt.want)
		}
	}
}

func TestAnOpenCircuitSaysWhyItOpenedAndWhenItAsksAgain(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	p := abate.DefaultPolicy()
	p.CircuitBreaker.FailureThreshold, p.CircuitBreaker.FailureRateThreshold, p.MaxRetries = 1, 0, 0
	g := s.guard("a", p)
	_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errors.New("it is on fire") })
	got := s.RowAt("a", false, core.Now()).Story
	want := "The circuit opened because attempts failed one after the other. The last error: it is on fire."
	if got.Cause != want {
		t.Errorf("cause %q, want %q", got.Cause, want)
	}
	if !strings.HasPrefix(got.Next, "The next probe is sent in ") || !strings.HasSuffix(got.Next, "refused at once.") {
		t.Errorf("next %q", got.Next)
	}
}

func TestACauseIsWhatTheBreakerSaid(t *testing.T) {
	for _, tt := range []struct {
		row       abateadmin.Row
		why, want string
	}{
		{abateadmin.Row{Circuit: "closed", Guards: 1}, "failure rate", ""},
		{abateadmin.Row{Circuit: "off", Guards: 1}, "failure rate", ""},
		{abateadmin.Row{Circuit: "open", Guards: 1}, "", ""},
		{abateadmin.Row{Circuit: "open", Guards: 1}, "probe slow", "The circuit opened because the last probe was slow."},
		{abateadmin.Row{Circuit: "half-open", Guards: 50}, "failure rate",
			"The last circuit that opened did so because too large a share of the attempts failed."},
		{abateadmin.Row{Circuit: "open", Guards: 1}, "something new", "The circuit opened because something new."},
	} {
		if got := tt.row.CircuitCause(tt.why); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.why, tt.row.Circuit, got, tt.want)
		}
	}
}

func TestWhatComesNextIsThatOfTheFirstCircuit(t *testing.T) {
	const ms = time.Millisecond
	p := abate.Policy{CircuitBreaker: breaker.Config{FailureRateThreshold: 0.5, RampUp: 5 * time.Second}.WithDefaults()}
	open := func(until time.Duration) abate.State {
		return abate.State{Breaker: breaker.Snapshot{State: breaker.Open, OpenUntil: until}}
	}
	half := func(probes int) abate.State {
		return abate.State{Breaker: breaker.Snapshot{State: breaker.HalfOpen, Probes: probes}}
	}
	ramp := abate.State{Breaker: breaker.Snapshot{State: breaker.RampUp}}
	forced := abate.State{Breaker: breaker.Snapshot{State: breaker.Open, Mode: breaker.ForcedOpen}}
	for _, tt := range []struct {
		states []abate.State
		want   string
	}{
		{[]abate.State{{}}, ""},
		{[]abate.State{open(10*time.Second + 40*ms)},
			"The next probe is sent in 40 ms; until then calls are refused at once."},
		{[]abate.State{open(13 * time.Second), open(11230 * ms), half(2)},
			"The next probe is sent in 1.2 s; until then calls are refused at once."},
		{[]abate.State{open(10 * time.Second)}, "The next call is sent as a probe."},
		{[]abate.State{open(9 * time.Second)}, "The next call is sent as a probe."},
		{[]abate.State{forced}, "It stays open until somebody takes that back."},
		{[]abate.State{half(1)},
			"1 probe is under way. A circuit closes when 3 probes have succeeded, and opens again when one fails."},
		{[]abate.State{half(1), half(3), ramp},
			"4 probes are under way. A circuit closes when 3 probes have succeeded, and opens again when one fails."},
		{[]abate.State{ramp}, "More calls are let through step by step, until after 5.0 s all are."},
	} {
		if got := abateadmin.CircuitNext(tt.states, &p, 10*time.Second); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.states, got, tt.want)
		}
	}
}

func TestAClosedCircuitSaysHowFarItIsFromOpen(t *testing.T) {
	c := breaker.Config{FailureRateThreshold: 0.5, SlowCallRateThreshold: 0.8}.WithDefaults()
	for want, b := range map[string]breaker.Snapshot{
		"": {Calls: 40},
		"The circuit opens when 50 % of attempts fail: of the last 40 it is 20 %.": {
			Calls: 40, FailureRate: 0.2, SlowRate: 1},
		"The circuit opens when 80 % of attempts are slow: of the last 40 it is 30 %.": {Calls: 40, SlowRate: 0.3},
	} {
		if got := abateadmin.Ahead(&b, &c); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
	if got := abateadmin.Ahead(&breaker.Snapshot{State: breaker.Open, Calls: 9, FailureRate: 1}, &c); got != "" {
		t.Errorf("open: %q", got)
	}
}

func TestAGateSaysWhatItIsShortOf(t *testing.T) {
	limited := inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 4, CPU: 0.9}}
	rate := inbound.Protection{}
	rate.RateLimit.Limit = ratelimit.Rate{Tokens: 5, Per: time.Second}
	refuse := func(reason error, why shed.Reason) inbound.GateEvent {
		return inbound.GateEvent{Kind: inbound.RequestRefused, At: 5 * sec, Attempt: 1, Reason: reason, Shed: why}
	}
	for _, tt := range []struct {
		protection  inbound.Protection
		event       inbound.GateEvent
		cause, next string
	}{
		{limited, refuse(abate.ErrOverloaded, shed.QueueFull),
			"More comes than the service can do: 0 of 4 places are taken, and 0 requests wait.",
			"Whoever was refused is told when to come back."},
		{limited, refuse(abate.ErrOverloaded, shed.CPU), "The processor is at 0 %.",
			"Fewer are refused as its load falls."},
		{rate, refuse(abate.ErrRateLimited, shed.None), "A caller sends more than its rate limit.",
			"Whoever was refused is told when to come back."},
		{limited, refuse(abate.ErrDeadline, shed.None), "Requests come whose callers no longer wait for the answer.",
			"Whoever was refused is told when to come back."},
	} {
		s := newStage(t, abateadmin.Config{})
		s.gate("g", tt.protection)
		for range 20 {
			s.asks["g"].ObserveGate(tt.event)
		}
		if got := s.RowAt("g", true, 10*sec).Story; got.Cause != tt.cause || got.Next != tt.next ||
			got.Effect != "In the last 10 seconds 20 requests ended: all were refused at once." {
			t.Errorf("%v: %+v", tt.event, got)
		}
	}
}
