package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/abate-go/abate/policyfile"
)

func TestTheAdminPages(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}))
	s := httptest.NewServer(r.admin)
	t.Cleanup(s.Close)
	for _, tt := range []struct {
		method, path string
		status       int
		contentType  string
		content      string
	}{
		{"GET", "/healthz", 200, "text/plain; charset=utf-8", "ok\n"},
		{"GET", "/readyz", 200, "text/plain; charset=utf-8", "ready\n"},
		{"HEAD", "/readyz", 200, "text/plain; charset=utf-8", ""},
		{"GET", "/guards", 200, "application/json", `"service": "s"`},
		{"GET", "/policy", 200, "application/yaml", "http://127.0.0.1:9"},
		{"GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "circuit_breaker_state"},
		{"GET", "/", 200, "text/plain; charset=utf-8", "/guards"},
		{"GET", "/other", 404, "text/plain; charset=utf-8", ""},
		{"POST", "/healthz", 405, "text/plain; charset=utf-8", ""},
		{"POST", "/policy", 405, "text/plain; charset=utf-8", ""},
		{"DELETE", "/guards", 405, "text/plain; charset=utf-8", ""},
	} {
		req := newRequest(t, tt.method, s.URL+tt.path, nil)
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status || resp.Header.Get("Content-Type") != tt.contentType ||
			!strings.Contains(string(body), tt.content) {
			t.Errorf("%s %s: %d %q %.200s", tt.method, tt.path, resp.StatusCode, resp.Header.Get("Content-Type"), body)
		}
	}
}

// shape is everything that /guards tells.
type shape struct {
	Policy struct {
		Path           string    `json:"path"`
		Loaded         time.Time `json:"loaded"`
		Hash           string    `json:"hash"`
		Error          string    `json:"error"`
		GatewayRetries bool      `json:"gatewayRetries"`
	} `json:"policy"`
	Draining bool `json:"draining"`
	Services []struct {
		Service string `json:"service"`
		Breaker struct {
			State       string  `json:"state"`
			FailureRate float64 `json:"failureRate"`
			SlowRate    float64 `json:"slowCallRate"`
			Calls       int     `json:"calls"`
			Openings    int     `json:"openings"`
			ProbesIn    string  `json:"probesIn"`
		} `json:"circuitBreaker"`
		Budget   float64 `json:"retryBudgetBalance"`
		Bulkhead struct {
			Running int `json:"running"`
			Queued  int `json:"queued"`
			Limit   int `json:"limit"`
		} `json:"bulkhead"`
		Typical    string   `json:"typicalLatency"`
		RetryOwner string   `json:"retryOwner"`
		Speaks     bool     `json:"speaksAllowances"`
		Learned    []string `json:"learned"`
		Endpoints  []struct {
			URL      string `json:"url"`
			Pending  int    `json:"pending"`
			Idle     int    `json:"idleConnections"`
			HTTP2    int    `json:"http2Connections"`
			Failures int    `json:"consecutiveFailures"`
			Ejected  bool   `json:"ejected"`
			BackIn   string `json:"backIn"`
		} `json:"endpoints"`
	} `json:"services"`
}

// shape reads /guards, which must hold nothing else.
func (r *running) shape() (s shape) {
	r.t.Helper()
	in := json.NewDecoder(strings.NewReader(r.adminGet("/guards")))
	in.DisallowUnknownFields()
	if err := in.Decode(&s); err != nil {
		r.t.Fatalf("/guards: %v", err)
	}
	return s
}

func TestGuardsTellsTheStateOfEveryService(t *testing.T) {
	s := inTurn(t, status(500), status(500), ok(""))
	r := start(t, fmt.Sprintf(`services:
  down:
    upstreams: [%q]
    routes: [{path: /}]
    maxRetries: 0
    circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 1h}
    bulkhead: {maxConcurrentCalls: 7}
    retryBudget: {reserve: 4}
  idle:
    circuitBreaker: {disabled: true}
gatewayRetries: true
`, s.url))
	for range 2 { // the second on the connection of the first, which comes back after its answer
		r.get("/")
		eventually(t, "nothing pending", func() bool { e := r.guard().Endpoints[0]; return e.Pending == 0 && e.Idle > 0 })
	}
	got := r.shape()
	if p := got.Policy; p.Path != r.file || p.Loaded.IsZero() || len(p.Hash) != 64 || p.Error != "" || !p.GatewayRetries ||
		got.Draining {
		t.Errorf("policy: %+v, draining %v", p, got.Draining)
	}
	if len(got.Services) != 2 {
		t.Fatalf("services: %+v", got.Services)
	}
	down, idle := got.Services[0], got.Services[1]
	b := down.Breaker
	if wait, err := time.ParseDuration(b.ProbesIn); down.Service != "down" || b.State != "open" || b.Openings != 1 ||
		err != nil || wait < 30*time.Minute {
		t.Errorf("circuitBreaker: %+v", b)
	}
	if down.Budget < 4 || down.Budget > 4.3 || down.Bulkhead.Limit != 7 ||
		down.Bulkhead.Running+down.Bulkhead.Queued != 0 {
		t.Errorf("budget %v, bulkhead %+v", down.Budget, down.Bulkhead)
	}
	if !slices.Contains(down.Learned, "0 of 7 permits are taken, and 0 calls wait for one.") {
		t.Errorf("learned: %q", down.Learned)
	}
	if m := r.adminGet("/metrics"); !strings.Contains(m, `circuit_breaker_state{service="down"} 2`) {
		t.Errorf("metrics: %s", grep(m, "circuit"))
	}
	if len(down.Endpoints) != 1 {
		t.Fatalf("endpoints: %+v", down.Endpoints)
	}
	if e := down.Endpoints[0]; e.URL != s.url || e.Pending != 0 || e.Idle != 1 || e.Failures != 2 || e.Ejected {
		t.Errorf("endpoint: %+v", e)
	}
	if idle.Service != "idle" || idle.Breaker.State != "off" || idle.Endpoints == nil || len(idle.Endpoints) != 0 {
		t.Errorf("a service without upstreams: %+v", idle)
	}
}

