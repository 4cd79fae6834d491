//go:build !race

package rehearse

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/internal/needs"
)

// steady is a series that has one value, from another time on a second one, and from a third time on the first again.
func steady(series string, usual, then float64, from, to, end time.Duration) inputSeries {
	return inputSeries{
		series, fmt.Sprintf("%v+0x%d %v+0x%d %v+0x%d", usual, from/scraping-1, then, (to-from)/scraping-1, usual,
			(end-to)/scraping),
	}
}

// growing is a counter that grows by one amount for each scrape, between two times by another.
func growing(series string, usual, then float64, from, to, end time.Duration) inputSeries {
	at1, at2 := usual*float64(from/scraping), usual*float64(from/scraping)+then*float64((to-from)/scraping)
	return inputSeries{
		series, fmt.Sprintf("0+%vx%d %v+%vx%d %v+%vx%d", usual, from/scraping-1, at1, then, (to-from)/scraping-1, at2, usual,
			(end-to)/scraping),
	}
}

// TestStatesThatTheSimulatorHasNotRaiseTheirAlerts gives each alert half an hour: usual, then trouble from the tenth to
// the twentieth minute, then usual. It has to fire within 30 s of its time, alone, and to be over five minutes after
// the trouble.
func TestStatesThatTheSimulatorHasNotRaiseTheirAlerts(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const from, to, end = 10 * time.Minute, 20 * time.Minute, 30 * time.Minute
	rules := rulesOf(t, everyAlertPolicy)
	policies := policySeries(t, everyAlertPolicy, end, `job="shop", instance="a"`, `job="orders", instance="a"`)
	gate := func(name, more string) string {
		return name + `{service="orders", job="orders", instance="a"` + more + `}`
	}
	arrived := growing(gate("abate_requests_arrived_total", ""), 1000, 1000, from, to, end)
	shed := growing(gate("abate_requests_shed_total", ""), 0, 200, from, to, end)
	critical := growing(gate("abate_critical_requests_arrived_total", ""), 1000, 1000, from, to, end)
	for _, c := range []struct {
		name, severity string
		after          time.Duration
		besides        string
		series         []inputSeries
	}{
		// one bulkhead of two: when the last minute's scrapes have seen nothing else, and a minute more
		{"ConcurrencySpike", warn, 105 * time.Second, "", []inputSeries{
			steady(`abate_bulkhead_running{service="quote-service", job="shop", instance="a"}`, 3, 10, from, to, end),
			steady(`abate_bulkhead_limit{service="quote-service", job="shop", instance="a"}`, 10, 10, from, to, end),
			steady(`abate_bulkhead_running{service="quote-service", job="shop", instance="b"}`, 3, 3, from, to, end),
			steady(`abate_bulkhead_limit{service="quote-service", job="shop", instance="b"}`, 10, 10, from, to, end)}},
		{"ConnectionsHeldBack", warn, 5 * time.Minute, "", []inputSeries{
			steady(`abate_pacing_wait_seconds{service="payment-service", job="shop"}`, 0.2, 0.95, from, to, end),
			growing(`abate_call_refusals_total{service="payment-service", job="shop", reason="rate_limited"}`, 0, 3, from,
				to, end)}},
		{"ArrivingRetries", warn, 2 * time.Minute, "", []inputSeries{arrived,
			steady(gate("abate_arriving_retry_ratio", ""), 0.02, 0.4, from, to, end)}},
		{"ShedRate", warn, 5 * time.Minute, "", []inputSeries{arrived, shed, critical,
			growing(gate("abate_critical_requests_shed_total", ""), 0, 0, from, to, end)}},
		{"ShedRate", pager, 2 * time.Minute, "ShedRate", []inputSeries{arrived, shed, critical,
			growing(gate("abate_critical_requests_shed_total", ""), 0, 200, from, to, end)}},
		{"DeadLetterArrival", warn, 0, "", []inputSeries{
			growing(`abate_kafka_dead_letters_total{service="payment-service", topic="payments", reason="permanent", `+
				`job="shop"}`, 0, 0.1, from, to, end),
		}},
		{"DeadLetterFlood", warn, 0, "",
			[]inputSeries{steady(`abate_kafka_flood_holding{service="payment-service", job="shop"}`, 0, 1, from, to, end),
				steady(`abate_kafka_flood_share{service="payment-service", job="shop"}`, 0, 0.05, from, to, end)}},
	} {
		others := c.besides
		if others == "" {
			others = c.name
		}
		late := late
		if c.after >= 2*time.Minute && c.name == "ShedRate" {
			late += scraping // shares of a window cross their threshold when some of it has passed
		}
		exprs := append(firstFires(c.name, c.severity, from+c.after-time.Second, from+c.after+late),
			noAlert(from-time.Second), noAlertBut(end, others), notFiring(c.name, c.severity, to+6*time.Minute))
		rulesHold(t, rules, ruleTest{Name: c.name, Series: append(policies, c.series...), Exprs: exprs})
	}
}

