package abateprom_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/policy/shed"
)

// errRefused is what the API says of a query that cannot be read.
var errRefused = errors.New("prometheus refuses")

// asked is a query of the dashboard and where it stands.
type asked struct{ where, expr string }

// dashboard reads the queries of the dashboard that is given to people, and the one that lists services.
func dashboard(t *testing.T) (queries []asked, services string) {
	t.Helper()
	type panel struct {
		Title   string
		Targets []struct{ Expr string }
		Panels  []json.RawMessage
	}
	var board struct {
		Annotations struct{ List []struct{ Name, Expr string } }
		Templating  struct {
			List []struct{ Name, Definition string }
		}
		Panels []json.RawMessage
	}
	text, err := os.ReadFile("../../deploy/grafana/abate.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(board.Panels); i++ {
		var p panel
		if err := json.Unmarshal(board.Panels[i], &p); err != nil {
			t.Fatal(err)
		}
		for _, q := range p.Targets {
			queries = append(queries, asked{p.Title, q.Expr})
		}
		board.Panels = append(board.Panels, p.Panels...) // those that are folded
	}
	for _, a := range board.Annotations.List {
		if a.Expr != "" {
			queries = append(queries, asked{"mark " + a.Name, a.Expr})
		}
	}
	for _, v := range board.Templating.List {
		if v.Name == "service" {
			services = v.Definition
		}
	}
	if len(queries) < 60 || services == "" {
		t.Fatalf("the dashboard has %d queries, and lists services by %q", len(queries), services)
	}
	return queries, services
}

// world is guards, gates and consumers in trouble of all kinds.
type world struct {
	fixture
	payment, mail, stock, db *abate.Guard
	orders                   *inbound.Gate
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{fixture: everything(t)}
	quick := abate.Policy{Retry: abate.Retry{MaxRetries: 2, Backoff: retry.NoBackoff}}
	p := quick
	p.RetryBudget = budget.Config{Kind: budget.Ratio, Ratio: 1, Reserve: 100}
	p.Throttle.K, p.Bulkhead = 100, bulkhead.Config{MaxConcurrentCalls: 10}
	p.RateLimit.Limit.Tokens, p.RateLimit.Limit.Per = 1e6, time.Second
	w.payment = w.guard(t, "payment", p)
	p = quick
	p.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 1, RefillPerSecond: 1e-6}
	w.mail = w.guard(t, "mail", p)
	w.stock = w.guard(t, "stock", opening())
	w.db = w.guard(t, "db", abate.Policy{Pacing: pacing.Config{PerSecond: 1, MaxWait: time.Millisecond}})
	w.orders = w.gate(t, "orders", inbound.Protection{
		RateLimit: once, Shed: shed.Config{Concurrency: shed.Gradient, CPU: 0.9},
		Idempotency: idempotency.Config{Methods: []string{"POST"}},
	})
	if err := w.stock.Override(abate.OverrideForcedOpen); err != nil {
		t.Fatal(err)
	}
	return w
}

// act lets a little of everything happen.
func (w *world) act(t *testing.T) {
	t.Helper()
	call := func(g *abate.Guard, failures int) {
		_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) {
			if failures--; failures >= 0 {
				return 0, errDown
			}
			return 0, nil
		})
	}
	for range 20 {
		for _, g := range []*abate.Guard{w.payment, w.mail, w.stock, w.db} {
			call(g, 0)
			call(g, 1)
			call(g, 3)
		}
		arrive(w.orders, new(inbound.Arrival), 0, inbound.Request{Deadline: core.NoDeadline, Key: "tenant"})
	}
	w.payment.CountHiddenRetries(1)
	w.payment.UsedFallback(errDown)
	if err := w.payment.Update(*w.payment.Describe()); err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		w.observer("payment").Observe(e)
	}
	for _, e := range gateEvents {
		w.gateObserver("orders").ObserveGate(e)
	}
	e := w.Endpoint("payment", "/charges/{id}")
	e.Began()
	e.Retried(2)
	e.Ended(503, time.Millisecond)
	w.GRPC().RetryAttempt("/shop.Payment/Get", "UNAVAILABLE")
	w.GRPC().BudgetExhausted("/shop.Payment/Get")
	w.ObserveRedis("take", time.Millisecond, errDown)
	w.RedisFallback("limit")
	for kind := redelivery.Delivered; kind <= redelivery.Stuck; kind++ {
		w.ObserveRedelivery(redelivery.Event{
			Kind: kind, Service: "billing", Topic: "payments-retry-30s", Latency: time.Millisecond, Lateness: time.Millisecond,
		})
	}
}

