package abateprom_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// plainNames are those that metrics had before all of them had a prefix.
var plainNames = []string{
	"circuit_breaker_state", "grpc_client_retry_attempts_total", "grpc_client_retry_budget_exhausted_total",
	"http_client_concurrent_requests", "http_client_request_duration_seconds", "http_client_requests_total",
	"http_client_retry_attempts_total", "rate_limit_allowed_total", "rate_limit_rejected_total", "shed_total",
}

// Alerts and dashboards that are older go on, until somebody says that there are none.
func TestTheOlderNamesShowTheSameUntilTheyAreSwitchedOff(t *testing.T) {
	w := newWorld(t)
	w.act(t)
	older := func(p page) (n int) {
		for series := range p {
			for _, name := range plainNames {
				if strings.HasPrefix(series, name) {
					n++
				}
			}
		}
		return n
	}
	all := w.scrape(t)
	for _, name := range plainNames {
		found := 0
		for series, v := range all {
			if strings.HasPrefix(series, name) {
				found++
				if v != all["abate_"+series] {
					t.Errorf("%s is %v, and with its prefix %v", series, v, all["abate_"+series])
				}
			}
		}
		if found == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	w.ShowPlainNames(false)
	if fewer := w.scrape(t); older(fewer) != 0 || len(fewer) != len(all)-older(all) {
		t.Errorf("%d series, %d of them older ones; before %d, %d", len(fewer), older(fewer), len(all), older(all))
	}
	if w.ShowPlainNames(true); len(w.scrape(t)) != len(all) {
		t.Error("they do not come back")
	}
}

// An exemplar takes one from a bucket to a trace. One for each is enough, and no id is too long for it.
func TestARequestWhoseTraceIsRecordedLeavesAnExemplar(t *testing.T) {
	m := metrics(t)
	for _, trace := range []string{"0af7651916cd43dd8448eb211c80319c", strings.Repeat("long", 100), "\xff"} {
		e := m.Endpoint("s", "/"+trace[:1])
		e.Began()
		e.EndedIn(200, 3*time.Millisecond, trace, "b7ad6b7169203331")
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(answer, req)
		id := strings.ToValidUTF8(trace[:min(len(trace), 48)], "\uFFFD")
		if n := strings.Count(answer.Body.String(), `trace_id="`+id+`"`); n != 1 {
			t.Errorf("%d exemplars with %q:\n%s", n, id, answer.Body)
		}
	}
	m.scrape(t).want(t, map[string]float64{`abate_http_client_requests_total{endpoint="/0",service="s",status="200"}`: 1,
		`abate_http_client_concurrent_requests{service="s"}`: 0})
}
