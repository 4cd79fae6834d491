package export_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/export"
	"github.com/abate-go/abate/policyfile"
)

// unlistedAlerts are those of the alerts that are about what the file does not list.
func unlistedAlerts(alerts []readRule) []readRule {
	return slices.DeleteFunc(slices.Clone(alerts), func(a readRule) bool { return a.Labels["policy"] != "defaults" })
}

func TestWhatIsNotListedHasTheAlertsOfTheDefaults(t *testing.T) {
	const gates = " ArrivingRetries/warning ShedRate/warning ShedRate/critical IdempotencyKeysFull/warning " +
		"IdempotencyKeysFull/critical DeadLetterArrival/warning"
	const always = "DependencyFailing/critical OverrideInForce/warning ConnectionsHeldBack/warning"
	const retries = "DependencyDegraded/warning HighRetryRate/warning RequestAmplification/warning " +
		"RequestAmplification/critical RetryBudgetExhausted/warning ConcurrencySpike/warning "
	for _, c := range []struct{ about, policy, want string }{
		{"nothing is listed, and nothing said", "defaults: {maxRetries: 3}",
			retries + "CircuitBreakerOpen/critical " + always + gates},
		{"a service is", "services: {s: {maxRetries: 0}}",
			retries + "CircuitBreakerOpen/critical " + always + gates},
		{"a gate is", "protect: {s: {shed: {disabled: true}}}",
			retries + "CircuitBreakerOpen/critical " + always + gates},
		{"defaults without retries and breaker", "defaults: {maxRetries: 0, circuitBreaker: {disabled: true}}",
			"ConcurrencySpike/warning " + always + gates},
		{"defaults that are a fallback", "defaults: {maxRetries: 0, fallback: {status: 200}}",
			"ConcurrencySpike/warning CircuitBreakerOpen/warning DependencyFailing/warning OverrideInForce/warning " +
				"ConnectionsHeldBack/warning" + gates},
		{"defaults that switch all off", "defaults: {maxRetries: 0, circuitBreaker: {mode: forcedOpen}}",
			"ConcurrencySpike/warning CircuitForcedOpen/warning OverrideInForce/warning ConnectionsHeldBack/warning" + gates},
		{"defaults with a pace and letters", "defaults: {maxRetries: 0, circuitBreaker: {disabled: true}, pacing: " +
			"{perSecond: 1}, kafka: {tiers: [1s]}}",
			"ConcurrencySpike/warning " + always + gates},
		{"defaults that forget messages", "defaults: {maxRetries: 0, circuitBreaker: {disabled: true}, kafka: {tiers: " +
			"[1s], dltStrategy: drop}}",
			"ConcurrencySpike/warning " + always +
				strings.TrimSuffix(gates, " DeadLetterArrival/warning")},
	} {
		_, all := rulesFor(t, c.policy, export.RulesOptions{})
		if got := names(unlistedAlerts(all)); got != c.want+" DeadLetterFlood/warning" {
			t.Errorf("%s:\n got %s\nwant %s and DeadLetterFlood", c.about, got, c.want)
		}
		for _, a := range unlistedAlerts(all) {
			if _, fixed := a.Labels["service"]; fixed ||
				!strings.Contains(a.Annotations["description"], "{{ $labels.service }}") ||
				!strings.Contains(a.Annotations["description"], "those of the default protection") &&
					!strings.Contains(a.Annotations["description"], "those of defaults") {
				t.Errorf("%s: %s: %v %v", c.about, a.Alert, a.Labels, a.Annotations)
			}
		}
	}
}

