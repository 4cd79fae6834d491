package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// adminDo sends a request to the admin handler, as the page would, with a token if there is one.
func (r *running) adminDo(method, path, token, body string) (status int, answer string) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Abate-Admin", "1")
	}
	w := httptest.NewRecorder()
	r.admin.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func (r *running) snapshot(token string) (s abateadmin.Snapshot) {
	r.t.Helper()
	status, body := r.adminDo("GET", "/state", token, "")
	if err := json.Unmarshal([]byte(body), &s); err != nil || status != 200 {
		r.t.Fatalf("%d %v: %s", status, err, body)
	}
	return s
}

// pageToken is the token of a proxy started with withTokens; its owner is called anna.
const pageToken = "a-long-enough-token-of-anna-0123456789"

func withTokens(t *testing.T) func(*proxy.Config) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("anna "+pageToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *proxy.Config) { c.AdminTokens = file }
}

// linesOf collects what is logged.
type linesOf struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write keeps a line.
func (l *linesOf) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *linesOf) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestABrowserGetsThePageAndCurlTheList(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}), withTokens(t))
	for _, c := range []struct {
		accept, token string
		status        int
		kind, holds   string
	}{
		{"text/html,application/xhtml+xml,*/*;q=0.8", "", 200, "text/html; charset=utf-8", "page.js"},
		{"*/*", "", 401, "text/plain; charset=utf-8", "--admin-token-file"},
		{"*/*", pageToken, 200, "text/plain; charset=utf-8", "/guards"},
		{"", pageToken, 200, "text/plain; charset=utf-8", "abate top"},
	} {
		req := httptest.NewRequest("GET", "/", nil)
		req.Header.Set("Accept", c.accept)
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		r.admin.ServeHTTP(w, req)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.kind || !strings.Contains(w.Body.String(), c.holds) ||
			w.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept %q: %d %v %.80s", c.accept, w.Code, w.Header(), w.Body)
		}
	}
	for path, want := range map[string]int{
		"/page.css": 200, "/page.js": 200, "/state": 401, "/events": 401, "/guard?name=s": 401, "/gate?name=s": 401,
	} {
		if status, _ := r.adminDo("GET", path, "", ""); status != want {
			t.Errorf("%s without a token: %d", path, status)
		}
	}
}

// TestACircuitForcedOpenOnThePageRefusesRequests from the first to the last: forced open, seen, kept over a reload,
// taken back.
func TestACircuitForcedOpenOnThePageRefusesRequests(t *testing.T) {
	var log linesOf
	up := inTurn(t, ok("fine"))
	r := start(t, single([]string{up.url}), withTokens(t), func(c *proxy.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	if got := r.get("/"); got.status != 200 {
		t.Fatalf("before: %+v", got)
	}
	const force = `{"guard": "s", "override": "forcedOpen"}`
	if status, _ := r.adminDo("POST", "/override", "", force); status != 401 || r.get("/").status != 200 {
		t.Errorf("without a token: %d", status)
	}
	if status, _ := r.adminDo("GET", "/override", pageToken, ""); status != 405 {
		t.Errorf("GET: %d", status)
	}
	if status, body := r.adminDo("POST", "/override", pageToken, force); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if got := r.get("/"); got.status != 503 {
		t.Errorf("forced open: %d", got.status)
	}
	r.write(single([]string{up.url}, "maxRetries: 1"))
	if status, body := r.adminDo("POST", "/reload", pageToken, "{}"); status != 200 {
		t.Errorf("reload: %d %s", status, body)
	}
	if got := r.get("/"); got.status != 503 {
		t.Errorf("after a reload: %d", got.status)
	}
	s := r.snapshot(pageToken)
	if !s.May || len(s.Rows) != 1 || s.Rows[0].Override != "forcedOpen" || s.Rows[0].By != "anna" || len(s.Acts) != 2 ||
		s.Path != r.file {
		t.Errorf("%+v", s)
	}
	if text := log.text(); !strings.Contains(text, `done="s: circuit forced open" by=anna`) {
		t.Errorf("log: %s", text)
	}
	if status, _ := r.adminDo("POST", "/override", pageToken, `{"guard": "s", "override": ""}`); status != 200 ||
		r.get("/").status != 200 {
		t.Errorf("taken back: %d", status)
	}
}

func TestAPolicyThatIsWrongIsShownWithItsPlace(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}), withTokens(t))
	r.write(single([]string{"http://127.0.0.1:9"}, "maxRetrys: 1"))
	status, body := r.adminDo("POST", "/reload", pageToken, "{}")
	if status != 422 || !strings.Contains(body, "policy.yaml:5:5") || !strings.Contains(body, "maxRetrys") {
		t.Errorf("%d %s", status, body)
	}
	if s := r.snapshot(pageToken); !strings.Contains(s.Problem, "policy.yaml:5:5") || s.Acts[0].Problem == "" {
		t.Errorf("%+v", s)
	}
}

