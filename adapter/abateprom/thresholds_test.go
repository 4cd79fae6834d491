package abateprom_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/shed"
)

// Alerts are the same for every policy because each program shows where they begin. What a policy has not got is left
// out: zero would be a threshold.
func TestThePolicyInForceIsShownAsThresholds(t *testing.T) {
	usual := map[string]float64{
		"abate_policy_max_extra_attempts": 3, "abate_policy_retry_budget_ratio": 0.1,
		"abate_policy_retry_budget_failing_ratio": 0.1, "abate_policy_retry_budget_reserve": 10,
		"abate_policy_circuit_breaker_max_wait_seconds": 0, // it probes by what it learns
	}
	without := func(names ...string) map[string]float64 {
		left := maps.Clone(usual)
		maps.DeleteFunc(left, func(name string, _ float64) bool { return slices.Contains(names, name) })
		return left
	}
	and := func(all map[string]float64, name string, v float64) map[string]float64 {
		all = maps.Clone(all)
		all[name] = v
		return all
	}
	for _, c := range []struct {
		about string
		set   func(*abate.Policy)
		want  map[string]float64
	}{
		{"the default", func(*abate.Policy) {}, usual},
		{"no budget", func(p *abate.Policy) { p.RetryBudget.Disabled = true },
			without("abate_policy_retry_budget_ratio", "abate_policy_retry_budget_failing_ratio",
				"abate_policy_retry_budget_reserve")},
		{"hedges", func(p *abate.Policy) { p.Hedge = hedge.Config{Delay: time.Second, MaxHedges: 2} },
			and(usual, "abate_policy_max_extra_attempts", 5)},
		{"a bucket that time fills", func(p *abate.Policy) {
			p.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 10, RefillPerSecond: 2}
		}, and(and(without("abate_policy_retry_budget_failing_ratio"), "abate_policy_retry_budget_ratio", 0),
			"abate_policy_retry_budget_per_second", 2)},
		{"a circuit in shadow", func(p *abate.Policy) { p.CircuitBreaker.Mode = breaker.Shadow },
			without("abate_policy_circuit_breaker_max_wait_seconds")},
		{"a circuit that is forced open", func(p *abate.Policy) { p.CircuitBreaker.Mode = breaker.ForcedOpen },
			and(without("abate_policy_circuit_breaker_max_wait_seconds"), "abate_policy_circuit_breaker_forced_open", 1)},
		{"a circuit that goes by the clock", func(p *abate.Policy) {
			p.CircuitBreaker = breaker.Config{FailureThreshold: 5, MaxWaitDurationInOpenState: 45 * time.Second}
		}, and(usual, "abate_policy_circuit_breaker_max_wait_seconds", 45)},
		{"a fallback", func(p *abate.Policy) { p.Fallback.Status = 200 }, and(usual, "abate_policy_fallback", 1)},
		{"a pace", func(p *abate.Policy) { p.Pacing = pacing.Config{PerSecond: 1, MaxWait: 2 * time.Second} },
			and(usual, "abate_policy_pacing_max_wait_seconds", 2)},
		{"a pace that adapts", func(p *abate.Policy) { p.Pacing = pacing.Config{Adaptive: true} }, usual},
	} {
		m, p := metrics(t), abate.DefaultPolicy()
		c.set(&p)
		m.guard(t, "s", p)
		checkThresholds(t, c.about, m.scrape(t), c.want)
	}
	m := metrics(t)
	g := m.gate(t, "s", inbound.Protection{Shed: shed.Config{Concurrency: shed.Gradient, MaxRetryShare: 0.25}})
	checkThresholds(t, "a gate", m.scrape(t), map[string]float64{"abate_policy_shed_max_retry_share": 0.25})
	if err := g.Update(inbound.Protection{}); err != nil {
		t.Fatal(err)
	}
	checkThresholds(t, "a gate that lets all pass", m.scrape(t), nil)
}

