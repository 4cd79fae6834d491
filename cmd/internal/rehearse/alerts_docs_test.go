//go:build !race

package rehearse

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/breaker"
)

// everyAlertPolicy has every alert in both of its severities, where it has two.
const everyAlertPolicy = `
services:
  payment-service: {pacing: {perSecond: 10}, kafka: {tiers: [30s]}}
  quote-service: {bulkhead: {maxConcurrentCalls: 10}, fallback: {status: 200}}
  legacy-service: {circuitBreaker: {mode: forcedOpen}}
protect:
  orders: {idempotency: {methods: [POST]}}
`

// writtenRule is a rule as a reader of the file sees it.
type writtenRule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// writtenRules reads a file of rules.
func writtenRules(t testing.TB, file string) (all []writtenRule) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Groups []struct{ Rules []writtenRule }
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, group := range doc.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// knownMetrics are the names of all metrics of guards and gates, and of what Prometheus makes of histograms.
func knownMetrics(t testing.TB) []string {
	t.Helper()
	var names []string
	metrics.New().Describe(func(d *series.Desc) { names = append(names, d.Name) })
	if len(names) < 100 {
		t.Fatalf("there are %d metrics", len(names))
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_seconds") {
			names = append(names, name+"_bucket", name+"_count", name+"_sum")
		}
	}
	return append(names, "abate_policy_info", "abate_config_last_reload_successful",
		"abate_config_last_reload_success_timestamp_seconds", // of the proxy: TestThePolicyInForceIsOnTheMetrics
		"abate_proxy_discovery_up", "abate_proxy_discovery_endpoints", "abate_proxy_discovery_last_change_timestamp_seconds",
		"abate_proxy_endpoints_none_well", "abate_proxy_endpoints_unhealthy", "abate_proxy_health_checks_total",
		"abate_proxy_certificate_expiry_timestamp_seconds", "abate_proxy_certificate_start_timestamp_seconds")
}

// namedMetrics are words that can only be metrics of ours.
var namedMetrics = regexp.MustCompile(
	`\b(?:abate_[a-z0-9_]+|circuit_breaker_[a-z_]+|http_client_[a-z_]+|grpc_client_[a-z_]+|shed_[a-z_]+|` +
		`rate_limit_[a-z]+_[a-z_]+|abate:[a-z]+)\b`)

func TestTheRulesReadOnlyMetricsThereAre(t *testing.T) {
	rules := writtenRules(t, rulesOf(t, everyAlertPolicy))
	known := knownMetrics(t)
	for _, r := range rules {
		known = append(known, r.Record)
	}
	for _, r := range rules {
		found := namedMetrics.FindAllString(r.Expr, -1)
		if len(found) == 0 {
			t.Errorf("%s%s reads nothing: %s", r.Record, r.Alert, r.Expr)
		}
		for _, name := range found {
			if !slices.Contains(known, name) {
				t.Errorf("%s%s reads %s, which there is not", r.Record, r.Alert, name)
			}
			if strings.Contains(name, "http_client_") || strings.Contains(name, "grpc_client_") {
				t.Errorf("%s%s reads %s, which only some programs have", r.Record, r.Alert, name)
			}
		}
	}
}

// namedStates are words that can only be the state of a circuit.
var namedStates = regexp.MustCompile("`half.?open`")

var promqlBlock = regexp.MustCompile("(?s)```promql\n(.*?)```")

func TestEveryAlertHasItsRunbookAndEveryRunbookItsAlert(t *testing.T) {
	rules := writtenRules(t, rulesOf(t, everyAlertPolicy))
	known, wanted := knownMetrics(t), map[string]bool{}
	for _, r := range rules {
		known = append(known, r.Record)
		if r.Alert != "" {
			wanted[r.Alert] = true
		}
	}
	folder := filepath.Join("..", "..", "..", "docs", "runbooks")
	pages, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "prometheus", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var queries []exprTest
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if !wanted[name] {
			t.Errorf("%s is of no alert", page)
		}
		delete(wanted, name)
		if !strings.Contains(string(table), "| ["+name+"](../../docs/runbooks/"+name+".md) |") {
			t.Errorf("the table in deploy/prometheus/README.md has no %s", name)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{
			"# " + name + "\n", "**Means.**", "**Users see**", "**Look here first**", "**Do**", "**Do not**", "**Over when**",
		} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", page, part)
			}
		}
		for _, metric := range namedMetrics.FindAllString(string(text), -1) {
			if !slices.Contains(known, metric) {
				t.Errorf("%s names %s, which there is not", page, metric)
			}
		}
		for _, state := range namedStates.FindAllString(string(text), -1) {
			if state != "`"+breaker.HalfOpen.String()+"`" {
				t.Errorf("%s: the label is not %s", page, state)
			}
		}
		for _, block := range promqlBlock.FindAllStringSubmatch(string(text), -1) {
			for query := range strings.Lines(block[1]) {
				queries = append(queries, exprTest{Expr: strings.TrimSpace(query), At: "1m"})
			}
		}
	}
	for name := range wanted {
		t.Errorf("%s has no page in docs/runbooks", name)
	}
	if len(queries) < 3*len(pages) {
		t.Errorf("%d queries on %d pages", len(queries), len(pages))
	}
	rulesHold(t, rulesOf(t, everyAlertPolicy), ruleTest{Name: "the queries can be asked", Exprs: queries})
}