func TestWithoutTokensThePageOnlyShows(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}))
	for _, c := range []struct {
		path, body string
	}{{"/override", `{"guard": "s", "override": "forcedOpen"}`}, {"/reload", "{}"}} {
		if status, body := r.adminDo("POST", c.path, "", c.body); status != 403 ||
			!strings.Contains(body, "--admin-token-file") {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	if s := r.snapshot(""); s.May || !strings.Contains(s.How, "--admin-token-file") || s.Rows[0].Override != "" {
		t.Errorf("%+v", s)
	}
}

// TestAClientCertificateIsEnoughForThePage: it stands for a token, and a browser sends it along with what other web
// sites ask for.
func TestAClientCertificateIsEnoughForThePage(t *testing.T) {
	var log linesOf
	f := newFiles(t, trusted.issue(t), trusted)
	up := inTurn(t, ok("fine"))
	r := start(t, single([]string{up.url}), func(c *proxy.Config) {
		c.AdminTLS, c.Log = policyfile.TLS{Certificate: f.cert, Key: f.key, ClientCA: f.ca},
			slog.New(slog.NewTextHandler(&log, nil))
	})
	server := httptest.NewUnstartedServer(r.admin)
	server.Listener.Close()
	server.Listener = tls.NewListener(listen(t), r.proxy.AdminTLS())
	server.Start()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	const force = `{"guard": "s", "override": "forcedOpen"}`
	do := func(method, path, body string, header http.Header, certificates ...tls.Certificate) (int, string) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), method, strings.Replace(server.URL, "http:", "https:", 1)+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "X-Abate-Admin": {"1"}}
		maps.Copy(req.Header, header)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	mine, theirs := client509(t, trusted), client509(t, stranger)
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		certificates       []tls.Certificate
		status             int
		says               string
	}{
		{"the page without a certificate", "GET", "/", http.Header{"Accept": {"text/html"}}, nil, 200, "page.js"},
		{"data without one", "GET", "/state", nil, nil, 403, "client certificate of --admin-client-ca"},
		{"a stream without one", "GET", "/events", nil, nil, 403, "--admin-client-ca"},
		{"without one", "POST", "/override", nil, nil, 403, "--admin-client-ca"},
		{"without one, to reload", "POST", "/reload", nil, nil, 403, "--admin-client-ca"},
		{"with a token instead", "POST", "/override", http.Header{"Authorization": {"Bearer " + pageToken}}, nil, 403,
			"--admin-client-ca"},
		{"a stranger's", "POST", "/override", nil, []tls.Certificate{theirs}, 0, ""},
		{"from another site", "POST", "/override", http.Header{"Sec-Fetch-Site": {"cross-site"}}, []tls.Certificate{mine},
			403, "another web site"},
		{"from another origin", "POST", "/override", http.Header{"Origin": {"https://evil.test"}}, []tls.Certificate{mine},
			403, "another web site"},
		{"from a form", "POST", "/override", http.Header{"Content-Type": {"text/plain"}}, []tls.Certificate{mine},
			415, "application/json"},
		{"from no page of ours", "POST", "/override", http.Header{"X-Abate-Admin": nil}, []tls.Certificate{mine}, 403,
			"X-Abate-Admin"},
		{"data for another site", "GET", "/state", http.Header{"Sec-Fetch-Site": {"cross-site"}}, []tls.Certificate{mine},
			403, "another web site"},
		{"GET", "GET", "/override", nil, []tls.Certificate{mine}, 405, ""},
	} {
		if status, body := do(c.method, c.path, force, c.header, c.certificates...); status != c.status ||
			!strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
	if r.get("/").status != 200 || strings.Contains(log.text(), "admin page\" done") {
		t.Errorf("something was changed: %s", log.text())
	}
	if status, body := do("POST", "/override", force, http.Header{"Sec-Fetch-Site": {"same-origin"}}, mine); status !=
		200 || r.get("/").status != 503 {
		t.Errorf("with a certificate: %d %s", status, body)
	}
	_, body := do("GET", "/state", "", nil, mine)
	var s abateadmin.Snapshot
	if err := json.Unmarshal([]byte(body), &s); err != nil || !s.May || s.Asks || len(s.Rows) != 1 || s.Rows[0].By == "" ||
		!strings.Contains(log.text(), "circuit forced open") {
		t.Errorf("%v %s", err, body)
	}
}

