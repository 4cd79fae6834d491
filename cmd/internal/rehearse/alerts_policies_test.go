//go:build !race

package rehearse

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policyfile"
)

// renamed gives series of payment-service another service.
func renamed(name string, series []inputSeries) []inputSeries {
	all := slices.Clone(series)
	for i := range all {
		all[i].Series = strings.ReplaceAll(all[i].Series, `service="payment-service"`, "service="+strconv.Quote(name))
	}
	return all
}

// withoutPolicy leaves out what series say of policies.
func withoutPolicy(series []inputSeries) []inputSeries {
	return slices.DeleteFunc(slices.Clone(series), func(s inputSeries) bool {
		return strings.HasPrefix(s.Series, "abate_policy_")
	})
}

// policySeries are the series in which programs show their policies for a time: each service of a policy file, as each
// of these programs is under it. more are labels of the program, such as job="shop".
func policySeries(t testing.TB, policy string, end time.Duration, more ...string) (all []inputSeries) {
	t.Helper()
	file, err := policyfile.Parse("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	guards, gates := map[string]abate.Policy{}, map[string]inbound.Protection{}
	for _, s := range file.Services {
		guards[s.Name] = s.Policy.Policy
	}
	for _, p := range file.Protect {
		gates[p.Name] = p.Protection.Protection
	}
	families, err := shownPolicies(t, guards, gates).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !strings.HasPrefix(family.Desc.Name, "abate_policy_") || family.Kind != series.GaugeKind {
			continue
		}
		for _, m := range family.Samples {
			for _, labels := range more {
				all = append(all, inputSeries{fmt.Sprintf("%s{service=%q, %s}", family.Desc.Name, m.Values[0], labels),
					fmt.Sprintf("%vx%d", m.Value, end/scraping)})
			}
		}
	}
	return all
}

// theStorm is the naive policy's, in which a service hangs for a minute and never recovers.
func theStorm(t *testing.T) []inputSeries {
	t.Helper()
	return simulated(
		t, alertWorld(naivePolicy, 25*time.Minute, "at: 10m, for: 60s, outage: payment-service, mode: hang"), 1)
}

// The same storm of a guard that nobody has added to the metrics, so that it shows no policy, is seen as early and as
// long, by the default one.
func TestTroubleOfAGuardThatShowsNoPolicyIsSeenByTheDefaultPolicy(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	storm := renamed("a.b|c", withoutPolicy(theStorm(t)))
	begin := stormAt + 2*time.Minute
	exprs := append(firstFires("HighRetryRate", warn, begin, begin+late),
		firstFires("RequestAmplification", pager, stormAt+time.Minute, stormAt+2*time.Minute)...)
	exprs = append(exprs, noAlert(stormAt), firing("RequestAmplification", pager, 25*time.Minute))
	rulesHold(t, rulesOf(t, naivePolicy), ruleTest{Name: "not added", Series: storm, Exprs: exprs})

	blips := renamed("(unlisted)",
		withoutPolicy(simulated(t, alertWorld(guardedPolicy, time.Hour+time.Minute, blips...), 3)))
	rulesHold(t, rulesOf(t, guardedPolicy), ruleTest{Name: "all is well", Series: blips,
		Exprs: []exprTest{noAlert(time.Hour)}})
}

