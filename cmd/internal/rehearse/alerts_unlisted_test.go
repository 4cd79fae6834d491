//go:build !race

package rehearse

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// unlistedAs renames the service of series.
func unlistedAs(name string, series []inputSeries) []inputSeries {
	renamed := make([]inputSeries, len(series))
	for i, s := range series {
		renamed[i] = inputSeries{
			strings.ReplaceAll(s.Series, `service="payment-service"`, "service="+strconv.Quote(name)), s.Values,
		}
	}
	return renamed
}

// labelled wants alerts of a name to be firing, each once, with a label or without it.
func labelled(name, severity, policy string, at time.Duration) exprTest {
	return exprTest{Expr: `count by (policy) (ALERTS{alertstate="firing", alertname="` + name + `", severity="` +
		severity + `"})`, At: prometheusTime(at), Samples: []sample{{policy, 1}}}
}

// The same storm and the same long outage, of a service that no file lists, seen as early and as long.
func TestTroubleOfAServiceThatIsNotListedIsSeenByTheDefaults(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const everybody = `{policy="defaults"}`
	naive := strings.NewReplacer("services:", "defaults:", "payment-service:", "", "\n", " ").Replace(naivePolicy)
	naive = "defaults:" + strings.SplitN(naive, "defaults:", 2)[1]
	storm := unlistedAs("a.b|c",
		simulated(t, alertWorld(naivePolicy, 25*time.Minute, "at: 10m, for: 60s, outage: payment-service, mode: hang"), 1))
	for about, policy := range map[string]string{
		"nothing is listed": naive,
		"others are": naive + "\nservices: {payment-service: {}, ab: {}, 'a.b': {}, c: {}}\nprotect: " +
			"{'a.b|c': {}}",
		"one with the same start": naive + "\nservices: {'a.b|c.d': {}, '.*': {}, 'a.*': {}}",
	} {
		begin, end := stormAt+2*time.Minute, stormAt+2*time.Minute+late
		exprs := append(firstFires("RequestAmplification", warn, begin, end),
			firstFires("HighRetryRate", warn, begin, end)...)
		exprs = append(exprs, noAlert(stormAt), labelled("RequestAmplification", pager, everybody, 25*time.Minute),
			labelled("RequestAmplification", warn, everybody, 25*time.Minute))
		rulesHold(t, rulesOf(t, policy), ruleTest{Name: about, Series: storm, Exprs: exprs})
	}
	rulesHold(t, rulesOf(t, naive+"\nservices: {s: {}}", "--only-listed"), ruleTest{
		Name: "only what is listed", Series: storm, Exprs: []exprTest{noAlert(25 * time.Minute)},
	})
}

// A service that is listed has its own thresholds, and is not looked at by those of the defaults, stricter or not.
func TestAListedServiceIsNotMeasuredByTheDefaults(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	storm := simulated(
		t, alertWorld(naivePolicy, 25*time.Minute, "at: 10m, for: 60s, outage: payment-service, mode: hang"), 1)
	rulesHold(t, rulesOf(t, naivePolicy), ruleTest{Name: "the same thresholds twice", Series: storm, Exprs: []exprTest{
		labelled("RequestAmplification", pager, "{}", 25*time.Minute),
		labelled("RequestAmplification", warn, "{}", 25*time.Minute), labelled("HighRetryRate", warn, "{}", 25*time.Minute)}})
	switchedOff := "services: {payment-service: {maxRetries: 0, circuitBreaker: {disabled: true}}}"
	rulesHold(t, rulesOf(t, switchedOff), ruleTest{
		Name: "its policy knows no such alert", Series: storm, Exprs: []exprTest{
			noAlertBut(25*time.Minute, "ConcurrencySpike|DependencyFailing"),
		},
	})
}

func TestAnHourOfHealthyTrafficOfUnlistedServicesRaisesNoAlert(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	policy := "defaults: {timeout: 5s, attemptTimeout: 1s, maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 10, " +
		"clients: 3}}\nservices: {other: {}}"
	series := unlistedAs("(unlisted)", simulated(t, alertWorld(guardedPolicy, time.Hour+time.Minute, blips...), 3))
	happened := someRetries
	happened.Samples = []sample{{`{job="checkout", service="(unlisted)"}`, 1}}
	rulesHold(t, rulesOf(t, policy), ruleTest{Series: series, Exprs: []exprTest{noAlert(time.Hour), happened}})
}

