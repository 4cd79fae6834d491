package proxy_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/proxy"
)

// look asks the admin page for something.
func (r *running) look(path string, header ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	r.admin.ServeHTTP(answer, req)
	return answer
}

func TestTheMetricsHaveTheProcessTheProgramAndThePolicy(t *testing.T) {
	s := upstream(t, failFirst(0))
	r := start(t, single([]string{s.url}), func(c *proxy.Config) { c.Version = "v1.2.3" })
	page := r.adminGet("/metrics")
	for _, want := range []string{
		`abate_build_info\{goversion="go[^"]+",revision="[^"]+",version="v1.2.3"\} 1`,
		`abate_config_last_reload_successful 1`,
		`abate_config_last_reload_success_timestamp_seconds [1-9]\.\d+e\+09`, `abate_policy_info\{hash="[0-9a-f]{64}"\} 1`,
		`go_goroutines \d+`, `process_open_fds \d+`, `process_max_fds \S+`, `process_resident_memory_bytes \S+`,
		`abate_proxy_connections \d+`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(page) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(page, "abate_trace_") {
		t.Error("a proxy that records no traces has metrics of spans")
	}
	hash := regexp.MustCompile(`abate_policy_info\S+`)
	r.write("services: {s: {maxRetries: many}}")
	if err := r.proxy.Reload(); err == nil {
		t.Fatal("a file with mistakes was loaded")
	}
	bad := r.adminGet("/metrics")
	if !strings.Contains(bad, "\nabate_config_last_reload_successful 0\n") ||
		hash.FindString(bad) != hash.FindString(page) {
		t.Error("a reload that has failed does not show, or another policy is said to be in force")
	}
	r.write(single([]string{s.url}, "maxRetries: 7"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	good := r.adminGet("/metrics")
	if !strings.Contains(good, "\nabate_config_last_reload_successful 1\n") ||
		hash.FindString(good) == hash.FindString(page) {
		t.Error("a reload does not show")
	}
}

// All names begin with abate_, or are those that each program in Go has; the older ones can be switched off.
func TestAllMetricsHaveOnePrefixAndTheOlderNamesCanBeSwitchedOff(t *testing.T) {
	s := upstream(t, failFirst(0))
	for _, without := range []bool{false, true} {
		r := start(t, single([]string{s.url}), func(c *proxy.Config) { c.WithoutPlainNames = without })
		r.get("/a")
		var page string
		eventually(t, "the request is counted", func() bool { // when its client has the answer
			page = r.adminGet("/metrics")
			return strings.Contains(page, "\nabate_http_client_requests_total{")
		})
		older := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(page, -1) {
			if !regexp.MustCompile(`^(abate|go|process|promhttp)_`).MatchString(m[1]) {
				older[m[1]] = true
			}
		}
		if want := !without; older["http_client_requests_total"] != want || older["circuit_breaker_state"] != want ||
			older["http_client_request_duration_seconds"] != want || without && len(older) > 0 {
			t.Errorf("without older names %v: %v", without, older)
		}
	}
}

const openMetrics = "application/openmetrics-text; version=1.0.0"

// From a slow bucket one gets to a trace.
func TestBucketsOfLatencyNameATraceInOpenMetrics(t *testing.T) {
	c, s := new(collector), upstream(t, failFirst(0))
	r := start(t, single([]string{s.url}), c.record(allCalls))
	r.dial().send("GET /a HTTP/1.1\r\nHost: x.test\r\nTraceparent: " + above + "\r\n\r\n").answer()
	exemplar := regexp.MustCompile(`(?m)^abate_http_client_request_duration_seconds_bucket\{.*\} 1 # \{(trace_id="` +
		traceID + `",span_id="[0-9a-f]{16}"|span_id="[0-9a-f]{16}",trace_id="` + traceID + `")\} `)
	var answer *httptest.ResponseRecorder
	page := ""
	eventually(t, "an exemplar", func() bool { // the request is counted when its client has the answer
		answer = r.look("/metrics", "Accept", openMetrics)
		page = answer.Body.String()
		return len(exemplar.FindAllString(page, -1)) == 1
	})
	if !strings.HasPrefix(answer.Header().Get("Content-Type"), "application/openmetrics-text") ||
		!strings.HasSuffix(page, "# EOF\n") {
		t.Errorf("it is not OpenMetrics: %s\n%s", answer.Header(), page)
	}
	if plain := r.look("/metrics"); strings.Contains(plain.Body.String(), traceID) {
		t.Error("an exemplar in the format that has none")
	}
}

func TestPromtoolAcceptsAllOfTheMetricsPage(t *testing.T) {
	promtool := needs.Program(t, "promtool", "prometheus")
	c, s := new(collector), upstream(t, failFirst(1))
	r := start(t, single([]string{s.url}, quickRetry), c.record(allCalls))
	r.get("/a")
	run := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	var said bytes.Buffer
	run.Stdin, run.Stdout, run.Stderr = r.look("/metrics").Body, &said, &said
	if err := run.Run(); err != nil || said.Len() > 0 {
		t.Errorf("%v\n%s", err, said.String())
	}
}

// A profile has paths and names of the program, and costs time: it is for those with a token, also on loopback.
func TestProfilesAreForThoseWithAToken(t *testing.T) {
	open := start(t, "services: {s: {}}")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=0.01"} {
		if a := open.look(path); a.Code != http.StatusForbidden ||
			!strings.Contains(a.Body.String(), "--admin-token-file FILE") {
			t.Errorf("%s without any token: %d %s", path, a.Code, a.Body)
		}
	}
	file := t.TempDir() + "/tokens"
	if err := os.WriteFile(file, []byte("me 0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "services: {s: {}}", func(c *proxy.Config) { c.AdminTokens = file })
	token := []string{"Authorization", "Bearer 0123456789abcdef0123"}
	for path, want := range map[string]string{
		"/debug/pprof/": "heap", "/debug/pprof/heap": "\x1f\x8b", "/debug/pprof/goroutine?debug=1": "goroutine profile: ",
		"/debug/pprof/profile?seconds=0.01": "\x1f\x8b", "/debug/pprof/trace?seconds=0.01": "go 1.",
		"/debug/pprof/profile?seconds=999": `seconds="999" is out of range: write more than 0 and at most 300`,
		"/debug/pprof/what":                "there is no such profile: /debug/pprof/ lists them",
	} {
		if a := r.look(path); a.Code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, a.Code)
		}
		if a := r.look(path, token...); !strings.Contains(a.Body.String(), want) {
			t.Errorf("%s: %d %.100q", path, a.Code, a.Body)
		}
	}
}