// A threshold is that of the policy that a program is under: of two that get the same retries of the same service, the
// one whose budget allows them is no trouble, and one that has none to send is another's.
func TestEachProgramIsMeasuredByItsOwnPolicy(t *testing.T) {
	const end = 30 * time.Minute
	perScrape := func(metric, job string, n float64) inputSeries {
		return inputSeries{fmt.Sprintf(`%s{service="s", job=%q, instance="a", namespace="prod", cluster="west"}`, metric,
			job),
			fmt.Sprintf("0+%vx%d", n*scraping.Seconds(), end/scraping)}
	}
	var series []inputSeries
	for job, policy := range map[string]string{
		"strict": "retryBudget: {ratio: 0.05, reserve: 10}", "lavish": "retryBudget: {ratio: 1, reserve: 10}",
		"without": "maxRetries: 0",
	} {
		series = append(series, perScrape("abate_first_attempts_total", job, 100),
			perScrape("abate_extra_attempts_total", job, 20), perScrape("abate_retries_total", job, 20),
			perScrape("abate_calls_ended_total", job, 100), perScrape("abate_calls_failed_total", job, 5),
			inputSeries{fmt.Sprintf(`abate_attempts_running{service="s", job=%q, namespace="prod", cluster="west"}`,
				job), "1x200"})
		series = append(series, policySeries(t, "services: {s: {"+policy+"}}", end,
			fmt.Sprintf(`job=%q, instance="a", namespace="prod", cluster="west"`, job))...)
	}
	rulesHold(t, rulesOf(t, "defaults: {}"), ruleTest{Series: series, Exprs: []exprTest{
		{Expr: `count by (alertname, cluster, namespace, job, service) (ALERTS{alertstate="firing", alertname=~"Request.*"})`,
			At: "20m", Samples: []sample{{
				`{alertname="RequestAmplification", cluster="west", namespace="prod", job="strict", service="s"}`, 1}}},
		{Expr: `count by (job) (ALERTS{alertstate="firing", alertname="HighRetryRate"})`, At: "20m",
			Samples: []sample{{`{job="strict"}`, 1}, {`{job="without"}`, 1}}}, // the one has another layer that retries
	}})
}

// What is written in Go for the dashboard and in PromQL for the alerts is the same threshold.
func TestThresholdsFollowFromThePolicy(t *testing.T) {
	const ten = 10.0 / 60
	none := math.NaN()
	for _, c := range []struct {
		about, policy                     string
		extra, storm, few, retries, waits float64
	}{
		{"the defaults", "{}", 0.11, (0.11 + 3) / 2, ten, 0.8 * 0.1 / 1.1, 60},
		{"what a ratio allows", "{retryBudget: {ratio: 0.2, reserve: 30}}", 0.22, (0.22 + 3) / 2, 0.5, 0.8 * 0.2 / 1.2, 60},
		{"30 % where the budget allows more", "{maxRetries: 1, retryBudget: {ratio: 1}}", 0.5, 0.75, ten, 0.3, 60},
		{"no budget: the built-in ratio, and 30 %", "{retryBudget: {disabled: true}}", 0.11, 1.555, ten, 0.3, 60},
		{"an adaptive budget while half fails", "{retryBudget: {kind: adaptive, minRatio: 0.05, maxRatio: 0.15}}",
			0.165, (0.165 + 3) / 2, ten, 0.8 * 0.1 / 1.1, 60},
		{"a bucket that time fills", "{retryBudget: {kind: tokens, maxTokens: 5, refillPerSecond: 2, costPerRetry: 2}}",
			0, 1.5, ten + 1.1, 0.3, 60},
		{"a bank that would hide a storm", "{retryBudget: {ratio: 0.1, reserve: 1000000}}", 0.11, 1.555, 100.0 / 60,
			0.8 * 0.1 / 1.1, 60},
		{"hedges count", "{retryBudget: {ratio: 0.2}, hedge: {delay: 50ms, maxHedges: 2}}", 0.22, (0.22 + 5) / 2, ten,
			0.8 * 0.2 / 1.2, 60},
		{"nothing is ever added", "{maxRetries: 0}", none, none, ten, 0.8 * 0.1 / 1.1, 60},
		{"a circuit that waits for long", "{circuitBreaker: {maxWaitDurationInOpenState: 45s}}", 0.11, 1.555, ten,
			0.8 * 0.1 / 1.1, 90},
		{"one that waits for hours", "{circuitBreaker: {maxWaitDurationInOpenState: 1h}}", 0.11, 1.555, ten,
			0.8 * 0.1 / 1.1, 600},
		{"one that refuses nothing", "{circuitBreaker: {mode: shadow}}", 0.11, 1.555, ten, 0.8 * 0.1 / 1.1, none},
		{"one that is forced", "{circuitBreaker: {mode: forcedOpen}}", 0.11, 1.555, ten, 0.8 * 0.1 / 1.1, none},
	} {
		open := "1x8"
		if math.IsNaN(c.waits) {
			open = "0x8"
		}
		series := append(policySeries(t, "services: {s: "+c.policy+"}", 2*time.Minute, `job="shop"`),
			inputSeries{`abate_attempts_running{service="s", job="shop"}`, "0x8"},
			inputSeries{`abate_circuit_breaker_open{service="s", job="shop"}`, open},
			inputSeries{`abate_calls_ended_total{service="s", job="shop"}`, "0+9x8"})
		var exprs []exprTest
		for which, want := range map[string]float64{
			`abate:service{of="allowed_extra_attempts"}`: c.extra, `abate:service{of="storm"}`: c.storm,
			`abate:ratio{of="few"}`: c.few, `abate:service{of="allowed_retries"}`: c.retries,
			// a window, but for what the alert waits itself, from the last time at which the circuit was not seen to be open
			// and called, which takes two scrapes
			`abate:ratio{of="circuit_due"}`: c.waits + 60 - 120 + 15,
		} {
			x := exprTest{At: "60s", Expr: "round(sum by (service) (" + which + "), 0.0001)"}
			if !math.IsNaN(want) {
				x.Samples = []sample{{`{service="s"}`, math.Round(want*1e4) / 1e4}}
			}
			exprs = append(exprs, x)
		}
		rulesHold(t, rulesOf(t, "defaults: {}"), ruleTest{Name: c.about, Series: series, Exprs: exprs})
	}
}

