package abateprom_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/pacing"
)

// opening is a policy whose breaker opens at the first failure, for a second or a little more.
func opening() abate.Policy {
	return abate.Policy{CircuitBreaker: breaker.Config{
		FailureThreshold: 1, WaitDurationInOpenState: time.Second, SuccessThreshold: 1, RampUp: time.Minute, RampUpFrom: 1,
	}}
}

// TestBreakerStateIsTheNumberThatAlertsCompareWith: 2 is open, and nothing else is.
func TestBreakerStateIsTheNumberThatAlertsCompareWith(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "payment-service", opening())
	var probe core.Call
	for _, step := range []struct {
		do    func()
		state breaker.State
		want  float64
	}{
		{func() {}, breaker.Closed, 0},
		{func() { _ = failing(g, 0) }, breaker.Open, 2},
		{func() { g.Begin(&probe, 5*time.Second, core.NoDeadline) }, breaker.HalfOpen, 1},
		{func() { probe.AttemptDone(5*time.Second, 0, abate.Outcome{}) }, breaker.RampUp, 1},
		{func() { _ = failing(g, 6*time.Second) }, breaker.Open, 2},
		{func() {
			for now := 10 * time.Second; now < 10*time.Minute; now += 30 * time.Second {
				_ = play(g, now, func(int) abate.Outcome { return abate.Outcome{} })
			}
		}, breaker.Closed, 0},
	} {
		step.do()
		if got := g.State().Breaker.State; got != step.state {
			t.Fatalf("the breaker is %v, want %v", got, step.state)
		}
		m.fetch(t).want(t, map[string]float64{`circuit_breaker_state{service="payment-service"}`: step.want})
	}
	m.fetch(t).want(t, map[string]float64{
		`abate_circuit_breaker_transitions_total{service="payment-service",to="open"}`:      2,
		`abate_circuit_breaker_transitions_total{service="payment-service",to="half-open"}`: 2,
		`abate_circuit_breaker_transitions_total{service="payment-service",to="ramp-up"}`:   2,
		`abate_circuit_breaker_transitions_total{service="payment-service",to="closed"}`:    1,
	})
}

func TestWhatThePolicySwitchedOffIsLeftOut(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", abate.Policy{})
	p := m.scrape(t)
	p.want(t, map[string]float64{`circuit_breaker_state{service="s"}`: 0})
	for _, metric := range []string{"abate_retry_budget_balance", "abate_bulkhead_running", "abate_bulkhead_queued",
		"abate_bulkhead_limit",
		"abate_pacing_per_second", "abate_pacing_wait_seconds"} {
		if got := p.of(metric); len(got) != 0 {
			t.Errorf("a guard without budget, bulkhead and pacing shows %v", got)
		}
	}
	policy := abate.Policy{Bulkhead: bulkheadOf(2), RetryBudget: budget.Config{Kind: budget.Tokens, MaxTokens: 5}}
	policy.Bulkhead.MaxQueue, policy.Bulkhead.NoQueue = 1, false
	m.Adjust("s", &policy)
	if err := g.Update(policy); err != nil {
		t.Fatal(err)
	}
	var calls [3]core.Call
	for i := range calls[:2] {
		g.Begin(&calls[i], 0, core.NoDeadline)
	}
	g.Begin(&calls[2], 0, core.NoDeadline)
	if step := calls[2].Enqueue(0, &bulkhead.Waiter{Wake: func() {}}); step.Action != core.Queued {
		t.Fatalf("the third call does not wait: %+v", step)
	}
	m.scrape(t).want(t, map[string]float64{
		`abate_bulkhead_running{service="s"}`: 2, `abate_bulkhead_queued{service="s"}`: 1,
		`abate_bulkhead_limit{service="s"}`:       2,
		`abate_retry_budget_balance{service="s"}`: 5,
	})
}

// TestAForgottenOverrideIsSeen: an alert compares with 1, and a dashboard needs the 0 before it.
func TestAForgottenOverrideIsSeen(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", opening())
	for _, now := range []abate.Override{
		abate.NoOverride, abate.OverrideForcedOpen, abate.OverrideShadow, abate.OverrideDisabled, abate.NoOverride,
	} {
		if err := g.Override(now); err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for _, o := range []abate.Override{abate.OverrideForcedOpen, abate.OverrideDisabled, abate.OverrideShadow} {
			want[fmt.Sprintf(`abate_override{override=%q,service="s"}`, string(o))] = 0
		}
		if now != abate.NoOverride {
			want[fmt.Sprintf(`abate_override{override=%q,service="s"}`, string(now))] = 1
		}
		p := m.scrape(t)
		p.want(t, want)
		if n := len(p.of("abate_override")); n != len(want) {
			t.Errorf("%d series of overrides, want %d", n, len(want))
		}
	}
	m.scrape(t).want(t, map[string]float64{`abate_policy_changes_total{service="s"}`: 5})
}

// TestThePaceIsShownAsItIsNow: a tenth of it at the beginning of a ramp-up, all of it after.
func TestThePaceIsShownAsItIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics(t)
		g := m.guard(t, "db",
			abate.Policy{Pacing: pacing.Config{PerSecond: 10, RampUp: 10 * time.Second, RampUpFrom: 0.1, MaxWait: time.Minute},
				Rand: func() uint64 { return 0 }})
		shows := func(perSecond float64, waits bool) {
			t.Helper()
			state := g.State().Pacing
			m.scrape(t).want(t, map[string]float64{
				`abate_pacing_per_second{service="db"}`:   state.PerSecond,
				`abate_pacing_wait_seconds{service="db"}`: state.Wait.Seconds(),
			})
			if state.PerSecond != perSecond || (state.Wait > 0) != waits {
				t.Errorf("the pace is %+v, want %v per second, and a wait: %v", state, perSecond, waits)
			}
		}
		for _, o := range []abate.Override{abate.OverrideForcedOpen, abate.NoOverride} { // an outage, and its end
			if err := g.Override(o); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, nil }); err != nil {
			t.Fatal(err)
		}
		shows(1, true)
		time.Sleep(5 * time.Second)
		shows(5.5, false)
		time.Sleep(time.Minute)
		shows(10, false)
	})
}