// TestWhatOneInstanceShowsIsNotAlwaysTrouble has half an hour of what looks like an alert in a single instance, and is
// none.
func TestWhatOneInstanceShowsIsNotAlwaysTrouble(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const end = 30 * time.Minute
	level := func(series string, v float64) inputSeries { return steady(series, v, v, end/3, 2*end/3, end) }
	rising := func(series string, each float64) inputSeries { return growing(series, each, each, end/3, 2*end/3, end) }
	guard := func(name, instance, more string) string {
		return name + `{service="payment-service", job="shop", instance="` + instance + `"` + more + `}`
	}
	gate := func(name, instance, more string) string {
		return name + `{service="orders", job="orders", instance="` + instance + `"` + more + `}`
	}
	quote := func(name, instance string) string {
		return name + `{service="quote-service", job="shop", instance="` + instance + `"}`
	}
	rules := rulesOf(t, everyAlertPolicy)
	for name, series := range map[string][]inputSeries{
		"a circuit that opened before the load went elsewhere, and stays open while nobody calls": {
			level(guard("abate_circuit_breaker_open", "idle", ""), 1),
			rising(guard("abate_calls_ended_total", "idle", ""), 0),
			level(guard("abate_circuit_breaker_open", "busy", ""), 0),
			rising(guard("abate_calls_ended_total", "busy", ""), 100)},
		"a circuit that somebody has forced open by hand: that says nothing of the service": {
			{guard("abate_circuit_breaker_open", "a", ""), "0x40 1x80"}, // what is shown of it, and afterwards
			rising(guard("abate_calls_ended_total", "a", ""), 100), rising(guard("abate_calls_failed_total", "a", ""), 100),
			{guard("abate_override", "a", `, override="forcedOpen"`), "1x40 0x80"},
			{guard("abate_attempts_running", "a", ""), "1x120"}},
		"a service that is called once in two minutes and fails every time": {
			rising(guard("abate_calls_ended_total", "a", ""), 0.125), rising(guard("abate_calls_failed_total", "a", ""), 0.125)},
		"bulkheads that are full in turn, each for a moment": {
			{quote("abate_bulkhead_running", "a"), strings.Repeat("10 10 4 4 ", 30)},
			level(quote("abate_bulkhead_limit", "a"), 10),
			{quote("abate_bulkhead_running", "b"), strings.Repeat("4 4 10 10 ", 30)},
			level(quote("abate_bulkhead_limit", "b"), 10)},
		"one retry among the handful of requests that a canary gets": {
			level(gate("abate_arriving_retry_ratio", "canary", ""), 0.5),
			rising(gate("abate_requests_arrived_total", "canary", ""), 5),
			level(gate("abate_arriving_retry_ratio", "all", ""), 0.03),
			rising(gate("abate_requests_arrived_total", "all", ""), 1000)},
		"a pace of less than one in maxWait, under which every connection makes the next one wait so long": {
			level(guard("abate_pacing_wait_seconds", "a", ""), 1.5),
			rising(guard("abate_call_refusals_total", "a", `, reason="rate_limited"`), 0)},
	} {
		want := []exprTest{noAlert(end)}
		if strings.Contains(name, "by hand") { // a circuit under no override is another matter
			want = []exprTest{noAlertBut(10*time.Minute, "$^"), firing("CircuitBreakerOpen", pager, 13*time.Minute)}
		}
		policies := policySeries(t, everyAlertPolicy, end, `job="shop", instance="a"`, `job="orders", instance="all"`)
		rulesHold(t, rules, ruleTest{Name: name, Series: append(policies, series...), Exprs: want})
	}
}