// Of every kind there is one alert for a service of any name, and it says of which it is.
func TestEveryKindOfAlertFiresForAServiceOfAnyName(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const name = `new "one"`
	s := func(metric, more, values string) inputSeries {
		return inputSeries{metric + "{job=\"shop\", namespace=\"prod\", service=" + strconv.Quote(name) + more + "}", values}
	}
	series := append(renamed(name, policySeries(t, "services: {payment-service: {}}\nprotect: {payment-service: {}}",
		50*time.Minute, `job="shop", namespace="prod", instance="a"`)),
		s("abate_override", `, override="shadow"`, "1x200"), s("abate_circuit_breaker_open", `, instance="a"`, "1x200"),
		s("abate_calls_ended_total", `, instance="a"`, "0+9x200"),
		s("abate_calls_failed_total", `, instance="a"`, "0+9x200"), // an open circuit refuses them
		s("abate_call_refusals_total", `, reason="rate_limited"`, "0+9x200"),
		s("abate_call_refusals_total", `, reason="budget_exhausted"`, "0+9x200"),
		s("abate_pacing_wait_seconds", "", "0.95x200"), s("abate_attempts_running", `, instance="a"`, "5x159 90x40"),
		s("abate_kafka_dead_letters_total", `, topic="t", reason="permanent"`, "0+1x200"),
		s("abate_arriving_retry_ratio", `, instance="a"`, "0.4x200"),
		s("abate_requests_arrived_total", `, instance="a"`, "0+1000x200"),
		s("abate_requests_shed_total", `, instance="a"`, "0+200x200"),
		s("abate_critical_requests_arrived_total", `, instance="a"`, "0+1000x200"),
		s("abate_critical_requests_shed_total", `, instance="a"`, "0+200x200"))
	test := ruleTest{Series: series}
	for _, kind := range []struct{ name, severity string }{
		{"OverrideInForce", warn}, {"RetryBudgetExhausted", warn}, {"ConnectionsHeldBack", warn}, {"ConcurrencySpike", warn},
		{"DeadLetterArrival", warn}, {"ArrivingRetries", warn}, {"ShedRate", pager}, {"CircuitBreakerOpen", pager},
	} {
		test.Exprs = append(test.Exprs, exprTest{At: "45m", Expr: fmt.Sprintf(`count by (service, namespace, job, severity) `+
			`(ALERTS{alertstate="firing", alertname=%q})`, kind.name), Samples: []sample{{fmt.Sprintf(
			`{service=%q, namespace="prod", job="shop", severity=%q}`, name, kind.severity), 1}}})
	}
	rulesHold(t, rulesOf(t, "services: {payment-service: {}}"), test)
}
