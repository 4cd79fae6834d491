//go:build !race

package rehearse

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The two policies that the alerts are tried with: the one that so many have, and abate's own with a time limit.
const (
	naivePolicy = `
services:
  payment-service: {attemptTimeout: 1s, maxRetries: 3, backoff: fixed, initialDelay: 1s, jitter: none,
	retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}
`
	guardedPolicy = `
services:
  payment-service: {timeout: 5s, attemptTimeout: 1s, maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 10, clients: 3}}
`
)

// alertWorld is a scenario: three programs that send 60 requests a second to a service that can do 100.
func alertWorld(policy string, duration time.Duration, faults ...string) string {
	return fmt.Sprintf("duration: %v\nwarmUp: 0s\nclients:\n%sservices:\n  payment-service: {workers: 10, serviceTime: "+
		"exponential 100ms, queue: {limit: 1000}}\nfaults:\n%svariants:\n  only:\n    policy:\n      %s\n",
		duration, checkoutPods(60), "  - {"+strings.Join(faults, "}\n  - {")+"}\n",
		strings.ReplaceAll(strings.TrimSpace(policy), "\n", "\n      "))
}

// blips is what happens in an hour in which all is well: one request in 200 fails, and now and then more for a moment;
// a garbage collection, a lost switch, a deployment pod by pod, a crash, a busy quarter of an hour.
var blips = []string{
	"at: 0s, for: 1h, errors: payment-service, rate: 0.005",
	"at: 3m, for: 5s, outage: payment-service, mode: fail",
	"at: 8m, for: 10s, errors: payment-service, rate: 0.3",
	"at: 12m, for: 5s, outage: payment-service, mode: hang",
	"at: 16m, for: 20s, restart: checkout-1",
	"at: 17m, for: 20s, restart: checkout-2",
	"at: 18m, for: 20s, restart: checkout-3",
	"at: 22m, for: 30s, slowdown: payment-service, factor: 1.4",
	"at: 26m, for: 15s, loss: payment-service, rate: 0.1",
	"at: 30m, for: 10s, outage: payment-service, mode: refuse",
	"at: 35m, for: 15m, surge: checkout-1, factor: 2",
	"at: 52m, for: 3s, restart: payment-service",
	"at: 56m, for: 60s, errors: payment-service, rate: 0.2",
}

// someRetries wants the blips to have been there: without them no alert would be no wonder.
var someRetries = exprTest{
	Expr: `max by (job, service) (max_over_time(abate:ratio{of="retries"}[1h])) > bool 0.05`, At: "3600s",
	Samples: []sample{{`{job="checkout", service="payment-service"}`, 1}},
}

func TestAnHourOfHealthyTrafficWithBlipsRaisesNoAlert(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 1
	}
	rules := rulesOf(t, guardedPolicy)
	for seed := range seeds {
		rulesHold(t, rules, ruleTest{
			Name:   fmt.Sprintf("seed %d", seed),
			Series: simulated(t, alertWorld(guardedPolicy, time.Hour+time.Minute, blips...), seed),
			Exprs:  []exprTest{noAlert(time.Hour), someRetries},
		})
	}
}

// stormAt is when the trouble begins, and late how much later than its "for" an alert may fire.
const (
	stormAt = 10 * time.Minute
	late    = 30 * time.Second
)

func TestAStormFiresWithinHalfAMinuteOfItsForAndGoesOn(t *testing.T) {
	series := simulated(
		t, alertWorld(naivePolicy, 25*time.Minute, "at: 10m, for: 60s, outage: payment-service, mode: hang"), 1)
	begin, end := stormAt+2*time.Minute, stormAt+2*time.Minute+late
	exprs := append(firstFires("HighRetryRate", warn, begin, end),
		firstFires("RequestAmplification", pager, stormAt+time.Minute, stormAt+2*time.Minute)...)
	exprs = append(exprs, notFiring("RequestAmplification", warn, 25*time.Minute)) // what is a page is no ticket besides
	// long after the outage: the storm feeds itself
	exprs = append(exprs, noAlert(stormAt), firing("RequestAmplification", pager, 25*time.Minute))
	rulesHold(t, rulesOf(t, naivePolicy), ruleTest{Series: series, Exprs: exprs})
}

func TestTheSameOutageUnderAGuardRaisesNoAlert(t *testing.T) {
	series := simulated(
		t, alertWorld(guardedPolicy, 25*time.Minute, "at: 10m, for: 60s, outage: payment-service, mode: hang"), 1)
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Series: series, Exprs: []exprTest{noAlert(25 * time.Minute)}})
}