// A consumer that gives its first message up before anybody has scraped it has a series that begins with 1. A scrape
// that fails makes no new letters of old ones.
func TestTheFirstDeadLetterOfAProcessCountsAndOldOnesDoNotCountAgain(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	letters := func(instance, values string) inputSeries {
		return inputSeries{
			`abate_kafka_dead_letters_total{service="payment-service", topic="payments", reason="permanent", job="shop", ` +
				`instance="` + instance + `"}`, values,
		}
	}
	exprs := append([]exprTest{
		notFiring("DeadLetterArrival", warn, 89*time.Minute),
		firing("DeadLetterArrival", warn, 90*time.Minute+15*time.Second),
	}, notFiring("DeadLetterArrival", warn, 96*time.Minute))
	rulesHold(t, rulesOf(t, everyAlertPolicy), ruleTest{Series: []inputSeries{
		letters("old", "0 1x119 stale 1x40 _x30 1x300"), letters("new", "_x360 1x100")}, // 360 scrapes are an hour and a half
		Exprs: append(exprs, notFiring("DeadLetterArrival", warn, 36*time.Minute),
			notFiring("DeadLetterArrival", warn, 50*time.Minute))})
}

// An override is forgotten after a quarter of an hour, not before.
func TestAnOverrideIsTheBusinessOfOthersAfterAQuarterOfAnHour(t *testing.T) {
	series := []inputSeries{
		{`abate_override{service="payment-service", job="shop", override="forcedOpen", instance="a"}`, "0x20 1x80 0x40"},
	}
	exprs := append(firstFires("OverrideInForce", warn, 20*time.Minute, 20*time.Minute+15*time.Second+late),
		noAlertBut(40*time.Minute, "OverrideInForce"), notFiring("OverrideInForce", warn, 26*time.Minute))
	rulesHold(t, rulesOf(t, everyAlertPolicy), ruleTest{Series: series, Exprs: exprs})
}

// Half an hour has to be known before something is four times the usual; and what a service asks for from its first
// minute is usual.
func TestANewServiceHasNoSpikeUntilHalfAnHourOfItIsKnown(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	attempts := func(values string) []inputSeries {
		return []inputSeries{{`abate_attempts_running{service="payment-service", job="shop", instance="a"}`, values},
			{`abate_attempts_running{service="payment-service", job="shop", instance="b"}`, "1x800"}}
	}
	rules, spike := rulesOf(t, "services: {payment-service: {maxRetries: 0}}"), "ConcurrencySpike"
	again := attempts("5x199 _x199 5x19 90x200")
	rulesHoldHoweverOften(t, 8*scraping, rules, // four scrapes are a minute
		ruleTest{
			Name: "it is rolled out slowly", Series: attempts("1x27 90x400"), Exprs: []exprTest{noAlert(80 * time.Minute)},
		},
		ruleTest{Name: "after 25 minutes", Series: attempts("5x99 90x40 5x100"), Exprs: []exprTest{noAlert(time.Hour)}},
		ruleTest{
			Name: "after 36 minutes", Series: attempts("5x143 90x40 5x100"),
			Exprs: append(firstFires(spike, warn, 38*time.Minute-time.Second, 38*time.Minute+late),
				notFiring(spike, warn, 52*time.Minute)),
		},
		ruleTest{Name: "it was away, and is new again", Series: again[:1], Exprs: []exprTest{noAlert(2 * time.Hour)}})
}