func checkThresholds(t *testing.T, about string, p page, want map[string]float64) {
	t.Helper()
	got := map[string]float64{}
	for series, v := range p {
		if name, _, _ := strings.Cut(series, "{"); strings.HasPrefix(name, "abate_policy_") && name !=
			"abate_policy_changes_total" {
			got[name] = v
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v", about, got, want)
	}
}

// An open circuit says that the service does not answer; one that somebody wants open, or that refuses nothing, does
// not.
func TestACircuitThatSomebodyHasOpenedIsNotShownAsOpen(t *testing.T) {
	const open, state = `abate_circuit_breaker_open{service="s"}`, `abate_circuit_breaker_state{service="s"}`
	m := metrics(t)
	g := m.guard(t, "s", opening())
	m.scrape(t).want(t, map[string]float64{open: 0, state: 0})
	_ = failing(g, 0)
	m.scrape(t).want(t, map[string]float64{open: 1, state: 2})
	for _, o := range []abate.Override{abate.OverrideForcedOpen, abate.OverrideShadow, abate.OverrideDisabled} {
		if err := g.Override(o); err != nil {
			t.Fatal(err)
		}
		m.scrape(t).want(t, map[string]float64{open: 0})
	}
	for _, mode := range []breaker.Mode{breaker.Shadow, breaker.ForcedOpen} {
		m, p := metrics(t), opening()
		p.CircuitBreaker.Mode = mode
		_ = failing(m.guard(t, "s", p), 0)
		m.scrape(t).want(t, map[string]float64{open: 0, state: 2})
	}
}

// The sums that alerts read are those of the counters with labels.
func TestSumsAreThoseOfTheirParts(t *testing.T) {
	m := metrics(t)
	o := m.observer("s")
	for _, e := range events {
		o.Observe(e)
	}
	for _, e := range []abate.Event{
		{Kind: core.CallEnded, Attempt: 1, Class: abate.Success}, {Kind: core.CallEnded, Attempt: 1, Class: abate.Ignored},
		{Kind: core.CallEnded, Attempt: 1, Class: abate.Failure}, {Kind: core.CallEnded, Reason: abate.ErrCircuitOpen},
		{Kind: core.CallEnded, Reason: context.Canceled, Err: errors.New("left"), Class: abate.Ignored},
		{Kind: core.AttemptBegan, Attempt: 2},
	} {
		o.Observe(e)
	}
	for _, e := range gateEvents {
		m.gateObserver("s").ObserveGate(e)
	}
	m.gateObserver("s").ObserveGate(inbound.GateEvent{Kind: inbound.RequestAdmitted, Priority: shed.Sheddable})
	m.gateObserver("s").ObserveGate(inbound.GateEvent{Kind: inbound.RequestRefused, Reason: abate.ErrRateLimited})
	p := m.scrape(t)
	sum := func(metric, with string) (sum float64) {
		for series, v := range p.of(metric) {
			if strings.Contains(series, with) {
				sum += v
			}
		}
		return sum
	}
	calls := sum("abate_calls_total", "")
	failed := calls - sum("abate_calls_total", `outcome="success"`) - sum("abate_calls_total", `outcome="ignored"`)
	shedded := sum("abate_shed_total", `priority="CRITICAL`)
	p.want(t, map[string]float64{
		`abate_first_attempts_total{service="s"}`: 1,
		`abate_extra_attempts_total{service="s"}`: sum("abate_retries_total", "") + sum("abate_hedges_total", "") +
			sum("abate_hidden_retries_total", ""),
		`abate_calls_ended_total{service="s"}`:  calls,
		`abate_calls_failed_total{service="s"}`: failed,
		`abate_requests_arrived_total{service="s"}`: sum("abate_requests_admitted_total", "") +
			sum("abate_requests_refused_total", ""),
		`abate_requests_shed_total{service="s"}`: sum("abate_shed_total", ""),
		`abate_critical_requests_arrived_total{service="s"}`: sum("abate_requests_admitted_total", `priority="CRITICAL`) +
			shedded,
		`abate_critical_requests_shed_total{service="s"}`: shedded,
	})
	if calls < 6 || failed < 3 || shedded < 1 {
		t.Errorf("%v calls, %v of them failed, %v shed", calls, failed, shedded)
	}
}
