package export_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/export"
	"github.com/abate-go/abate/policyfile"
)

// ruleDoc is a rules file as a reader sees it.
type ruleDoc struct {
	Groups []struct {
		Name     string
		Interval string
		Rules    []readRule
	}
}

type readRule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// policyOf reads a policy file.
func policyOf(t testing.TB, text string) *policyfile.File {
	t.Helper()
	file, err := policyfile.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// rulesFor returns the recording rules and the alerts for a policy file.
func rulesFor(t testing.TB, text string, o export.RulesOptions) (recordings, alerts []readRule) {
	t.Helper()
	written, err := export.PrometheusRules(policyOf(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return readRules(t, written)
}

func readRules(t testing.TB, written []byte) (recordings, alerts []readRule) {
	t.Helper()
	var doc ruleDoc
	if err := yaml.Unmarshal(written, &doc); err != nil || len(doc.Groups) != 2 {
		t.Fatalf("%v: %d groups\n%s", err, len(doc.Groups), written)
	}
	return doc.Groups[0].Rules, doc.Groups[1].Rules
}

// names lists the alerts with their severities.
func names(alerts []readRule) string {
	list := make([]string, len(alerts))
	for i, a := range alerts {
		list[i] = a.Alert + "/" + a.Labels["severity"]
	}
	return strings.Join(list, " ")
}

func TestAServiceHasTheAlertsThatItsPolicyHasAUseFor(t *testing.T) {
	const always = "ConcurrencySpike/warning DependencyFailing/critical OverrideInForce/warning"
	const retries = "DependencyDegraded/warning HighRetryRate/warning RequestAmplification/warning " +
		"RequestAmplification/critical "
	for _, c := range []struct{ about, policy, want string }{
		{"the defaults", "services: {s: {}}", retries + "RetryBudgetExhausted/warning ConcurrencySpike/warning " +
			"CircuitBreakerOpen/critical DependencyFailing/critical OverrideInForce/warning"},
		{"no budget and no breaker", "services: {s: {retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}",
			retries + always},
		{"no retries", "services: {s: {maxRetries: 0, circuitBreaker: {disabled: true}}}", always},
		{"hedges alone", "services: {s: {maxRetries: 0, circuitBreaker: {disabled: true}, hedge: {delay: 50ms}}}",
			"RequestAmplification/warning RequestAmplification/critical " + always},
		{"a breaker that refuses nothing", "services: {s: {maxRetries: 0, circuitBreaker: {mode: shadow}}}", always},
		{"a breaker that refuses all, as somebody wants it",
			"services: {s: {maxRetries: 0, circuitBreaker: {mode: forcedOpen}, fallback: {status: 200}}}",
			"ConcurrencySpike/warning CircuitForcedOpen/warning OverrideInForce/warning"},
		{"one that is forced and disabled", "services: {s: {maxRetries: 0, circuitBreaker: {mode: forcedOpen, disabled: " +
			"true}}}", always},
		{"a fallback", "services: {s: {maxRetries: 0, fallback: {status: 200}}}",
			"ConcurrencySpike/warning CircuitBreakerOpen/warning DependencyFailing/warning OverrideInForce/warning"},
		{"connections", "services: {s: {maxRetries: 0, circuitBreaker: {disabled: true}, pacing: {perSecond: 10}}}",
			always + " ConnectionsHeldBack/warning"},
		{"messages", "services: {s: {maxRetries: 0, circuitBreaker: {disabled: true}, kafka: {tiers: [1s]}}}",
			always + " DeadLetterArrival/warning DeadLetterFlood/warning"},
		{"messages without a guard against floods", "services: {s: {maxRetries: 0, circuitBreaker: {disabled: true}, " +
			"kafka: {tiers: [1s], flood: {disabled: true}}}}", always + " DeadLetterArrival/warning"},
		{"messages that are forgotten", "services: {s: {maxRetries: 0, circuitBreaker: {disabled: true}, kafka: {tiers: " +
			"[1s], dltStrategy: drop}}}", always + " DeadLetterFlood/warning"},
		{"a gate", "protect: {s: {}}", "ArrivingRetries/warning ShedRate/warning ShedRate/critical"},
		{"a gate that keeps keys", "protect: {s: {shed: {disabled: true}, idempotency: {methods: [POST]}}}",
			"IdempotencyKeysFull/warning IdempotencyKeysFull/critical"},
		{"a gate that keeps keys in Redis", "protect: {s: {shed: {disabled: true}, idempotency: {methods: [POST], fleet: " +
			"true}}}\nredis: {embedded: true}", ""},
		{"a gate that refuses nothing", "protect: {s: {shed: {shadow: true}}}", "ArrivingRetries/warning"},
		{"a gate that only limits", "protect: {s: {shed: {disabled: true}, rateLimit: {limit: 1/s}}}", ""},
	} {
		if _, alerts := rulesFor(t, c.policy, export.RulesOptions{OnlyListed: true}); names(alerts) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.about, names(alerts), c.want)
		}
	}
}

func TestThresholdsFollowFromThePolicy(t *testing.T) {
	const few = "0.167" // ten in a minute
	for _, c := range []struct{ about, service, alert, want string }{
		{"most of what a ratio allows", "retryBudget: {ratio: 0.2}", "HighRetryRate/warning",
			"ratio_rate1m{service=\"s\"} > 0.133\n"},
		{"30 % where the budget allows more", "retryBudget: {ratio: 1}", "HighRetryRate/warning",
			"ratio_rate1m{service=\"s\"} > 0.3\n"},
		{"30 % without a budget", "retryBudget: {disabled: true}", "HighRetryRate/warning",
			"ratio_rate1m{service=\"s\"} > 0.3\n"},
		{"what an adaptive budget allows while half fails", "retryBudget: {kind: adaptive, minRatio: 0.05, maxRatio: 0.15}",
			"HighRetryRate/warning", "> 0.0727\n"},
		{"half of that is early", "retryBudget: {ratio: 0.2}", "DependencyDegraded/warning",
			"retry_share:ratio_rate1m{service=\"s\"} > 0.0667\n"},
		{"a little more than the ratio", "retryBudget: {ratio: 0.2, reserve: 30}", "RequestAmplification/warning",
			`> 0.22 * abate:first_attempts:rate1m{service="s"} + 0.5`},
		{"the built-in ratio without a budget", "retryBudget: {disabled: true}", "RequestAmplification/warning",
			`> 0.11 * abate:first_attempts:rate1m{service="s"} + ` + few},
		{"half of all for a budget that never says no", "maxRetries: 1, retryBudget: {ratio: 1}",
			"RequestAmplification/warning", `> 0.5 * abate:first`},
		{"no ratio in a bucket", "retryBudget: {kind: tokens, maxTokens: 5, refillPerSecond: 2, costPerRetry: 2}",
			"RequestAmplification/warning",
			`> 0 * abate:first_attempts:rate1m{service="s"} + 1.27`}, // 1.1 × 2 / 2, and ten in a minute
		{"what successes earn in a bucket", "retryBudget: {kind: tokens, depositPerSuccess: 0.1}",
			"RequestAmplification/warning", `> 0.11 * abate:first`},
		{"a bank that would hide a storm", "retryBudget: {ratio: 0.1, reserve: 1000000}", "RequestAmplification/warning",
			`} + 1.67`},
		{"half-way to all retries", "maxRetries: 3, retryBudget: {ratio: 0.2}", "RequestAmplification/critical",
			"amplification:ratio_rate1m{service=\"s\"} > 2.61\n"},
		{"hedges count", "maxRetries: 3, retryBudget: {ratio: 0.2}, hedge: {delay: 50ms, maxHedges: 2}",
			"RequestAmplification/critical", "} > 3.61\n"},
		{"the bulkhead's limit", "bulkhead: {maxConcurrentCalls: 5}", "ConcurrencySpike/warning",
			"abate_bulkhead_limit{service=\"s\"} > 0.9)"},
		{"usual without one", "maxRetries: 1", "ConcurrencySpike/warning", "> 4 * abate:attempts_running:avg1h{"},
		{"nearly maxWait", "pacing: {perSecond: 10, maxWait: 2s}", "ConnectionsHeldBack/warning", "> 1.8"},
		{"any wait for an adaptive pace", "pacing: {adaptive: true}", "ConnectionsHeldBack/warning", "> 0\n"},
	} {
		_, alerts := rulesFor(t, "services: {s: {"+c.service+"}}", export.RulesOptions{})
		i := slices.IndexFunc(alerts, func(r readRule) bool { return r.Alert+"/"+r.Labels["severity"] == c.alert })
		if i < 0 || !strings.Contains(alerts[i].Expr, c.want) {
			t.Errorf("%s: %s\n got %+v\nwant %q", c.about, c.alert, alerts, c.want)
		}
	}
	_, alerts := rulesFor(t, "protect: {s: {shed: {concurrency: fixed, maxRetryShare: 0.25}}}",
		export.RulesOptions{OnlyListed: true})
	if alerts[0].Alert != "ArrivingRetries" || !strings.Contains(alerts[0].Expr, "> 0.25\n") {
		t.Errorf("%+v", alerts[0])
	}
}

func TestACircuitMayBeOpenForTwoWaitsBeforeSomebodyIsWoken(t *testing.T) {
	for _, c := range []struct{ breaker, want string }{
		{"", "2m"}, // a window, and a minute at least
		{"maxWaitDurationInOpenState: 45s", "150s"},
		{"maxWaitDurationInOpenState: 1h", "11m"}, // who waits for hours wants to know all the same
	} {
		_, alerts := rulesFor(t, "services: {s: {circuitBreaker: {"+c.breaker+"}}}", export.RulesOptions{})
		i := slices.IndexFunc(alerts, func(r readRule) bool { return r.Alert == "CircuitBreakerOpen" })
		if alerts[i].For != c.want {
			t.Errorf("%q: for %s, want %s", c.breaker, alerts[i].For, c.want)
		}
	}
}

func TestEveryAlertSaysWhatWhomAndWhereToRead(t *testing.T) {
	const all = "services: {s: {pacing: {perSecond: 1}, kafka: {tiers: [1s]}}}\nprotect: {s: {}}"
	_, alerts := rulesFor(t, all, export.RulesOptions{
		RunbookURL: "https://wiki.example/run books/{{x}}/", OnlyListed: true,
	})
	if len(alerts) < 12 {
		t.Errorf("%d alerts", len(alerts))
	}
	for _, a := range alerts {
		want := "https://wiki.example/run%20books/%7B%7Bx%7D%7D/" + a.Alert + ".md"
		if s := a.Labels["severity"]; s != "warning" && s != "critical" || a.Labels["service"] != "s" ||
			a.Annotations["runbook_url"] != want {
			t.Errorf("%s: labels %v, runbook %s, want %s", a.Alert, a.Labels, a.Annotations["runbook_url"], want)
		}
		text := a.Annotations["summary"] + a.Annotations["description"]
		if a.Annotations["summary"] == "" || !strings.Contains(a.Annotations["description"], "{{ $value | humanize") ||
			!strings.Contains(text, "{{ $labels.") || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", a.Alert, a.Annotations)
		}
	}
}