func TestACircuitThatThePolicyForcesOpenWakesNobodyAndIsAskedAboutAfterHours(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	open := func(service, job, policy, opened, refused string) []inputSeries {
		labels := `{service="` + service + `", job="` + job + `"`
		return append(policySeries(t, "services: {"+service+": "+policy+"}", 5*time.Hour, `job="`+job+`"`),
			inputSeries{`abate_circuit_breaker_open` + labels + `}`, opened}, inputSeries{`abate_attempts_running` + labels +
				`}`,
				"0x1200"}, inputSeries{`abate_calls_ended_total` + labels + `}`, refused},
			inputSeries{`abate_calls_failed_total` + labels + `}`, refused})
	}
	asked := func(at time.Duration, jobs ...string) exprTest {
		x := exprTest{Expr: `count by (job) (ALERTS{alertstate="firing", alertname="OverrideInForce", by="policy", ` +
			`severity="` + warn + `"})`, At: prometheusTime(at)}
		for _, job := range jobs {
			x.Samples = append(x.Samples, sample{`{job="` + job + `"}`, 1})
		}
		return x
	}
	const first, second = 4 * time.Hour, 4*time.Hour + 30*time.Minute
	// a job that calls for the first time after half an hour
	halfHourly := "0x119 1x119 2x119 3x119 4x119 5x119 6x119 7x119 8x119 9x119"
	const forcedOpen = "{maxRetries: 0, circuitBreaker: {mode: forcedOpen}}"
	forced := slices.Concat(open("legacy-service", "shop", forcedOpen, "0x1200", "0+10x1200"),
		open("legacy-service", "cron", forcedOpen, "0x1200", halfHourly),
		open("legacy-service", "idle", forcedOpen, "0x1200", "10x1200"))
	rulesHold(t, rulesOf(t, "services: {legacy-service: "+forcedOpen+"}"),
		ruleTest{Name: "forced open", Series: forced,
			Exprs: []exprTest{noAlert(first - time.Second), asked(first+late, "shop"),
				asked(second-time.Second, "shop"), asked(second+late, "shop", "cron"),
				noAlertBut(second+late, "OverrideInForce")}},
		ruleTest{Name: "another one", Series: open("payment-service", "shop", "{maxRetries: 0}", "1x1200", "0+10x1200"),
			Exprs: append(firstFires("CircuitBreakerOpen", pager, 2*time.Minute, 2*time.Minute+late),
				noAlertBut(30*time.Minute, "CircuitBreakerOpen"))})
}

// oddNames are services whose names mean something to YAML, PromQL, templates or regular expressions.
var oddNames = []string{"payment-service", `say "hi"`, `back\slash`, "{{ $labels.job }}", "{{{", "größe 支付", "a|b.*",
	"it's", "- yes: #1", "%d", "$1", "`x`"}

func TestServicesWithOddNamesHaveAlertsOfTheirOwn(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	services := map[string]any{}
	var series []inputSeries
	var alerts []wantAlert
	for _, name := range oddNames {
		services[name] = map[string]any{}
		series = append(series, inputSeries{
			"abate_override{job=\"shop\", override=\"shadow\", service=" + strconv.Quote(name) + "}", "1x100",
		})
		alerts = append(alerts, wantAlert{
			Labels: map[string]string{"severity": warn, "service": name, "job": "shop", "override": "shadow"},
			Annotations: map[string]string{
				"summary": "The circuit of " + name + " is shadow by hand",
				"description": "Somebody has overridden the circuit of " + name +
					" with shadow in 1 instances. The override stays until somebody removes it; a reload of the policy does not.",
				"runbook_url": "https://wiki.example/alerts/OverrideInForce.md",
			},
		})
	}
	policy, err := yaml.Marshal(map[string]any{"services": services})
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(t, string(policy), "--runbook-url", "https://wiki.example/alerts")
	rulesHold(t, rules, ruleTest{
		Series: series, Alerts: []alertTest{{At: "20m", Name: "OverrideInForce", Alerts: alerts}},
	})
	promtoolAccepts(t, rules)
}

