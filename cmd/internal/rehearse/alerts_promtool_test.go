//go:build !race

package rehearse

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/needs"
)

// inputSeries is a series as promtool reads it.
type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// ruleTest is one test of promtool.
type ruleTest struct {
	Name     string        `yaml:"name"`
	Interval string        `yaml:"interval"`
	Series   []inputSeries `yaml:"input_series"`
	Exprs    []exprTest    `yaml:"promql_expr_test,omitempty"`
	Alerts   []alertTest   `yaml:"alert_rule_test,omitempty"`
}

type exprTest struct {
	Expr    string   `yaml:"expr"`
	At      string   `yaml:"eval_time"`
	Samples []sample `yaml:"exp_samples"`
}

type sample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

type alertTest struct {
	At     string      `yaml:"eval_time"`
	Name   string      `yaml:"alertname"`
	Alerts []wantAlert `yaml:"exp_alerts"`
}

type wantAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// noAlert wants nothing to have fired from the start until at.
func noAlert(at time.Duration) exprTest {
	return exprTest{Expr: `count_over_time(ALERTS{alertstate="firing"}[` + prometheusTime(at) + `])`,
		At: prometheusTime(at)}
}

// noAlertBut is noAlert, but for some alerts, named by a pattern.
func noAlertBut(at time.Duration, names string) exprTest {
	return exprTest{Expr: `count_over_time(ALERTS{alertstate="firing", alertname!~"` + names + `"}[` + prometheusTime(at) +
		`])`, At: prometheusTime(at)}
}

// firing wants an alert to be firing at a time.
func firing(name, severity string, at time.Duration) exprTest {
	x := notFiring(name, severity, at)
	x.Samples = []sample{{"{}", 1}}
	return x
}

// notFiring wants an alert not to be firing at a time.
func notFiring(name, severity string, at time.Duration) exprTest {
	return exprTest{Expr: `group(ALERTS{alertstate="firing", alertname="` + name + `", severity="` + severity + `"})`,
		At: prometheusTime(at)}
}

// firstFires wants an alert to fire first after from and at the latest at to, which is at most an hour after from.
func firstFires(name, severity string, from, to time.Duration) []exprTest {
	early := notFiring(name, severity, from)
	early.Expr = `group(last_over_time(ALERTS{alertstate="firing", alertname="` + name + `", severity="` + severity +
		`"}[` + prometheusTime(from) + `]))`
	return []exprTest{early, firing(name, severity, to)}
}

func prometheusTime(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

// rulesOf writes the rules for a policy, as "abate export" does, and returns the file.
func rulesOf(t testing.TB, policy string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "abate.rules.yaml")
	if err := os.WriteFile(from, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := ExportCommand(context.Background(), append([]string{"prometheus-rules", "-c", from, "-o", to}, flags...),
		&out, &errs); code != 0 || out.Len()+errs.Len() > 0 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	return to
}

// testRules runs "promtool test rules" and returns what it says is wrong; nothing if all is well.
func testRules(t testing.TB, rules string, tests ...ruleTest) string {
	t.Helper()
	return testRulesEvery(t, scraping, rules, tests...)
}

// testRulesEvery is testRules with an interval for the evaluation. promtool evaluates all groups as often, whatever
// their own interval is.
func testRulesEvery(t testing.TB, interval time.Duration, rules string, tests ...ruleTest) string {
	t.Helper()
	tests = slices.Clone(tests)
	for i := range tests {
		tests[i].Interval, tests[i].Series = prometheusTime(scraping), noticed(t, tests[i].Series)
	}
	text, err := yaml.Marshal(map[string]any{
		"rule_files": []string{rules}, "evaluation_interval": prometheusTime(interval), "tests": tests,
		"group_eval_order": []string{"abate", "abate-slow"}, // what is read of the slow one is then as old as can be
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), needs.Program(t, "promtool", "prometheus"), "test", "rules",
		file).CombinedOutput()
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(string(said), file, "tests.yaml")
}

// rulesHold wants promtool to agree with all tests.
func rulesHold(t testing.TB, rules string, tests ...ruleTest) {
	t.Helper()
	if said := testRules(t, rules, tests...); said != "" {
		t.Error(said)
	}
}

// rulesHoldHoweverOften wants promtool to agree with all tests, whether rules are evaluated at every scrape, at every
// second and so on, down to seldom: an alert must not count evaluations.
func rulesHoldHoweverOften(t testing.TB, seldom time.Duration, rules string, tests ...ruleTest) {
	t.Helper()
	for interval := scraping; interval <= seldom; interval *= 2 {
		if said := testRulesEvery(t, interval, rules, tests...); said != "" {
			t.Errorf("evaluated every %v: %s", interval, said)
		}
	}
}

// The severities of alerts.
const warn, pager = "warning", "critical"
