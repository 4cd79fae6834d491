package registry

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/abate-go/abate/core"
)

type guardGauges = []Gauge[core.Policy, core.State]

// Guard are the policies of a guard that can be switched on and off.
var Guard = [...]Policy[core.Policy, core.State]{
	{
		Key:     "retryBudget",
		Page:    "retry-budget",
		Enabled: func(p *core.Policy) bool { return p.RetryBudget.Enabled() },
		Gauges: guardGauges{{Name: "abate_retry_budget_balance",
			Help: "Retries and hedges that could be sent now. Near 0 the budget holds back a storm: fix the service, do not " +
				"raise the budget.",
			Read: func(_ *core.Policy, s *core.State) float64 { return s.Budget },
			Instrument: Instrument{Name: "abate.retry_budget.balance", Unit: "{attempt}",
				Description: "Retries and hedges that could be sent now."}}},
		Facts: func(p *core.Policy, s *core.State, say Say) {
			if p.RetryBudget.Enabled() || p.Budget != nil {
				say("Retry budget", "retries and hedges that could be sent now", "%.1f", s.Budget)
			}
		},
		Learned: func(_ *core.Policy, s *core.State) string {
			return fmt.Sprintf("%.1f retries and hedges could be sent now.", s.Budget)
		},
	},
	{ // what is shown of it is its own: a column of the page, and metrics that are there even while it is off
		Key:     "circuitBreaker",
		Needs:   "threshold",
		Page:    "circuit-breaker",
		Enabled: func(p *core.Policy) bool { return p.CircuitBreaker.Enabled() },
		Gauges: guardGauges{{Name: "abate_circuit_breaker_held",
			Help: "Calls that wait for an open circuit. Above 0 the dependency does not answer: see " +
				"abate_circuit_breaker_state.",
			Read: func(_ *core.Policy, s *core.State) float64 { return float64(s.Breaker.Learned.Held) },
			Instrument: Instrument{"abate.circuit_breaker.held", "{call}",
				"Calls that wait for an open circuit.", true}}},
		Panels: []Panel{{Title: "Calls that wait for a circuit", Unit: "none", Metric: "abate_circuit_breaker_held",
			Runbook: "CircuitBreakerOpen",
			Help:    "Above 0 the service does not answer: its circuit is open, and calls wait for the next probe."}},
		Learned: func(_ *core.Policy, s *core.State) string { return s.Breaker.Explain() },
	},
	{
		Key:     "bulkhead",
		Needs:   "maxConcurrentCalls",
		Page:    "bulkhead",
		Enabled: func(p *core.Policy) bool { return p.Bulkhead.Enabled() },
		Gauges: guardGauges{
			{Name: "abate_bulkhead_running",
				Help: "Calls that hold a permit of the bulkhead; in back-off they hold none, unless the policy says so. At " +
					"abate_bulkhead_limit, see abate_bulkhead_queued.",
				Read: func(_ *core.Policy, s *core.State) float64 { return float64(s.Bulkhead.InFlight) },
				Instrument: Instrument{"abate.bulkhead.running", "{call}",
					"Calls that hold a permit of the bulkhead.", true}},
			{Name: "abate_bulkhead_queued",
				Help: "Calls that wait for a permit. Above 0 for long means that the service is slower than its load asks for: " +
					"look at its latency first.",
				Read: func(_ *core.Policy, s *core.State) float64 { return float64(s.Bulkhead.Queued) },
				Instrument: Instrument{"abate.bulkhead.queued", "{call}",
					"Calls that wait for a permit of the bulkhead.", true}},
			{Name: "abate_bulkhead_limit",
				Help: "Permits that the bulkhead has: as the policy says, or as an adaptive limit has learned. +Inf while that " +
					"has seen no reason for one.",
				Read: func(_ *core.Policy, s *core.State) float64 { return permits(s) },
				Instrument: Instrument{"abate.bulkhead.limit", "{call}",
					"Permits that the bulkhead has, as the policy says or as it has learned.", true}},
		},
		Panels: []Panel{
			{Title: "Bulkheads", Runbook: "ConcurrencySpike", Unit: "percentunit", Warn: 0.8, Bad: 1,
				Metric: "abate_bulkhead_running", Of: "abate_bulkhead_limit",
				Help: "Permits in use. At 100 % calls queue or are refused: look at the latency of the service first, then at " +
					"maxConcurrentCalls."},
			{Title: "Calls that queue for a permit", Unit: "none", Metric: "abate_bulkhead_queued",
				Help: "Above 0 for long means that the service is slower than its load asks for: look at its latency first."},
		},
		Facts: func(p *core.Policy, s *core.State, say Say) {
			if p.Bulkhead.Enabled() {
				sayBulkhead(s, say)
			}
		},
		Learned: func(_ *core.Policy, s *core.State) string {
			if s.Bulkhead.Limit == 0 {
				return fmt.Sprintf("There is no limit yet: nothing asks for one. %d calls are under way.", s.Bulkhead.InFlight)
			}
			return fmt.Sprintf("%d of %d permits are taken, and %d calls wait for one.", s.Bulkhead.InFlight,
				s.Bulkhead.Limit, s.Bulkhead.Queued)
		},
	},
	{
		Key:     "rateLimit",
		Needs:   "limit",
		Page:    "rate-limit",
		Enabled: func(p *core.Policy) bool { return p.RateLimit.Enabled() },
		Gauges: guardGauges{{Name: "abate_attempt_rate_limit",
			Help: "Attempts per second that the rate limit sends at most, as the policy says. Refusals are in " +
				"abate_call_refusals_total as rate_limited.",
			Read: func(p *core.Policy, _ *core.State) float64 { return p.RateLimit.Limit.PerSecond() }}},
		Panels: []Panel{{Title: "Rate limits of attempts", Unit: "percentunit", Warn: 0.8, Bad: 1,
			Aggregate: Rate, Metric: "abate_attempts_total", Of: "abate_attempt_rate_limit",
			Help: "Attempts per second as a share of what the rate limits allow, all instances together. At 100 % attempts " +
				"wait or are refused as rate_limited: ask the service's owners for more, or call less."}},
	},
	{
		Key:     "throttle",
		Needs:   "k",
		Page:    "throttle",
		Enabled: func(p *core.Policy) bool { return p.Throttle.Enabled() },
		Gauges: guardGauges{{Name: "abate_throttle_rejection_ratio",
			Help: "Share of attempts that the throttle refuses to send now. Above 0 the service refuses or fails more than " +
				"the throttle's k allows for: fix the service.",
			Read: func(_ *core.Policy, s *core.State) float64 { return s.Throttle.Rejection }}},
		Panels: []Panel{{Title: "Throttles", Unit: "percentunit", Max: 1, Warn: 0.01, Bad: 0.5,
			Aggregate: Worst, Metric: "abate_throttle_rejection_ratio",
			Help: "Share of attempts that the throttle does not send, in the worst instance. The service refuses or fails " +
				"more than k allows for: fix it."}},
		Facts: func(p *core.Policy, s *core.State, say Say) {
			if p.Throttle.Enabled() {
				say("Throttle", "of calls are held back", "%.0f %%", 100*s.Throttle.Rejection)
			}
		},
		Learned: func(_ *core.Policy, s *core.State) string {
			return fmt.Sprintf("The service accepted %.0f of the last %.0f attempts, so %.0f %% are held back.",
				s.Throttle.Accepts, s.Throttle.Requests, 100*s.Throttle.Rejection)
		},
		Warning: func(s *core.State) string {
			if s.Throttle.Rejection > 0.01 {
				return "the throttle holds calls back"
			}
			return ""
		},
	},
	{ // its panels are about connections, and stand in a row of their own
		Key:     "pacing",
		Needs:   "perSecond or adaptive",
		Page:    "pacing",
		Enabled: func(p *core.Policy) bool { return p.Pacing.Enabled() },
		Gauges: guardGauges{
			{Name: "abate_pacing_per_second",
				Help: "Attempts per second that the pacing sends at most now, in this process. Below perSecond of the policy it " +
					"still ramps up after an outage; no action. 0 for an adaptive pace.",
				Read: func(_ *core.Policy, s *core.State) float64 { return s.Pacing.PerSecond }},
			{Name: "abate_pacing_wait_seconds",
				Help: "How long an attempt that asked now would wait for its token. Near maxWait of the pacing attempts are " +
					"refused as rate_limited: after an outage that ends by itself, on other days perSecond is too low.",
				Read: func(_ *core.Policy, s *core.State) float64 { return s.Pacing.Wait.Seconds() },
				Instrument: Instrument{Name: "abate.pacing.wait", Unit: "s",
					Description: "How long an attempt that asked now would wait for its token."}},
		},
		Facts: func(p *core.Policy, s *core.State, say Say) {
			if p.Pacing.Adapts() && s.Pacing.AtOnce > 0 {
				say("Pace", "attempts at once, after a failure", "%.0f", float64(s.Pacing.AtOnce))
			}
			if p.Pacing.Paces() {
				say("Pace", "attempts a second", "%.1f", s.Pacing.PerSecond)
			}
		},
		Learned: func(_ *core.Policy, s *core.State) string {
			return fmt.Sprintf("At most %.1f attempts a second are sent now.", s.Pacing.PerSecond)
		},
	},
	{
		Key:     "hedge",
		Needs:   "delay or quantile",
		Page:    "hedging",
		Enabled: func(p *core.Policy) bool { return p.Hedge.Enabled() },
		Facts: func(p *core.Policy, s *core.State, say Say) {
			if p.Hedge.Enabled() && s.Hedge.Delay > 0 {
				say("Hedge after", "", "%v", s.Hedge.Delay.Round(10*time.Microsecond))
			}
		},
		Learned: func(_ *core.Policy, s *core.State) string {
			if !s.Hedge.Learned || s.Hedge.Delay == 0 {
				return ""
			}
			return fmt.Sprintf("A copy is sent after %v, learned from %d attempts.",
				s.Hedge.Delay.Round(10*time.Microsecond), s.Hedge.Samples)
		},
	},
}

// permits is how many permits a bulkhead has.
func permits(s *core.State) float64 {
	if s.Bulkhead.Limit == 0 {
		return math.Inf(1)
	}
	return float64(s.Bulkhead.Limit)
}

// sayBulkhead says how full a bulkhead is, and of a limit that is learned why it is in force.
func sayBulkhead(s *core.State, say Say) {
	b := &s.Bulkhead
	queued := strconv.Itoa(b.Queued) + " queued"
	if b.Away > 0 {
		queued += fmt.Sprintf(", %d in back-off", b.Away)
	}
	switch l := &b.Learned; {
	case b.Limit == 0:
		say("Bulkhead", "no limit: nothing asks for one", "%d", b.InFlight)
	case l.Bound && l.Late == 0:
		say("Bulkhead", queued+"; limit learned: answers come in time again, it grows", "%d of %d", b.InFlight, b.Limit)
	case l.Bound:
		say("Bulkhead", fmt.Sprintf("%s; limit learned: the last %d attempts took longer than half of %v", queued, l.Late,
			l.Target.Round(time.Millisecond)), "%d of %d", b.InFlight, b.Limit)
	default:
		say("Bulkhead", queued, "%d of %d", b.InFlight, b.Limit)
	}
}
