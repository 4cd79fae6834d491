package export_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/export"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policyfile"
)

var update = flag.Bool("update", false, "write what is in deploy anew")

// dashboard is as much of what we write as the tests look at.
type dashboard struct {
	Title, UID  string
	Annotations struct {
		List []struct{ Name, Expr, Step string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []dashboardPanel
}

type dashboardPanel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	GridPos                  struct{ H, W, X, Y int }
	Links                    []struct{ Title, URL string }
	Targets                  []struct{ Expr, LegendFormat, RefID string }
	Panels                   []dashboardPanel
	FieldConfig              struct {
		Defaults  struct{ Unit, Thresholds json.RawMessage }
		Overrides []struct {
			Matcher struct {
				ID      string
				Options json.RawMessage
			}
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
}

// draw makes a dashboard and reads it.
func draw(t testing.TB, file *policyfile.File, o export.GrafanaOptions) (dashboard, []byte) {
	t.Helper()
	text, err := export.Grafana(file, o)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d, text
}

func policies(t testing.TB, text string) *policyfile.File {
	t.Helper()
	file, err := policyfile.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// all lists the panels that are no headings, folded ones too.
func (d *dashboard) all() []dashboardPanel {
	var found []dashboardPanel
	for _, p := range d.Panels {
		if p.Type != "row" {
			found = append(found, p)
		}
		found = append(found, p.Panels...)
	}
	return found
}

func (d *dashboard) panel(t testing.TB, title string) *dashboardPanel {
	t.Helper()
	for _, p := range d.all() {
		if p.Title == title {
			return &p
		}
	}
	t.Fatalf("there is no panel %q", title)
	return nil
}

// steps are the thresholds as "green, yellow 1.1, red 1.5".
func steps(t testing.TB, thresholds json.RawMessage) string {
	t.Helper()
	var c struct {
		Mode  string
		Steps []struct {
			Color string
			Value *float64
		}
	}
	if err := json.Unmarshal(thresholds, &c); err != nil || c.Mode != "absolute" {
		t.Fatalf("%s: %v", thresholds, err)
	}
	var words []string
	for i, s := range c.Steps {
		if (s.Value == nil) != (i == 0) {
			t.Errorf("step %d of %s: the first step has no value, and no other", i, thresholds)
			continue
		}
		if i > 0 {
			s.Color += fmt.Sprint(" ", *s.Value)
		}
		words = append(words, s.Color)
	}
	return strings.Join(words, ", ")
}

const artefact = "../deploy/grafana/abate.json"

func TestTheDashboardInDeployIsInStep(t *testing.T) {
	_, text := draw(t, nil, export.GrafanaOptions{})
	if *update {
		if err := os.WriteFile(artefact, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := os.ReadFile(artefact); err != nil || !bytes.Equal(there, text) {
		t.Errorf("deploy/grafana/abate.json is out of step (%v); run: go test ./export -run Dashboard -update", err)
	}
}

func TestTheSamePoliciesGiveTheSameBytes(t *testing.T) {
	text, err := os.ReadFile("../examples/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, first := draw(t, policies(t, string(text)), export.GrafanaOptions{})
	for range 5 {
		if _, again := draw(t, policies(t, string(text)), export.GrafanaOptions{}); !bytes.Equal(first, again) {
			t.Fatal("two dashboards of one file differ")
		}
	}
}

func TestPanelsHaveRoomAndDoNotOverlap(t *testing.T) {
	d, _ := draw(t, nil, export.GrafanaOptions{})
	check := func(scope string, panels []dashboardPanel) {
		for i, p := range panels {
			g := p.GridPos
			if g.W < 1 || g.H < 1 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
				t.Errorf("%s: %q is not in the grid: %+v", scope, p.Title, g)
			}
			for _, q := range panels[:i] {
				o := q.GridPos
				if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
					t.Errorf("%s: %q and %q overlap: %+v, %+v", scope, q.Title, p.Title, o, g)
				}
				if g.Y < o.Y || g.Y == o.Y && g.X < o.X {
					t.Errorf("%s: %q comes after %q and stands before it", scope, p.Title, q.Title)
				}
			}
		}
	}
	check("the page", d.Panels)
	for _, p := range d.Panels {
		if p.Collapsed != (len(p.Panels) > 0) || p.Type != "row" && p.Collapsed {
			t.Errorf("%q is folded (%v) and has %d panels inside", p.Title, p.Collapsed, len(p.Panels))
		}
		check(p.Title, p.Panels)
	}
}

func TestEachPanelSaysWhatToDo(t *testing.T) {
	d, _ := draw(t, nil, export.GrafanaOptions{})
	ids, titles := map[int]string{}, map[string]bool{}
	for _, p := range append(d.all(), d.Panels...) {
		if p.Type != "row" && ids[p.ID] == p.Title {
			continue // on the page
		}
		if ids[p.ID] != "" || p.ID < 1 || p.ID >= 1<<31 {
			t.Errorf("the id %d of %q is that of %q, or none", p.ID, p.Title, ids[p.ID])
		}
		if ids[p.ID] = p.Title; titles[p.Title] || p.Title == "" {
			t.Errorf("two panels are called %q", p.Title)
		}
		titles[p.Title] = true
		if p.Type == "row" {
			continue
		}
		if n := len(strings.Fields(p.Description)); n < 10 || !strings.HasSuffix(p.Description, ".") ||
			strings.Contains(p.Description, "  ") {
			t.Errorf("the help of %q does not help: %q", p.Title, p.Description)
		}
		if len(p.FieldConfig.Defaults.Unit) < len(`"s"`) || len(p.Targets) == 0 {
			t.Errorf("%q has unit %s and %d queries", p.Title, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		for i, q := range p.Targets {
			if q.RefID != string(rune('A'+i)) || q.LegendFormat == "" || q.Expr == "" {
				t.Errorf("%q: query %d is %+v", p.Title, i, q)
			}
		}
	}
	if len(titles) < 50 {
		t.Errorf("%d panels", len(titles))
	}
}

// TestAPanelKeepsItsIdWhenItMoves: links and alerts name panels by it.
func TestAPanelKeepsItsIdWhenItMoves(t *testing.T) {
	d, _ := draw(t, nil, export.GrafanaOptions{})
	for title, id := range map[string]int{"Circuit breakers": 7447324, "Retry share, by service": 5929042} {
		if p := d.panel(t, title); p.ID != id {
			t.Errorf("%q has the id %d and had %d", title, p.ID, id)
		}
	}
}

// elsewhere are the metrics without the label service.
var elsewhere = regexp.MustCompile(`\b(?:abate_grpc_client_|abate_redis_|abate_dlq_)`)

func TestQueriesAreAboutTheChosenServices(t *testing.T) {
	d, _ := draw(t, nil, export.GrafanaOptions{})
	metric := regexp.MustCompile(`\b(?:[a-z]+_)+[a-z]+(\{|\[| |\))`)
	ask := func(where, expr string) {
		for _, at := range metric.FindAllStringSubmatchIndex(expr, -1) {
			name, rest := expr[at[0]:at[2]], expr[at[2]:]
			switch {
			case slices.Contains([]string{"histogram_quantile", "clamp_min"}, name), elsewhere.MatchString(name):
			case !strings.HasPrefix(rest, `{service=~"$service"`):
				t.Errorf("%s asks for %s of services that nobody chose: %s", where, name, expr)
			}
		}
	}
	for _, p := range d.all() {
		for _, q := range p.Targets {
			ask(p.Title, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		ask(a.Name, a.Expr)
	}
}

func TestThresholdsAreThoseOfThePolicy(t *testing.T) {
	const services = `
defaults: {timeout: 4s}
services:
  payment: {maxRetries: 2, retryBudget: {ratio: 0.5}}
  stock: {timeout: 1s, circuitBreaker: {failureRateThreshold: 0.2}}
  mail: {retryBudget: {kind: tokens, maxTokens: 5, refillPerSecond: 0.5}}
  db: {maxRetries: 0, pacing: {perSecond: 5, maxWait: 3s}}
  orders: {kafka: {tiers: [1m], handlerTimeout: 30s}}
protect:
  shop: {timeout: 2s, shed: {concurrency: gradient, cpu: 0.9,
    queueTarget: 10ms, queueInterval: 200ms, maxRetryShare: 0.2}}
  cart: {shed: {concurrency: fixed}}
`
	for _, c := range []struct{ panel, base, overrides string }{
		// 10 % budget: the alert allows 1.1 times that, and half-way to four attempts is a storm.
		{"Attempts per call, by service", "green, yellow 1.11, red 2.555",
			"[payment] green, yellow 1.55, red 2.275; [mail] green, red 2.5; [db] green"},
		{"Retry share, by service", "green, yellow 0.0364, red 0.0727",
			"[payment] green, yellow 0.1333, red 0.2667; [mail] green, yellow 0.15, red 0.3"},
		{"Attempts that fail, by service", "green, yellow 0.1, red 0.5", "[stock] green, yellow 0.04, red 0.2"},
		{"Time to answer, by service, 99 of 100", "green, yellow 2, red 4", "[stock] green, yellow 0.5, red 1"},
		{"Wait for a token", "green", "[db] green, yellow 1.5, red 3"},
		{"Longest running handler", "green", "[orders] green, yellow 15, red 30"},
		{"Extra attempts left in the budgets", "red, green 1", ""},
		{"Calls that succeed", "red, yellow 0.95, green 0.99", ""},
		{"Waits at the gate, 99 of 100", "green, yellow 0.01, red 0.2", "[cart] green"},
		{"Time to answer, 99 of 100", "green, yellow 1, red 2", "[cart] green"},
		{"Retries among what arrives", "green, yellow 0.2, red 0.4", "[cart] green, yellow 0.1, red 0.2"},
		{"Processor time", "green, yellow 0.72, red 0.9", "[cart] green"},
	} {
		d, _ := draw(t, policies(t, services), export.GrafanaOptions{})
		p := d.panel(t, c.panel)
		if got := steps(t, p.FieldConfig.Defaults.Thresholds); got != c.base {
			t.Errorf("%s: %s, want %s", c.panel, got, c.base)
		}
		var overrides []string
		for _, o := range p.FieldConfig.Overrides {
			var who struct{ Names []string }
			if err := json.Unmarshal(o.Matcher.Options, &who); err != nil || o.Matcher.ID != "byNames" ||
				o.Properties[0].ID != "thresholds" {
				t.Fatalf("%s: %+v: %v", c.panel, o, err)
			}
			overrides = append(overrides, fmt.Sprint(who.Names, " ", steps(t, o.Properties[0].Value)))
		}
		if got := strings.Join(overrides, "; "); got != c.overrides {
			t.Errorf("%s: %s, want %s", c.panel, got, c.overrides)
		}
	}
}

// TestManyServicesStayReadable: a fleet under one policy costs a dashboard nothing, and under two policies a list of
// names.
func TestManyServicesStayReadable(t *testing.T) {
	_, none := draw(t, nil, export.GrafanaOptions{})
	text := "services:\n"
	for i := range 5000 {
		text += fmt.Sprintf("  service-%d: {}\n", i)
	}
	if _, same := draw(t, policies(t, text), export.GrafanaOptions{}); len(same) != len(none) {
		t.Errorf("%d bytes for 5,000 services like the defaults, want %d", len(same), len(none))
	}
	if _, other := draw(t, policies(t, strings.ReplaceAll(text, "{}", "{timeout: 7s}")), export.GrafanaOptions{}); len(
		other) > len(none)+5000*40 {
		t.Errorf("%d bytes more for 5,000 services with another timeout", len(other)-len(none))
	}
}

func TestRunbooksOfPanelsAreThoseOfAlerts(t *testing.T) {
	file := policies(t, `
services:
  a: {pacing: {perSecond: 5}, kafka: {tiers: [1m]}}
protect:
  b: {shed: {concurrency: gradient}}
`)
	rules, err := export.PrometheusRules(export.RulesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, text := draw(t, file, export.GrafanaOptions{RunbookURL: "https://wiki.example/books"})
	n := 0
	for _, p := range d.all() {
		for _, l := range p.Links {
			n++
			alert, of := strings.CutPrefix(l.Title, "Runbook: ")
			if !of || l.URL != "https://wiki.example/books/"+alert+".md" ||
				!bytes.Contains(rules, []byte("alert: "+alert+"\n")) {
				t.Errorf("%q points to %q at %s, and there is no such alert", p.Title, l.Title, l.URL)
			}
		}
	}
	if n < 10 || bytes.Contains(text, []byte(export.Runbooks)) {
		t.Errorf("%d links, and some of them to another folder: %v", n, bytes.Contains(text, []byte(export.Runbooks)))
	}
}

func TestDashboardOptionsThatGrafanaRefuses(t *testing.T) {
	d, _ := draw(t, nil, export.GrafanaOptions{Title: `Shop "eu" <1>`, UID: "abate-shop_EU"})
	if d.Title != `Shop "eu" <1>` || d.UID != "abate-shop_EU" {
		t.Errorf("the dashboard is called %q, %q", d.Title, d.UID)
	}
	for _, o := range []export.GrafanaOptions{{UID: "a b"}, {UID: strings.Repeat("a", 41)}, {RunbookURL: "docs/runbooks"},
		{RunbookURL: "file:///docs"}, {RunbookURL: "https://"}} {
		if _, err := export.Grafana(nil, o); err == nil || !strings.Contains(err.Error(), "for example") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	_, err := export.Grafana(nil, export.GrafanaOptions{UID: "ä", RunbookURL: "::"})
	if err == nil || !strings.Contains(err.Error(), `uid: "ä"`) || !strings.Contains(err.Error(), `runbook URL: "::"`) {
		t.Errorf("not all mistakes are named: %v", err)
	}
}

func TestThresholdsThatAreNoNumbersAreAnError(t *testing.T) {
	for _, ratio := range []float64{math.NaN(), math.Inf(1)} {
		p := policyfile.DefaultPolicy()
		p.RetryBudget = budget.Config{Kind: budget.Ratio, Ratio: ratio}
		file := &policyfile.File{Name: "by hand", Services: []policyfile.Service{{Name: "a", Policy: p}}}
		if _, err := export.Grafana(file, export.GrafanaOptions{}); err == nil ||
			!strings.Contains(err.Error(), "check the policies with Validate") {
			t.Errorf("%v: %v", ratio, err)
		}
	}
}

// TestServicesAreFoundWhateverTheirNames: the thresholds of a service are for the series with its label, as
// internal/metrics writes it.
func TestServicesAreFoundWhateverTheirNames(t *testing.T) {
	for _, name := range []string{
		"payment-service", `a"b\c`, "{{service}}", "$service", "süd <&>", " ", "\u2028", "\xff\xfe",
	} {
		p := policyfile.DefaultPolicy()
		p.CircuitBreaker.FailureRateThreshold = 0.25
		file := &policyfile.File{
			Name: "policy.yaml", Defaults: policyfile.DefaultPolicy(), Services: []policyfile.Service{{Name: name, Policy: p}},
		}
		d, _ := draw(t, file, export.GrafanaOptions{Title: name})
		overrides := d.panel(t, "Attempts that fail, by service").FieldConfig.Overrides
		var who struct{ Names []string }
		if len(overrides) != 1 {
			t.Fatalf("%q: %d overrides", name, len(overrides))
		}
		if err := json.Unmarshal(overrides[0].Matcher.Options, &who); err != nil || len(who.Names) != 1 ||
			who.Names[0] != strings.ToValidUTF8(name, "\uFFFD") {
			t.Errorf("%q is called %q: %v", name, who.Names, err)
		}
	}
}

// TestEveryPolicyOfTheTestsMakesADashboard: what the policy file takes, the dashboard does.
func TestEveryPolicyOfTheTestsMakesADashboard(t *testing.T) {
	files, err := filepath.Glob("../policyfile/testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		draw(t, policies(t, string(text)), export.GrafanaOptions{})
	}
}