func TestScaleChangesAllTimesAndNoNames(t *testing.T) {
	slow, _ := rulesFor(t, "services: {s: {}}", export.RulesOptions{})
	fast, alerts := rulesFor(t, "services: {s: {kafka: {tiers: [1s]}}}", export.RulesOptions{Scale: 0.1})
	for i := range slow {
		if slow[i].Record != fast[i].Record {
			t.Errorf("%s became %s", slow[i].Record, fast[i].Record)
		}
		want := strings.NewReplacer("[1m]", "[6s]", "[1h]", "[6m]", "[1h:1m]", "[6m:6s]", "offset 5m", "offset 30s").Replace(
			slow[i].Expr)
		if want == slow[i].Expr && strings.Contains(want, "[") || fast[i].Expr != want {
			t.Errorf("%s: %s, want %s", fast[i].Record, fast[i].Expr, want)
		}
	}
	for name, want := range map[string]string{
		"HighRetryRate": "12s", "RetryBudgetExhausted": "30s", "OverrideInForce": "90s", "DeadLetterArrival": "",
	} {
		i := slices.IndexFunc(alerts, func(r readRule) bool { return r.Alert == name })
		if alerts[i].For != want || strings.Contains(alerts[i].Expr, "1m]") || strings.Contains(alerts[i].Expr, "5m]") ||
			strings.Contains(alerts[i].Expr, "h]") {
			t.Errorf("%s: for %q, want %q: %s", name, alerts[i].For, want, alerts[i].Expr)
		}
	}
	if i := slices.IndexFunc(alerts, func(r readRule) bool {
		return r.Alert == "HighRetryRate"
	}); !strings.HasSuffix(alerts[i].Expr, "> 1.67") {
		t.Errorf("ten in six seconds: %s", alerts[i].Expr)
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	for _, scale := range []float64{-1, 0.001, 1000, math.NaN(), math.Inf(1)} {
		_, err := export.PrometheusRules(policyOf(t, "defaults: {maxRetries: 1}"), export.RulesOptions{
			Scale: scale, RunbookURL: "runbooks", OnlyListed: true,
		})
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{"policy.yaml: no services and nothing under protect", "services: {payment-service: {}}",
			"scale: ", "out of range; allowed: 0.01 to 100", `runbook URL: "runbooks" is not`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("scale %v: %q is not in\n%v", scale, want, err)
			}
		}
	}
}