// TestARealPrometheusAnswersEveryPanel: whoever opens the dashboard during an outage must not find an empty panel, or
// an error in it. What a panel shows when a query finds nothing is taken away, so that the query has to find something.
func TestARealPrometheusAnswersEveryPanel(t *testing.T) {
	pending, services := dashboard(t)
	w := newWorld(t)
	p := startPrometheus(t, w.handler())
	choose := strings.NewReplacer("$service", ".+", "$job", ".*", "$instance", ".*", "$__rate_interval", "10s",
		" or vector(0)", "")
	p.until(t, func() bool {
		w.act(t)
		pending = slices.DeleteFunc(pending, func(a asked) bool {
			n, err := p.series(choose.Replace(a.expr))
			if errors.Is(err, errRefused) {
				t.Errorf("%s: %v: %s", a.where, err, a.expr)
				return true
			}
			return n > 0
		})
		return len(pending) == 0
	})
	for _, a := range pending {
		t.Errorf("%s: nothing comes back of %s", a.where, choose.Replace(a.expr))
	}
	// The same questions, asked wrongly.
	if n, err := p.series("sum by (service) (rate(abate_nothing_total[10s]))"); n != 0 || err != nil {
		t.Errorf("a metric that is not there has %d series, %v", n, err)
	}
	if _, err := p.series("sum by service (abate_calls_total"); !errors.Is(err, errRefused) {
		t.Errorf("a query that cannot be read gives %v", err)
	}
	var found []string
	selector := regexp.MustCompile(`^label_values\((.*), service\)$`).FindStringSubmatch(services)
	if err := p.get("/api/v1/label/service/values", url.Values{"match[]": selector[1:]}, &found); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"billing", "db", "mail", "orders", "payment", "stock"} {
		if !slices.Contains(found, name) {
			t.Errorf("%s cannot be chosen, only %q", name, found)
		}
	}
}

// leftOut are the metrics that no panel shows, and why.
var leftOut = map[string]string{
	"abate_idempotency_bytes": "it is no trouble if the store is full of answers: the oldest go first; " +
		"abate_idempotency_held_seconds says what matters",
	"abate_idempotency_max_bytes": "the bound of abate_idempotency_bytes",
	"abate_noticed_circuit_open":  "it is for the rules; abate_circuit_breaker_open is the same",
	"abate_noticed_override":      "it is for the rules; abate_override is the same",
	"abate_noticed_policy":        "it is where an alert begins, as the abate_policy_ metrics are",
	"abate_noticed_total":         "it is for the rules; the counters that it names are the same",
}

// TestEveryMetricIsOnTheDashboard, or left out on purpose: one that nobody sees is not worth its series.
func TestEveryMetricIsOnTheDashboard(t *testing.T) {
	queries, _ := dashboard(t)
	w := newWorld(t)
	w.act(t)
	families, err := w.registry.Gather()
	if err != nil || len(families) < len(names) {
		t.Fatalf("%d metrics: %v", len(families), err)
	}
	there := map[string]bool{}
	for _, family := range families {
		name := family.GetName()
		if there[name] = true; there["abate_"+name] {
			continue // the same under its plain name
		}
		plain := strings.TrimPrefix(name, "abate_") // older panels have it
		shown := slices.ContainsFunc(queries, func(a asked) bool {
			return regexp.MustCompile(`\b(` + name + `|` + plain + `)(_bucket|_sum|_count)?\b`).MatchString(a.expr)
		})
		why := leftOut[name]
		if strings.HasPrefix(name, "abate_policy_") && name != "abate_policy_changes_total" {
			why = "it is where an alert begins; the lines of the dashboard are drawn from the policy file"
		}
		if shown == (why != "") {
			t.Errorf("%s is on the dashboard: %v; it is left out because: %q", name, shown, why)
		}
	}
	for name := range leftOut {
		if !there[name] {
			t.Errorf("there is no %s to be left out", name)
		}
	}
}