// Of every kind there is one alert for what is not listed, and it says of which service it is.
func TestEveryKindOfAlertOfWhatIsNotListedFires(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const name = `new "one"`
	s := func(metric, more, values string) inputSeries {
		return inputSeries{metric + "{job=\"shop\", service=" + strconv.Quote(name) + more + "}", values}
	}
	series := []inputSeries{
		s("abate_override", `, override="shadow"`, "1x200"), s("circuit_breaker_state", `, instance="a"`, "2x200"),
		s("abate_calls_total", `, instance="a", outcome="refused"`, "0+9x200"),
		s("abate_call_refusals_total", `, reason="rate_limited"`, "0+9x200"),
		s("abate_call_refusals_total", `, reason="budget_exhausted"`, "0+9x200"),
		s("abate_pacing_wait_seconds", "", "0.95x200"), s("abate_attempts_running", "", "5x159 90x40"),
		s("abate_kafka_dead_letters_total", `, topic="t", reason="permanent"`, "0+1x200"),
		s("abate_arriving_retry_ratio", "", "0.4x200"),
		s("abate_requests_admitted_total", `, priority="CRITICAL"`, "0+800x200"),
		s("abate_requests_refused_total", `, reason="overloaded"`, "0+200x200"),
		s("shed_total", `, reason="queue-full", priority="CRITICAL"`, "0+200x200"),
	}
	var want []wantAlert
	test := ruleTest{Series: series}
	for _, kind := range []struct {
		name, severity string
	}{{"OverrideInForce", warn}, {"RetryBudgetExhausted", warn}, {"ConnectionsHeldBack", warn}, {"ConcurrencySpike", warn},
		{"DeadLetterArrival", warn}, {"ArrivingRetries", warn}, {"ShedRate", warn}, {"ShedRate", pager},
		{"CircuitBreakerOpen", pager}} {
		test.Exprs = append(test.Exprs,
			exprTest{Expr: fmt.Sprintf(`count by (service, policy) (ALERTS{alertstate="firing", alertname=%q, severity=%q})`,
				kind.name, kind.severity), At: "45m",
				Samples: []sample{{`{policy="defaults", service=` + strconv.Quote(name) + `}`, 1}}})
	}
	want = append(
		want, wantAlert{Labels: map[string]string{"severity": warn, "policy": "defaults", "service": name, "job": "shop",
			"override": "shadow"}, Annotations: map[string]string{
			"summary": "The circuit of " + name + " is shadow by hand",
			"description": "Somebody has overridden the circuit of " + name +
				" with shadow in 1 instances. The override stays until somebody removes it; a reload of the policy does not. " +
				"The policy file does not list " + name + ": the thresholds are those of defaults.",
			"runbook_url": "https://github.com/abate-go/abate/blob/main/docs/runbooks/OverrideInForce.md"}})
	test.Alerts = []alertTest{{At: "45m", Name: "OverrideInForce", Alerts: want}}
	rules := rulesOf(t, "services: {payment-service: {}}\nprotect: {orders: {}}")
	rulesHold(t, rules, test)
}

// Names that are patterns, or look like them, are names: each is left to its own alerts, and what they would match as
// patterns is not.
func TestOddNamesAreNoPatterns(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	services := map[string]any{}
	for _, name := range oddNames {
		services[name] = map[string]any{}
	}
	policy, err := yaml.Marshal(map[string]any{"services": services})
	if err != nil {
		t.Fatal(err)
	}
	var series []inputSeries
	unlisted := []string{
		"a", "b", "bxy", "a|bxy", "|b.*", "payment", "payment-services", "$", "say hi", "PAYMENT-SERVICE", "other",
	}
	for _, name := range append(unlisted, oddNames...) {
		series = append(series, inputSeries{
			"abate_override{job=\"shop\", override=\"shadow\", service=" + strconv.Quote(name) + "}", "1x100",
		})
	}
	rules := rulesOf(t, string(policy))
	rulesHold(t, rules, ruleTest{Series: series, Exprs: []exprTest{
		{Expr: `count by (policy) (ALERTS{alertstate="firing"})`, At: "20m", Samples: []sample{
			{"{}", float64(len(oddNames))}, {`{policy="defaults"}`, float64(len(unlisted))},
		}},
		{Expr: `count by (service) (ALERTS{alertstate="firing"}) > 1`, At: "20m"}, // no service twice
	}})
	promtoolAccepts(t, rules)
}
