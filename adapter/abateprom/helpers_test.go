package abateprom_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateprom"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
)

var errDown = errors.New("down")

// fixture is metrics on a registry of their own.
type fixture struct {
	*abateprom.Metrics
	registry *prometheus.Registry
}

func metrics(t testing.TB) fixture {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := abateprom.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{m, registry}
}

// guard makes one whose policy is adjusted, and adds it.
func (f fixture) guard(t testing.TB, name string, p abate.Policy) *abate.Guard {
	t.Helper()
	f.Adjust(name, &p)
	g, err := abate.New(name, alone(p))
	if err != nil {
		t.Fatal(err)
	}
	f.Add(g)
	return g
}

// observer is what Adjust sets in the policy of service.
func (f fixture) observer(service string) abate.Observer {
	var p abate.Policy
	f.Adjust(service, &p)
	return p.Observer
}

// page is one scrape: the value of each series, such as `circuit_breaker_state{service="a"}`.
type page map[string]float64

// scrape reads the page without a network, as synctest needs it.
func (f fixture) scrape(t testing.TB) page {
	t.Helper()
	answer := httptest.NewRecorder()
	f.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return parse(t, answer.Result())
}

// fetch reads the page over HTTP.
func (f fixture) fetch(t testing.TB) page {
	t.Helper()
	server := httptest.NewServer(f.handler())
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, resp)
}

func (f fixture) handler() http.Handler {
	return promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{})
}

func parse(t testing.TB, resp *http.Response) page {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("scrape: %v, %s\n%s", err, resp.Status, body)
	}
	p := page{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		space := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[space+1:], 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if _, twice := p[line[:space]]; twice {
			t.Errorf("%s is there twice", line[:space])
		}
		p[line[:space]] = v
	}
	return p
}

// want checks series that must be there.
func (p page) want(t testing.TB, series map[string]float64) {
	t.Helper()
	for name, want := range series {
		if got, ok := p[name]; !ok || got != want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
}

// of returns the series of one metric.
func (p page) of(metric string) page {
	found := page{}
	for name, v := range p {
		if strings.HasPrefix(name, metric+"{") {
			found[name] = v
		}
	}
	return found
}

// failing runs a call of n attempts that all fail, on explicit times: it ends when the policy says so.
func failing(g *abate.Guard, now time.Duration) error {
	return play(g, now, func(int) abate.Outcome { return abate.Outcome{Class: abate.Failure, Err: errDown} })
}

// play runs a call at explicit times; sleeps take as long as they should.
func play(g *abate.Guard, now time.Duration, outcome func(attempt int) abate.Outcome) error {
	var c core.Call
	step := g.Begin(&c, now, core.NoDeadline)
	for step.Action != core.Finish {
		if step.Action == core.Sleep {
			now = step.Until
			step = c.Resume(now)
			continue
		}
		step = c.AttemptDone(now, 0, outcome(c.Attempts()))
	}
	return step.Err
}

// alone declines in words what a policy that retries or hedges gets if it says nothing: budget and circuit breaker.
func alone(p abate.Policy) abate.Policy {
	if p.Budget == nil && p.RetryBudget == (budget.Config{}) {
		p.RetryBudget.Disabled = true
	}
	if p.CircuitBreaker == (breaker.Config{}) {
		p.CircuitBreaker.Disabled = true
	}
	return p
}