func TestTheSamePolicyGivesTheSameBytes(t *testing.T) {
	file := policyOf(t, "services: {b: {}, a: {}, c: {bulkhead: {maxConcurrentCalls: 1}}}\nprotect: {z: {}, y: {}}")
	before, err := export.PrometheusRules(file, export.RulesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if after, _ := export.PrometheusRules(file, export.RulesOptions{}); string(after) != string(before) {
			t.Fatal("another run wrote something else")
		}
	}
}

// A query may stand in the address of a folder, and braces in the query: to Prometheus they are no template.
func TestBracesInTheAddressOfTheRunbooksAreNoTemplate(t *testing.T) {
	_, alerts := rulesFor(t, "services: {s: {}}", export.RulesOptions{RunbookURL: "https://wiki.example/pages?in={{x}}"})
	for _, a := range alerts {
		if want := "https://wiki.example/pages/" + a.Alert + `.md?in={{"{{"}}x}}`; a.Annotations["runbook_url"] != want {
			t.Errorf("%s, want %s", a.Annotations["runbook_url"], want)
		}
	}
}

// matchers are the matchers of services in expressions: a string of PromQL is one of Go.
var matchers = regexp.MustCompile(`service(=|!~|!=)("(?:[^"\\]|\\.)*")`)

// matches reports whether Prometheus would say that a service matches; patterns are anchored there.
func matches(t testing.TB, m []string, service string) bool {
	t.Helper()
	text, err := strconv.Unquote(m[2])
	if err != nil {
		t.Fatalf("%s: %v", m[0], err)
	}
	switch m[1] {
	case "=":
		return service == text
	case "!=":
		return service != text
	}
	pattern, err := regexp.Compile("^(?s:" + text + ")$")
	if err != nil {
		t.Fatalf("%s: %v", m[0], err)
	}
	return !pattern.MatchString(service)
}