// TestThePolicyPageIsAPolicyFile: what it shows can be put in force, and means the same.
func TestThePolicyPageIsAPolicyFile(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}, "hedge: {delay: 1s}",
		"fallback: {status: 200, body: 'a: \"b\"'}")+"gatewayRetries: true\n")
	page := r.adminGet("/policy")
	file, err := policyfile.Parse("policy.yaml", []byte(page))
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	if again := string(file.Format()); again != page {
		t.Errorf("it changes when it is read:\n%s\nbecomes\n%s", page, again)
	}
	if s := file.Services[0]; s.Name != "s" || s.Policy.Hedge.Delay != time.Second || s.Policy.Fallback.Body != `a: "b"` ||
		!file.GatewayRetries {
		t.Errorf("it says something else: %+v", s)
	}
	if !strings.Contains(page, "waitDurationInOpenState") {
		t.Errorf("the defaults are not written out:\n%s", page)
	}
}

// TestTheMetricsAreThoseOfPrometheus: its own parser reads them, and what the labels can be does not depend on
// requests.
func TestTheMetricsAreThoseOfPrometheus(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/busy") {
			w.WriteHeader(503)
		}
	}
	up := http1.serve(t, h)
	r := start(t, fmt.Sprintf(`services:
  s:
    upstreams: [%q]
    routes: [{host: a.test, path: /x}, {path: /busy}]
    initialDelay: 1ms
    maxRetries: 1
  t:
    upstreams: [%q]
`, up, strings.Replace(up, "127.0.0.1", "localhost", 1)))
	c := r.dial()
	ask := func(host, target string) {
		c.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n").answer()
	}
	for i := range 50 {
		ask("a.test", fmt.Sprintf("/x/%d?q=%d", i, i))
		ask(strings.Replace(up[len("http://"):], "127.0.0.1", "localhost", 1), fmt.Sprintf("/y/%d", i))
		ask(fmt.Sprintf("host-%d.test", i), "/nowhere")
	}
	ask("b.test", "/busy")
	eventually(t, "all are counted", func() bool {
		m := r.adminGet("/metrics")
		return strings.Contains(m, `http_client_concurrent_requests{service="s"} 0`) && strings.Contains(m, `status="503"} 1`)
	})

	text := r.adminGet("/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	requests := map[string]float64{}
	for _, m := range families["http_client_requests_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		requests[labels["service"]+" "+labels["endpoint"]+" "+labels["status"]] = m.GetCounter().GetValue()
	}
	addr := strings.Replace(up[len("http://"):], "127.0.0.1", "localhost", 1)
	if want := map[string]float64{
		"s a.test/x 200": 50, "s /busy 503": 1, "t " + addr + " 200": 50,
	}; !maps.Equal(requests, want) {
		t.Errorf("http_client_requests_total is %v, want %v", requests, want)
	}
	for _, want := range []string{
		`http_client_retry_attempts_total{attempt="2",endpoint="/busy",service="s"} 1`,
		`http_client_concurrent_requests{service="s"} 0`,
		`circuit_breaker_state{service="t"} 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("there is no %s in\n%s", want, grep(text, want[:20]))
		}
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "abate_") && !strings.HasPrefix(f.GetName(), "http_client_") &&
			f.GetName() != "circuit_breaker_state" &&
			!strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "process_") || f.GetHelp() == "" {
			t.Errorf("%s: %q", f.GetName(), f.GetHelp())
		}
	}
	services := map[string]bool{}
	for _, m := range families["circuit_breaker_state"].GetMetric() {
		services[m.GetLabel()[0].GetValue()] = true
	}
	if got := slices.Sorted(maps.Keys(services)); !slices.Equal(got, []string{"s", "t"}) {
		t.Errorf("breakers of %v", got)
	}
}

// TestEveryServiceIsShownBeforeItsFirstRequest: whoever looks for one in the metrics finds it.
func TestEveryServiceIsShownBeforeItsFirstRequest(t *testing.T) {
	r := start(t, "services:\n  a: {upstreams: [\"http://127.0.0.1:9\"]}\n  b: {upstreams: [\"http://127.0.0.1:8\"]}\n")
	m := r.adminGet("/metrics")
	for _, want := range []string{`circuit_breaker_state{service="a"} 0`, `circuit_breaker_state{service="b"} 0`} {
		if !strings.Contains(m, want) {
			t.Errorf("there is no %s: %s", want, grep(m, "circuit"))
		}
	}
}

func TestRequestsUnderWayAreShown(t *testing.T) {
	came, goOn := make(chan struct{}), make(chan struct{})
	r := start(t, single([]string{http1.serve(t, func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		hold(t, goOn)
	})}))
	shows := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprint(n, " under way"), func() bool {
			return strings.Contains(r.adminGet("/metrics"), fmt.Sprintf(`http_client_concurrent_requests{service="s"} %d`, n)) &&
				r.guard().Endpoints[0].Pending == n
		})
	}
	a := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	b := begin(t, h2c.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
	wait(t, "one", came)
	wait(t, "another", came)
	shows(2)
	goOn <- struct{}{}
	goOn <- struct{}{}
	a.answer()
	b.head()
	shows(0)
}
