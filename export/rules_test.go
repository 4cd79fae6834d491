package export_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/export"
)

// ruleDoc is a rules file as a reader sees it.
type ruleDoc struct {
	Groups []struct {
		Name, Interval string
		Rules          []readRule
	}
}

type readRule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// rulesFor returns the interval of the rules, the recording rules and the alerts.
func rulesFor(t testing.TB, o export.RulesOptions) (interval string, recordings, alerts []readRule) {
	t.Helper()
	written, err := export.PrometheusRules(o)
	if err != nil {
		t.Fatal(err)
	}
	return readRules(t, written)
}

func readRules(t testing.TB, written []byte) (interval string, recordings, alerts []readRule) {
	t.Helper()
	var doc ruleDoc
	if err := yaml.Unmarshal(written, &doc); err != nil || len(doc.Groups) != 2 {
		t.Fatalf("%v: %d groups\n%s", err, len(doc.Groups), written)
	}
	for _, g := range doc.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				recordings = append(recordings, r)
			} else {
				alerts = append(alerts, r)
			}
		}
	}
	return doc.Groups[0].Interval, recordings, alerts
}

// alertNamed finds an alert.
func alertNamed(t testing.TB, alerts []readRule, name string) readRule {
	t.Helper()
	for _, a := range alerts {
		if a.Alert == name {
			return a
		}
	}
	t.Fatalf("no alert %s", name)
	return readRule{}
}