func TestThresholdsOfWhatIsNotListedAreThoseOfTheDefaults(t *testing.T) {
	const file = "defaults: {maxRetries: 5, retryBudget: {ratio: 0.2}, bulkhead: {maxConcurrentCalls: 7}, " +
		"circuitBreaker: {maxWaitDurationInOpenState: 45s}}\n" +
		"services: {s: {retryBudget: {ratio: 0.05}}}\nprotect: {g: {shed: {maxRetryShare: 0.5}}}"
	_, alerts := rulesFor(t, file, export.RulesOptions{})
	for name, want := range map[string]string{
		"DependencyDegraded/warning": `abate:retry_share:ratio_rate1m{service!~"s"} > 0.0667`,
		"HighRetryRate/warning":      `abate:retry_share:ratio_rate1m{service!~"s"} > 0.133`,
		"RequestAmplification/warning": `abate:extra_attempts:rate1m{service!~"s"} > 0.22 * ` +
			`abate:first_attempts:rate1m{service!~"s"}`,
		"RequestAmplification/critical": `abate:amplification:ratio_rate1m{service!~"s"} > 3.61`,
		"RetryBudgetExhausted/warning":  `{reason="budget_exhausted", service!~"s"}`,
		"ConcurrencySpike/warning":      `abate_bulkhead_limit{service!~"s"} > 0.9`,
		"CircuitBreakerOpen/critical":   `abate:circuit_open:instances{service!~"s"}`,
		"DependencyFailing/critical":    `abate:call_failures:ratio_rate1m{service!~"s"} > 0.5`,
		"OverrideInForce/warning":       `abate_override{service!~"s"}`,
		"ConnectionsHeldBack/warning":   "abate_pacing_wait_seconds{service!~\"s\"}) > 0\n", // of ConnectionPolicy
		"ArrivingRetries/warning":       `abate:arriving_retries:ratio_rate1m{service!~"g"} > 0.1`,
		"ShedRate/critical":             `abate:critical_shed:ratio_rate1m{service!~"g"} > 0.05`,
		"IdempotencyKeysFull/critical":  `abate_idempotency_forgotten_total{service!~"g"}`,
		"DeadLetterArrival/warning":     `abate_kafka_dead_letters_total{service!~"s"}`,
	} {
		i := slices.IndexFunc(alerts, func(a readRule) bool {
			return a.Labels["policy"] == "defaults" && a.Alert+"/"+a.Labels["severity"] == name
		})
		if i < 0 || !strings.Contains(alerts[i].Expr, want) {
			t.Errorf("%s: no %s in %v", name, want, alerts[max(i, 0)])
		}
		if i >= 0 && name == "CircuitBreakerOpen/critical" && alerts[i].For != "150s" {
			t.Errorf("%s for %s", name, alerts[i].For)
		}
	}
}

// An alert of one kind and severity concerns a service once, whatever its name is.
func TestNoServiceHasAnAlertTwice(t *testing.T) {
	listed := []string{"a", "a|b", "a.c", "b", ".*", "[x", `q"\`, "größe", "a\nb", "(unlisted)", ""}
	file := policyOf(t, "services: {s: {}}\nprotect: {s: {idempotency: {methods: [POST]}}}")
	service, gate := file.Services[0], file.Protect[0]
	file.Services, file.Protect = nil, nil
	for i, name := range listed {
		if service.Name = name; i%2 == 0 { // what is listed as the one is not as the other
			file.Services = append(file.Services, service)
		}
		if gate.Name = name; i%3 == 0 {
			file.Protect = append(file.Protect, gate)
		}
	}
	written, err := export.PrometheusRules(file, export.RulesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, alerts := readRules(t, written)
	for _, name := range append(listed, "abc", "payment-service", "other", "A", "x", `q"`, "a\n") {
		times := map[string]int{}
		for _, a := range alerts {
			found := matchers.FindAllStringSubmatch(a.Expr, -1)
			about := matches(t, found[0], name)
			for _, m := range found {
				if matches(t, m, name) != about {
					t.Fatalf("%s: half of %s matches %q", a.Alert, a.Expr, name)
				}
			}
			key := a.Alert + "/" + a.Labels["severity"]
			if times[key] += 0; about {
				times[key]++
			}
		}
		// Nothing but the kinds that a policy has or has not: all policies here have the same, and the unlisted two more.
		for key, n := range times {
			more := strings.HasPrefix(key, "ConnectionsHeldBack") || strings.HasPrefix(key, "DeadLetter")
			if n != 1 && (n != 0 || !more) {
				t.Errorf("%q has %s %d times", name, key, n)
			}
		}
	}
}

func TestTheFileSaysWhomItIsAbout(t *testing.T) {
	file := policyOf(t, "services: {s: {}}")
	for onlyListed, want := range map[bool]string{
		false: "# What it lists has alerts of its own. All other services share",
		true:  "# What it does not list has no alerts here (--only-listed).\ngroups:",
	} {
		written, err := export.PrometheusRules(file, export.RulesOptions{OnlyListed: onlyListed})
		if err != nil || !strings.Contains(string(written), want) {
			t.Errorf("%v: %q is not in\n%.400s", err, want, written)
		}
		if _, alerts := readRules(t, written); onlyListed && len(unlistedAlerts(alerts)) > 0 {
			t.Errorf("only listed, and all the same %v", unlistedAlerts(alerts))
		}
	}
}

func TestDefaultsThatAreNoPolicyAreAnError(t *testing.T) {
	defaults := policyfile.Policy{Policy: abate.Policy{AttemptTimeout: -time.Second}}
	file := &policyfile.File{Name: "made.go", Defaults: defaults}
	if _, err := export.PrometheusRules(file, export.RulesOptions{}); err == nil ||
		!strings.Contains(err.Error(), "made.go: defaults: ") {
		t.Error(err)
	}
}