// promtoolAccepts wants "promtool check rules" to find nothing wrong.
func promtoolAccepts(t testing.TB, rules string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), needs.Program(t, "promtool", "prometheus"), "check", "rules",
		rules).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "SUCCESS") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	for _, flags := range [][]string{nil, {"--scale", "0.1"}, {"--scale", "0.01"}, {"--scale", "100"}} {
		promtoolAccepts(t, rulesOf(t, everyAlertPolicy, flags...))
	}
	broken := rulesOf(t, everyAlertPolicy)
	text, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, bytes.Replace(text, []byte("sum by"), []byte("sun by"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if exec.CommandContext(t.Context(), needs.Program(t, "promtool", "prometheus"), "check", "rules", broken).Run() ==
		nil {
		t.Error("promtool accepts anything")
	}
}

func TestPromtoolAcceptsTheConfigurationAndTheRulesInDeploy(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "deploy", "prometheus")
	promtoolAccepts(t, filepath.Join(folder, "abate.rules.yaml"))
	if said, err := exec.CommandContext(t.Context(), needs.Program(t, "promtool", "prometheus"), "check", "config",
		filepath.Join(folder, "prometheus.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestExportWritesToStandardOutputOrAFile(t *testing.T) {
	policy := filepath.Join("..", "..", "..", "examples", "policy.yaml")
	code, text, complaint := runExportCommand("prometheus-rules", "-c", policy)
	if code != 0 || complaint != "" ||
		!strings.HasPrefix(text, "# Written by \"abate export prometheus-rules\".") {
		t.Fatalf("exit code %d, %q\n%.200s", code, complaint, text)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if code, out, complaint := runExportCommand("-o", file, "-c", policy, "prometheus-rules"); code != 0 ||
		out+complaint != "" {
		t.Errorf("exit code %d, %q, %q", code, out, complaint)
	}
	if written, err := os.ReadFile(file); err != nil || string(written) != text {
		t.Errorf("%v; not the same as on standard output", err)
	}
	code, board, complaint := runExportCommand("grafana", "-c", policy, "--title", "Checkout")
	if code != 0 || complaint != "" || !strings.Contains(board, `"Checkout"`) {
		t.Errorf("exit code %d, %q\n%.200s", code, complaint, board)
	}
}

func TestExportSaysAllThatIsWrongAndWritesNothing(t *testing.T) {
	dir := t.TempDir()
	bad, good, out := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "good.yaml"), filepath.Join(dir, "rules.yaml")
	for name, text := range map[string]string{
		bad: "services:\n  s: {maxRetries: many, tiemout: 1s}\n", good: "services: {s: {}}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"prometheus-rules", "-c", bad, "-o", out}, 1, []string{
			"bad.yaml:2:19:", "bad.yaml:2:25:", "did you mean timeout?",
		}},
		{[]string{"prometheus-rules", "-c", filepath.Join(dir, "none.yaml"), "-o", out}, 1, []string{"none.yaml"}},
		{[]string{"prometheus-rules", "-c", bad, "-o", filepath.Join(dir, "no", "such", "folder")}, 1,
			[]string{"bad.yaml:2:19:"}},
		{[]string{"prometheus-rules", "-c", good, "-o", good}, 1, []string{"good.yaml is the policy file itself"}},
		{nil, 2, []string{"say what to write: prometheus-rules or prometheus-rule or mixin or grafana",
			`"abate export -h" explains`}},
		{[]string{"rules", "more", "--scale", "0", "--runbook-url", "here", "-c", bad}, 2, []string{
			`"rules" is not something to write; allowed: prometheus-rules, prometheus-rule, mixin, grafana`,
			`"more" is one word too many`,
			"--scale: 0 is out of range; allowed: 0.01 to 100", `runbook URL: "here"`}},
		{[]string{"prometheus-rules", "--scale", "NaN"}, 2, []string{"--scale: NaN is out of range"}},
		{[]string{"prometheus-rules", "--title", "x", "-c", bad}, 2, []string{
			"--title is for grafana, not for prometheus-rules",
		}},
		{[]string{"prometheus-rules", "--only-listed"}, 2, []string{"-only-listed"}},
		{[]string{"mixin", "--scrape", "1h", "--name", "x"}, 2,
			[]string{"--scrape: 1h0m0s is out of range; allowed: 1s to 2m0s",
				"--name is for prometheus-rule, not for mixin"}},
		{[]string{"prometheus-rule", "--labels", "a"}, 2, []string{`--labels: "a" is not KEY=VALUE; for example release=`}},
		{[]string{"prometheus-rule", "--labels", "a b=c", "--name", "X"}, 1, []string{`name: "X"`, "label: a b=c"}},
		{[]string{"grafana", "--scale", "2"}, 2,
			[]string{"--scale is for prometheus-rules and prometheus-rule and mixin, not for grafana"}},
		{[]string{"prometheus-rules", "--window", "2"}, 2, []string{"-window"}},
	} {
		code, text, complaint := runExportCommand(c.args...)
		if code != c.code || text != "" {
			t.Errorf("%q: exit code %d, want %d; wrote %q", c.args, code, c.code, text)
		}
		for _, want := range c.want {
			if !strings.Contains(complaint, want) {
				t.Errorf("%q: %q is not in\n%s", c.args, want, complaint)
			}
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written")
	}
}

// Before the thresholds were metrics, 200 services were 1,631 rules of 1.24 MB, and no ConfigMap held them.
func TestRulesForTwoHundredServicesFitAndPromtoolAcceptsThem(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	const named = "200-services.yaml"
	const command = "go run ./cmd/abate export prometheus-rules --for " + named + " | promtool check rules /dev/stdin"
	page, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "README.md"))
	if err != nil || !strings.Contains(string(page), command) {
		t.Errorf("%v: the page does not say %s", err, command)
	}
	file := filepath.Join(root, filepath.FromSlash(named))
	if policy, err := cli.PolicyFile(file); err != nil || len(policy.Services) != 200 {
		t.Fatal(err)
	}
	code, rules, complaint := runExportCommand("prometheus-rules", "--for", file)
	if code != 0 || complaint != "" || len(rules) > 40<<10 {
		t.Fatalf("exit code %d, %q, %d bytes", code, complaint, len(rules))
	}
	check := exec.CommandContext(t.Context(), needs.Program(t, "promtool", "prometheus"), "check", "rules", "/dev/stdin")
	check.Stdin = strings.NewReader(rules)
	said, err := check.CombinedOutput()
	var n int
	if _, found, _ := strings.Cut(string(said), "SUCCESS: "); err != nil || found == "" {
		t.Errorf("%v\n%s", err, said)
	} else if _, err := fmt.Sscan(found, &n); err != nil || n == 0 || n > 20 {
		t.Errorf("%d rules, %v", n, err)
	}
	if code, _, complaint := runExportCommand("prometheus-rules", "--for", filepath.Join(root, "none.yaml")); code != 1 ||
		!strings.Contains(complaint, "none.yaml") {
		t.Errorf("a file that is not there: exit code %d, %q", code, complaint)
	}
}