// The bound that we promise for any number of services: they do not depend on it.
func TestTwentyRulesWatchAnyNumberOfServices(t *testing.T) {
	written, err := export.PrometheusRules(export.RulesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, recordings, alerts := readRules(t, written)
	if n := len(recordings) + len(alerts); n > 20 || len(written) > 40<<10 {
		t.Errorf("%d rules, %d bytes", n, len(written))
	}
}

func TestEveryAlertSaysWhatWhomAndWhereToRead(t *testing.T) {
	_, _, alerts := rulesFor(t, export.RulesOptions{RunbookURL: "https://wiki.example/run books/{{x}}/"})
	seen := map[string]bool{}
	for _, a := range alerts {
		if seen[a.Alert] {
			t.Errorf("%s is there twice", a.Alert)
		}
		seen[a.Alert] = true
		want := "https://wiki.example/run%20books/%7B%7Bx%7D%7D/" + a.Alert + ".md"
		if a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		both := strings.Contains(a.Expr, `"severity", "warning"`) && strings.Contains(a.Expr, `"severity", "critical"`)
		if s := a.Labels["severity"]; s != "warning" && !(s == "" && both) {
			t.Errorf("%s: severity %q\n%s", a.Alert, s, a.Expr)
		}
		if !strings.Contains(a.Expr, "(cluster, namespace, job") {
			t.Errorf("%s does not keep the labels of a program: %s", a.Alert, a.Expr)
		}
		text := a.Annotations["summary"] + a.Annotations["description"]
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" || !strings.Contains(text, "{{ $labels.") ||
			strings.Contains(text, "%!") {
			t.Errorf("%s: %q", a.Alert, a.Annotations)
		}
	}
}

func TestScaleChangesAllTimesAndNoNames(t *testing.T) {
	_, slow, _ := rulesFor(t, export.RulesOptions{})
	interval, fast, alerts := rulesFor(t, export.RulesOptions{Scale: 0.1})
	if interval != "1500ms" {
		t.Errorf("interval %s", interval)
	}
	for i := range slow {
		if slow[i].Record != fast[i].Record || slow[i].Expr == fast[i].Expr || strings.Contains(fast[i].Expr, "m]") {
			t.Errorf("%s became %s: %s", slow[i].Record, fast[i].Record, fast[i].Expr)
		}
	}
	for name, want := range map[string]string{
		"HighRetryRate": "12s", "RetryBudgetExhausted": "30s", "OverrideInForce": "90s", "DeadLetterArrival": "",
		"PolicyNotInForce": "30s",
	} {
		a := alertNamed(t, alerts, name)
		if a.For != want || strings.Contains(a.Expr, "1m]") || strings.Contains(a.Expr, "5m]") ||
			strings.Contains(a.Expr, "h]") {
			t.Errorf("%s: for %q, want %q: %s", name, a.For, want, a.Expr)
		}
	}
	if !strings.Contains(fast[1].Expr, "} / 6 ") || !strings.Contains(slow[1].Expr, "} / 60 ") {
		t.Errorf("ten in six seconds: %s", fast[1].Expr)
	}
}

// Rules that are evaluated more often than there are samples are work for nothing; a window of fewer than four scrapes
// has no rate when one of them fails.
func TestTheRulesFollowTheScrape(t *testing.T) {
	for scrape, want := range map[time.Duration][2]string{
		5 * time.Second: {"5s", "[1m]"}, 15 * time.Second: {"15s", "[1m]"}, 30 * time.Second: {"30s", "[2m]"},
		time.Minute: {"1m", "[4m]"},
	} {
		interval, recordings, _ := rulesFor(t, export.RulesOptions{Scrape: scrape})
		if interval != want[0] || !strings.Contains(recordings[0].Expr, "abate_first_attempts_total"+want[1]) {
			t.Errorf("scraped every %v: every %s, %.200s", scrape, interval, recordings[0].Expr)
		}
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	for _, scale := range []float64{-1, 0.001, 1000, math.NaN(), math.Inf(1)} {
		_, err := export.PrometheusRules(export.RulesOptions{
			Scale: scale, Scrape: time.Hour, RunbookURL: "runbooks", As: export.Operator, Name: "Abate", Namespace: "a b",
			Labels: map[string]string{"a b": "c", "x": "y z"},
		})
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{"scale: ", "out of range; allowed: 0.01 to 100", `runbook URL: "runbooks" is not`,
			"scrape: 1h0m0s is out of range; allowed: 1s to 2m0s", `name: "Abate"`, `namespace: "a b"`, "label: a b=c",
			"label: x=y z"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("scale %v: %q is not in\n%v", scale, want, err)
			}
		}
	}
	if _, err := export.PrometheusRules(export.RulesOptions{As: "toml"}); err == nil ||
		!strings.Contains(err.Error(), `form: "toml" is not known; allowed: prometheus-rules, prometheus-rule, mixin`) {
		t.Error(err)
	}
}

func TestTheSameOptionsGiveTheSameBytes(t *testing.T) {
	for _, form := range []export.RulesForm{export.Plain, export.Operator, export.Mixin} {
		o := export.RulesOptions{As: form, Labels: map[string]string{"a": "1", "b": "2", "c": "3"}}
		before, err := export.PrometheusRules(o)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if after, _ := export.PrometheusRules(o); string(after) != string(before) {
				t.Fatal("another run wrote something else")
			}
		}
	}
}

// A query may stand in the address of a folder, and braces in the query: to Prometheus they are no template.
func TestBracesInTheAddressOfTheRunbooksAreNoTemplate(t *testing.T) {
	_, _, alerts := rulesFor(t, export.RulesOptions{RunbookURL: "https://wiki.example/pages?in={{x}}"})
	for _, a := range alerts {
		if want := "https://wiki.example/pages/" + a.Alert + `.md?in={{"{{"}}x}}`; a.Annotations["runbook_url"] != want {
			t.Errorf("%s, want %s", a.Annotations["runbook_url"], want)
		}
	}
}

func TestAPrometheusRuleHasTheSameRules(t *testing.T) {
	o := export.RulesOptions{As: export.Operator, Namespace: "monitoring", Labels: map[string]string{"release": "kps"}}
	written, err := export.PrometheusRules(o)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := export.PrometheusRules(export.RulesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Spec ruleDoc
	}
	var doc ruleDoc
	if err := yaml.Unmarshal(written, &object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(plain, &doc); err != nil {
		t.Fatal(err)
	}
	same := func(a, b readRule) bool { return a.Expr == b.Expr && a.For == b.For && a.Alert == b.Alert }
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" ||
		object.Metadata.Name != "abate" || object.Metadata.Namespace != "monitoring" ||
		object.Metadata.Labels["release"] != "kps" || len(object.Spec.Groups) != 2 ||
		!slices.EqualFunc(object.Spec.Groups[0].Rules, doc.Groups[0].Rules, same) ||
		!slices.EqualFunc(object.Spec.Groups[1].Rules, doc.Groups[1].Rules, same) {
		t.Errorf("%.600s", written)
	}
}

// FuzzRules writes rules for any times and any folder of runbooks, and reads them again.
func FuzzRules(f *testing.F) {
	f.Add(1.0, int64(15*time.Second), "https://wiki.example/{{ $x }}/%zz")
	f.Add(0.01, int64(time.Second), "https://a/b?c={{{#}}")
	f.Add(99.99, int64(2*time.Minute), `https://a/"\PAGE`)
	f.Add(math.NaN(), int64(-1), "")
	duration := regexp.MustCompile(`^[1-9][0-9]*(ms|s|m|h)$`)
	f.Fuzz(func(t *testing.T, scale float64, scrape int64, runbooks string) {
		written, err := export.PrometheusRules(export.RulesOptions{
			Scale: scale, Scrape: time.Duration(scrape), RunbookURL: runbooks,
		})
		if err != nil {
			if _, wrong := export.RunbookFolder(runbooks); wrong == nil && scale >= export.MinScale &&
				scale <= export.MaxScale &&
				time.Duration(scrape) >= export.MinScrape && time.Duration(scrape) <= export.MaxScrape {
				t.Fatal(err)
			}
			return
		}
		interval, recordings, alerts := readRules(t, written)
		if !duration.MatchString(interval) {
			t.Errorf("interval %q", interval)
		}
		for _, r := range append(recordings, alerts...) {
			if strings.Contains(r.Expr, "NaN") || strings.Contains(r.Expr, "PAGE") || strings.Contains(r.Expr, "%!") ||
				strings.Contains(r.Expr, "[]") || r.For != "" && !duration.MatchString(r.For) {
				t.Errorf("%s%s for %s: %s", r.Record, r.Alert, r.For, r.Expr)
			}
			if strings.Contains(strings.ReplaceAll(r.Annotations["runbook_url"], `{{"{{"}}`, ""), "{{") {
				t.Errorf("%s: %s is a template", r.Alert, r.Annotations["runbook_url"])
			}
		}
	})
}

// An hour is the longest window of the rules: nothing overflows at the largest scale.
func TestTheLongestTimeIsStillATime(t *testing.T) {
	_, _, alerts := rulesFor(t, export.RulesOptions{Scale: export.MaxScale})
	if a := alertNamed(t, alerts, "OverrideInForce"); !strings.Contains(a.Expr, "[100h] offset 300h)") || a.For != "25h" {
		t.Errorf("for %s: %s", a.For, a.Expr)
	}
}