// FuzzRules writes rules for a service of any name and any scale, and reads them again.
func FuzzRules(f *testing.F) {
	for _, name := range []string{"payment-service", `a"b`, `a\`, "a`b", "{{ $x }}", "{{{", "}}{{", "größe", "支付",
		"a: b # c", "- x", "'", "%s%!d", "\U0001F4B3", "$S", "~", "no", "1e3", "\u2028", "a\nb", "\x00\xcc", ""} {
		f.Add(name, 1.0)
	}
	f.Add("s", 0.01)
	f.Add("s", 99.99)
	f.Add("s", math.NaN())
	duration := regexp.MustCompile(`^[1-9][0-9]*(ms|s|m|h)$`)
	f.Fuzz(func(t *testing.T, name string, scale float64) {
		file := policyOf(t, "services: {s: {pacing: {perSecond: 1}, kafka: {tiers: [1s]}}}\nprotect: {s: {}}")
		file.Services[0].Name, file.Protect[0].Name = name, name // also those that a file cannot have
		name = strings.ToValidUTF8(name, "\uFFFD")
		written, err := export.PrometheusRules(file, export.RulesOptions{Scale: scale})
		if err != nil {
			if scale >= export.MinScale && scale <= export.MaxScale {
				t.Fatal(err)
			}
			return
		}
		_, alerts := readRules(t, written)
		for _, a := range alerts {
			listed := a.Labels["policy"] == ""
			if shown := strings.ReplaceAll(a.Labels["service"], `{{"{{"}}`, "{{"); listed && shown != name ||
				strings.Contains(strings.ReplaceAll(a.Labels["service"], `{{"{{"}}`, ""), "{{") {
				t.Errorf("%s: label %q for %q", a.Alert, a.Labels["service"], name)
			}
			found := matchers.FindAllStringSubmatch(a.Expr, -1)
			for _, m := range found {
				if matches(t, m, name) != listed || matches(t, m, name+"x") == listed || matches(t, m, "x"+name) == listed {
					t.Errorf("%s of %q: matches %s", a.Alert, name, m[0])
				}
			}
			if rest := matchers.ReplaceAllString(a.Expr, ""); len(found) == 0 || strings.Count(rest, "{") != len(found) ||
				strings.Contains(rest, "NaN") {
				t.Errorf("%s: %s", a.Alert, a.Expr)
			}
			if a.For != "" && !duration.MatchString(a.For) {
				t.Errorf("%s: for %q", a.Alert, a.For)
			}
		}
	})
}

// An hour is the longest window of the rules: nothing overflows at the largest scale.
func TestTheLongestTimeIsStillATime(t *testing.T) {
	recordings, _ := rulesFor(t, "services: {s: {}}", export.RulesOptions{Scale: export.MaxScale})
	i := slices.IndexFunc(recordings, func(r readRule) bool { return r.Record == "abate:attempts_running:avg1h" })
	if want := "[" + strconv.Itoa(int((100 * time.Hour).Hours())) + "h]"; !strings.Contains(recordings[i].Expr, want) {
		t.Errorf("%s, want %s", recordings[i].Expr, want)
	}
}