func TestExportExplainsItself(t *testing.T) {
	code, text, _ := runExportCommand("-h")
	if code != 0 || !strings.Contains(text, "promtool check rules /dev/stdin") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	for line := range strings.Lines(text) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 100 {
			t.Errorf("longer than 100 columns: %s", line)
		}
	}
}

// TestAStoreOfKeysThatWillBeFullIsToldLongBefore has a store with room for 200,000 keys, which 2.3 a second fill in a
// day. It is told at 4 a second when it holds next to nothing, and again when it has forgotten one early.
func TestAStoreOfKeysThatWillBeFullIsToldLongBefore(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const from, to, end = 2 * time.Hour, 4 * time.Hour, 8 * time.Hour
	const each = 4 * float64(scraping/time.Second)
	gate := func(name, more string) string {
		return name + `{service="orders", job="orders", instance="a"` + more + `}`
	}
	level := func(series string, v float64) inputSeries { return steady(series, v, v, from, to, end) }
	room := []inputSeries{
		level(gate("abate_idempotency_retention_seconds", ""), 86400), level(gate("abate_idempotency_max_keys", ""), 200_000),
	}
	rules := rulesOf(t, everyAlertPolicy)
	rulesHoldHoweverOften(
		t, 4*scraping, rules,
		ruleTest{Name: "soon",
			Series: append(room, growing(gate("abate_idempotency_total", `, result="run"`), each/8, each, from, to, end)),
			Exprs: []exprTest{noAlert(from), notFiring("IdempotencyKeysFull", warn, from+15*time.Minute),
				firing("IdempotencyKeysFull", warn, from+time.Hour),
				notFiring("IdempotencyKeysFull", pager, from+time.Hour), notFiring("IdempotencyKeysFull", warn, to+time.Hour)}})
	for name, series := range map[string]string{"forgotten early": "abate_idempotency_forgotten_total" +
		`{service="orders", job="orders", instance="a"}`,
		"refused": gate("abate_idempotency_total", `, result="full"`)} {
		rulesHoldHoweverOften(t, 4*scraping, rules, ruleTest{Name: name,
			Series: append(room, growing(series, 0, 0.1, from, to, end)),
			Exprs: []exprTest{noAlert(from), firing("IdempotencyKeysFull", pager, from+time.Minute),
				notFiring("IdempotencyKeysFull", pager, to+6*time.Minute)}})
	}
}