// A process that starts anew counts from zero. That is no storm, and ends none.
func TestRestartsNeitherRaiseNorEndAnAlert(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	all := func(at string) (faults []string) {
		for i := range 3 {
			faults = append(faults, fmt.Sprintf("at: %s, for: 20s, restart: checkout-%d", at, i+1))
		}
		return faults
	}
	healthy := simulated(t, alertWorld(guardedPolicy, 25*time.Minute, append(all("10m"), all("15m10s")...)...), 1)
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Series: healthy, Exprs: []exprTest{noAlert(25 * time.Minute)}})

	storm := simulated(t, alertWorld(naivePolicy, 25*time.Minute, "at: 10m, for: 10m, errors: payment-service",
		"at: 15m, for: 20s, restart: checkout-1", "at: 16m, for: 20s, restart: checkout-2"), 1)
	var through []exprTest
	for at := 13 * time.Minute; at < 20*time.Minute; at += 5 * time.Second {
		through = append(through, firing("RequestAmplification", pager, at))
	}
	rulesHold(t, rulesOf(t, naivePolicy), ruleTest{Series: storm, Exprs: through})
}

func TestALongOutageUnderAGuardOpensTheCircuitAndSaysSo(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	series := simulated(
		t, alertWorld(guardedPolicy, 30*time.Minute, "at: 10m, for: 10m, outage: payment-service, mode: hang"), 1)
	exprs := append(firstFires("CircuitBreakerOpen", pager, stormAt+2*time.Minute, stormAt+2*time.Minute+late),
		noAlertBut(30*time.Minute, "CircuitBreakerOpen"),
		firing("CircuitBreakerOpen", pager, 20*time.Minute), notFiring("CircuitBreakerOpen", pager, 22*time.Minute))
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Series: series, Exprs: exprs})
}

// Retries hide 6 % failures: who looks at errors sees nothing yet.
func TestADegradedDependencyIsSeenBeforeItsErrorsAre(t *testing.T) {
	series := simulated(
		t, alertWorld(guardedPolicy, 30*time.Minute, "at: 10m, for: 15m, errors: payment-service, rate: 0.06"), 1)
	exprs := append(firstFires("DependencyDegraded", warn, stormAt+5*time.Minute, stormAt+6*time.Minute),
		noAlertBut(30*time.Minute, "DependencyDegraded"),
		exprTest{Expr: "max by (job, service) (max_over_time(abate:ratio{of=\"failed_calls\"}[30m])) < bool 0.02",
			At: "1800s", Samples: []sample{
				{`{job="checkout", service="payment-service"}`, 1},
			}},
		notFiring("DependencyDegraded", warn, 27*time.Minute))
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Series: series, Exprs: exprs})
}

// 30 % failures are too few for the circuit and too many for the budget, which holds the load where it is.
func TestABudgetAtItsEndSaysSoAndNothingIsAmplified(t *testing.T) {
	series := simulated(
		t, alertWorld(guardedPolicy, 30*time.Minute, "at: 10m, for: 15m, errors: payment-service, rate: 0.3"), 1)
	// Most of a window has to pass before most of the budget is seen to be used.
	exprs := append(firstFires("HighRetryRate", warn, stormAt+2*time.Minute, stormAt+3*time.Minute+late),
		firstFires("RetryBudgetExhausted", warn, stormAt+5*time.Minute, stormAt+5*time.Minute+late)...)
	exprs = append(exprs, noAlertBut(30*time.Minute, "HighRetryRate|RetryBudgetExhausted"),
		notFiring("RetryBudgetExhausted", warn, 27*time.Minute))
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Series: series, Exprs: exprs})
}

// What fails at once opens no circuit and is hardly retried: the calls that fail are all there is to see.
func TestAServiceThatFailsAtOnceIsSeenThoughNoCircuitOpens(t *testing.T) {
	series := simulated(
		t, alertWorld(guardedPolicy, 30*time.Minute, "at: 10m, for: 10m, outage: payment-service, mode: fail"), 1)
	// half of a window has to pass before half of its calls have failed
	begin := stormAt + 2*time.Minute + 30*time.Second - scraping
	exprs := append(firstFires("DependencyFailing", pager, begin, begin+scraping+late),
		noAlertBut(30*time.Minute, "DependencyFailing|RetryBudgetExhausted"),
		firing("DependencyFailing", pager, 20*time.Minute), notFiring("DependencyFailing", pager, 22*time.Minute),
		exprTest{Expr: "max_over_time(abate:service{of=\"circuits_open\"}[30m]) > 0", At: "1800s"})
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Series: series, Exprs: exprs})
}

// Two minutes are what somebody is woken for. A service that fails for less, again and again, wakes nobody.
func TestShortFailuresAgainAndAgainWakeNobody(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	var failures []string
	const end = 100 * time.Minute
	for at := 10 * time.Minute; at < end; at += 10 * time.Minute {
		length := (10*time.Minute + at%(40*time.Minute)) * 3 / 80 // up to a minute and a half
		failures = append(failures, fmt.Sprintf("at: %v, for: %v, outage: payment-service, mode: fail", at, length))
	}
	world := strings.ReplaceAll(alertWorld(guardedPolicy, end, failures...), "rate: 20,", "rate: 2,")
	failed := exprTest{Expr: "max by (job, service) (max_over_time(abate:ratio{of=\"failed_calls\"}[100m])) > bool 0.9",
		At:      "6000s",
		Samples: []sample{{`{job="checkout", service="payment-service"}`, 1}}}
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{
		Series: simulated(t, world, 1), Exprs: []exprTest{noAlert(end), failed},
	})
}