// TestOnLoopbackNoOtherNameIsAnswered: a web site that has its own name point here reads nothing.
func TestOnLoopbackNoOtherNameIsAnswered(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}))
	for _, path := range []string{
		"/", "/state", "/events", "/guard?name=s", "/guards", "/gates", "/policy", "/metrics", "/healthz", "/readyz",
	} {
		for host, want := range map[string]int{"evil.test:15000": 421, "127.0.0.1:15000": 200, "localhost:15000": 200} {
			if path == "/events" && want == 200 || strings.HasSuffix(path, "z") && want == 421 {
				continue // it does not end by itself, or shows nothing
			}
			req := httptest.NewRequest("GET", path, nil)
			req.Host = host
			req = req.WithContext(
				context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 15000}))
			w := httptest.NewRecorder()
			r.admin.ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("%s of %s: %d, want %d %.80s", path, host, w.Code, want, w.Body)
			}
		}
	}
}

// TestAnOverrideOutlivesAServiceThatIsAwayForAWhile: the policy file loses the service by mistake, and has it again.
func TestAnOverrideOutlivesAServiceThatIsAwayForAWhile(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	up := inTurn(t, ok("fine"))
	with, without := single([]string{up.url}), "services: {other: {upstreams: [\"http://127.0.0.1:9\"]}}\n"
	r := start(t, with, withTokens(t))
	if status, body := r.adminDo("POST", "/override", pageToken, `{"guard": "s", "override": "forcedOpen"}`); status !=
		200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, policy := range []string{without, with} {
		r.write(policy)
		if status, body := r.adminDo("POST", "/reload", pageToken, "{}"); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		eventually(t, "only those in the file are shown", func() bool {
			s := r.snapshot(pageToken)
			return len(s.Rows) == 1 && (s.Rows[0].Name == "s") == (policy == with)
		})
	}
	if row := r.snapshot(pageToken).Rows[0]; row.Override != "forcedOpen" || row.By != "anna" || row.Guards != 1 ||
		r.get("/").status != 503 {
		t.Errorf("%+v", row)
	}
}

// TestThePageCountsWhatTheProxyDoes, for calls and for what arrives, and forgets what the policy file no longer has.
func TestThePageCountsWhatTheProxyDoes(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	up := inTurn(t, status(500), status(500), ok(""))
	r := start(
		t, single([]string{up.url}, "initialDelay: 1ms", "maxRetries: 5")+"  gone: {upstreams: [\"http://127.0.0.1:8\"]}\n")
	if got := r.get("/"); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	eventually(t, "the second is over", func() bool {
		for _, row := range r.snapshot("").Rows {
			if row.Name == "s" && row.Attempts == 0.3 && row.Good == 0.1 && row.Amplification == 3 {
				return true
			}
		}
		return false
	})
	_, body := r.adminDo("GET", "/guard?name=s", "", "")
	if !strings.Contains(body, `"name":"failure","minute":2`) || !strings.Contains(body, "maxRetries: 5") {
		t.Errorf("%s", body)
	}
	r.write(single([]string{up.url}))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service is no longer shown", func() bool { return len(r.snapshot("").Rows) == 1 })
}

// TestShutdownEndsStreams: a server that shuts down waits for those who read.
func TestShutdownEndsStreams(t *testing.T) {
	r := start(t, single([]string{"http://127.0.0.1:9"}))
	s := httptest.NewServer(r.admin)
	defer s.Close()
	req, _ := http.NewRequestWithContext(context.Background(), "GET", s.URL+"/events", nil)
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r.shutdown()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the stream: %v", err)
	}
}

// Reloads may come from a signal, from the page and from the clock at the same time: the page's tokens are read by one
// of them after the other. The race detector sees it.
func TestReloadsAtOnceReadTheTokensOneAfterTheOther(t *testing.T) {
	var file string
	take := func(c *proxy.Config) { withTokens(t)(c); file = c.AdminTokens }
	r := start(t, single([]string{"http://127.0.0.1:1"}), take)
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := range 20 {
				text := fmt.Sprintf("anna %s\nb%d token-that-is-long-enough-%d-%020d\n", pageToken, k, k, i)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
				if err := r.proxy.Reload(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
