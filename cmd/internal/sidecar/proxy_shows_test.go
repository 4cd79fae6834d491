package sidecar

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/policyfile"
)

// built is the path of the slim binary, built as a user builds it.
func built(t *testing.T) string {
	t.Helper()
	needs.Whole(t)
	return clitest.Built(t, "abate-proxy")
}

// process is an "abate proxy" in a process of its own.
type process struct {
	t             *testing.T
	cmd           *exec.Cmd
	listen, admin string // URLs
	greeting      []string
	log           clitest.Buffer
	client        *http.Client // goes through no proxy
	done          chan struct{}
}

var greeted = regexp.MustCompile(`^listening on (\S+),(?: redirected \w+ on \S+,)? admin on ((?:https?://|unix:)\S+)$`)

// launch starts the command on free ports and waits until it listens. It is killed when the test ends.
func launch(t *testing.T, policy string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, client: &http.Client{Transport: &http.Transport{}}, done: make(chan struct{})}
	p.cmd = exec.Command(built(t),
		append([]string{"proxy", "-c", policy, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, flags...)...)
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); p.admin == "" && lines.Scan(); {
		p.greeting = append(p.greeting, lines.Text())
		if m := greeted.FindStringSubmatch(lines.Text()); m != nil {
			p.listen, p.admin = "http://"+m[1], m[2]
		}
	}
	go func() {
		defer close(p.done)
		_, _ = io.Copy(io.Discard, out) // until it has ended
		_ = p.cmd.Wait()                // told by its exit code
	}()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		if t.Failed() {
			lines := strings.SplitAfter(p.log.String(), "\n")
			t.Logf("the end of what the proxy logged:\n%s", strings.Join(lines[max(len(lines)-30, 0):], ""))
		}
	})
	if p.admin == "" {
		t.Fatal("it did not start")
	}
	return p
}

// send sends the process a signal.
func (p *process) send(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exitCode waits for the end of the process.
func (p *process) exitCode() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(20 * time.Second): // less than --drain-timeout is without the flag
		p.t.Fatal("the proxy has not ended")
	}
	return p.cmd.ProcessState.ExitCode()
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request and reads its answer.
func ask(t *testing.T, client *http.Client, method, url, body string, fields ...string) answer {
	t.Helper()
	a, err := try(client, method, url, body, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(client *http.Client, method, url, body string, fields ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// get sends a request by a route.
func (p *process) get(path string) answer {
	p.t.Helper()
	return ask(p.t, p.client, "GET", p.listen+path, "")
}

// page is a page of the admin listener.
func (p *process) page(path string) string {
	p.t.Helper()
	a := ask(p.t, p.client, "GET", p.admin+path, "")
	if a.status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return a.body
}

// guards is /guards, as far as the tests read it.
type guards struct {
	Policy   struct{ Error, Hash string }
	Draining bool
	Services []struct {
		Service        string
		CircuitBreaker struct{ State string }
	}
}

func (p *process) guards() guards {
	p.t.Helper()
	var g guards
	if err := json.Unmarshal([]byte(p.page("/guards")), &g); err != nil {
		p.t.Fatal(err)
	}
	return g
}

// breaker is the state of payment-service's circuit breaker in /guards, and its number in /metrics.
func (p *process) breaker() (state, scraped string) {
	p.t.Helper()
	for _, s := range p.guards().Services {
		if s.Service == "payment-service" {
			state = s.CircuitBreaker.State
		}
	}
	m := regexp.MustCompile(`(?m)^circuit_breaker_state\{service="payment-service"\} (\S+)$`).FindStringSubmatch(
		p.page("/metrics"))
	if state == "" || m == nil {
		p.t.Fatal("payment-service is not in /guards, or not in /metrics")
	}
	return state, m[1]
}

// policy is the policy of a service in /policy.
func (p *process) policy(service string) (found policyfile.Service) {
	p.t.Helper()
	f, err := policyfile.Parse("/policy", []byte(p.page("/policy")))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range f.Services {
		if s.Name == service {
			return s
		}
	}
	return found
}

// upstream is a server that can be killed and started again on its port.
type upstream struct {
	t      *testing.T
	addr   string
	handle http.HandlerFunc
	server *http.Server
}

// serve starts a server on a free port of loopback. It ends with the test.
func serve(t *testing.T, handle http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{t: t, addr: clitest.FreeAddress(t), handle: handle}
	u.start()
	t.Cleanup(u.kill)
	return u
}

func (u *upstream) start() {
	u.t.Helper()
	var l net.Listener
	clitest.Eventually(u.t, "the server's port is free", func() bool {
		var err error
		l, err = net.Listen("tcp", u.addr)
		return err == nil
	})
	server := &http.Server{Handler: u.handle}
	u.server = server
	go func() { _ = server.Serve(l) }() // ends with ErrServerClosed
}

func (u *upstream) kill() { _ = u.server.Close() }

// rename puts a file over another, as editors and mounts do.
func rename(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
}

// edited is a text with some replacements.
func edited(t *testing.T, text string, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the policy has no %q", oldnew[i])
		}
	}
	return strings.NewReplacer(oldnew...).Replace(text)
}

// stage is the proxy in front of a shop, under the policy of the examples with shorter times.
type stage struct {
	*process
	payments, notify *upstream
	stock            [2]*upstream
	file             string
	text             string // of the policy
}

func newStage(t *testing.T) *stage {
	s := &stage{
		payments: serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/payments/missing" {
				http.NotFound(w, r)
				return
			}
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %d bytes", r.Method, r.URL.Path, len(body))
		}),
	}
	for i := range s.stock {
		s.stock[i] = serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "3 in stock") })
	}
	var notified int
	s.notify = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if notified++; notified == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	text, err := os.ReadFile("../../../examples/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.text = edited(t, string(text), "127.0.0.1:8081", s.payments.addr, "127.0.0.1:8082", s.stock[0].addr,
		"127.0.0.1:8083", s.stock[1].addr, "127.0.0.1:8084", s.notify.addr,
		// whatever a busy machine takes
		"  timeout: 3s", "  timeout: 1m", "attemptTimeout: 1s", "attemptTimeout: 30s", "slowCallDurationThreshold: 750ms",
		"slowCallDurationThreshold: 30s",
		"waitDurationInOpenState: 1s", "waitDurationInOpenState: 200ms", "maxWaitDurationInOpenState: 5s",
		"maxWaitDurationInOpenState: 400ms", "rampUp: 2s", "rampUp: 500ms",
		"{kind: tokens, maxTokens: 5,", "{kind: tokens, clients: 1, maxTokens: 5,") // one instance, not fifty
	s.file = clitest.Put(t, "policy.yaml", s.text)
	s.process = launch(t, s.file)
	return s
}

// through is a client that has the proxy as its HTTP proxy.
func (p *process) through() *http.Client {
	p.t.Helper()
	to, err := url.Parse(p.listen)
	if err != nil {
		p.t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(to)}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestProxyShows(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	s := newStage(t)
	t.Run("requests of all kinds", s.requests)
	t.Run("curl as the README says", s.curl)
	t.Run("an outage and the way back", s.outage)
	t.Run("metrics that promtool accepts", s.metrics)
	t.Run("an edit, a broken one, and SIGHUP", s.reload)
	s.send(syscall.SIGTERM)
	if code := s.exitCode(); code != 0 || !strings.Contains(s.log.String(), "msg=drained") {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

func (s *stage) requests(t *testing.T) {
	s.process.t = t
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	defer h2c.CloseIdleConnections()
	own := "http://" + s.payments.addr
	for _, c := range []struct {
		client             *http.Client
		method, url, body  string
		status             int
		want, header, says string
	}{
		{s.client, "GET", s.listen + "/payments/42", "", 200, "GET /payments/42 0 bytes", "", ""},
		{s.client, "POST", s.listen + "/payments", "four", 200, "POST /payments 4 bytes", "", ""},
		{s.client, "POST", s.listen + "/payments", strings.Repeat("x", 300_000), 200, "POST /payments 300000 bytes", "", ""},
		{s.client, "HEAD", s.listen + "/payments/42", "", 200, "", "", ""},
		{s.client, "GET", s.listen + "/payments/missing", "", 404, "404 page not found\n", "", ""},
		{s.through(), "GET", own + "/by/its/own/address", "", 200, "GET /by/its/own/address 0 bytes", "", ""},
		{&http.Client{Transport: h2c}, "PUT", s.listen + "/payments/h2", "h2", 200, "PUT /payments/h2 2 bytes", "", ""},
		{s.client, "GET", s.listen + "/notify", "", 200, "", "", ""}, // a 503, then a 200
		{s.client, "GET", s.listen + "/stock/7", "", 200, "3 in stock", "", ""},
		{s.client, "GET", s.listen + "/nobody", "", 404, "", "Abate-Reason", "no-route"},
		{s.through(), "GET", "http://nobody.example/", "", 404, "", "Abate-Reason", "no-route"},
	} {
		a := ask(t, c.client, c.method, c.url, c.body)
		if a.status != c.status || c.want != "" && a.body != c.want || c.header != "" && a.header.Get(c.header) != c.says {
			t.Errorf("%s %s: %d %v %q", c.method, c.url, a.status, a.header, a.body)
		}
	}
	s.stock[0].kill()
	s.stock[1].kill()
	if a := s.get("/stock/7"); a.status != 200 || a.body != "3 in stock" || a.header.Get("Abate-Fallback") != "stale" {
		t.Errorf("the last good answer: %d %v %q", a.status, a.header, a.body)
	}
	if a := s.get("/stock/8"); a.status != 200 || a.body != `{"available": null, "degraded": true}` ||
		a.header.Get("Abate-Fallback") != "true" {
		t.Errorf("the fallback: %d %v %q", a.status, a.header, a.body)
	}
	nc, err := net.Dial("tcp", strings.TrimPrefix(s.listen, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "POST /payments HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || resp.StatusCode != 400 {
		t.Errorf("a request of two lengths: %v, %v", resp, err)
	}
}

func (s *stage) curl(t *testing.T) {
	s.process.t = t
	curl := needs.Program(t, "curl")
	for _, args := range [][]string{
		{s.listen + "/payments/"}, {"-x", s.listen, "http://" + s.payments.addr + "/payments/"},
		{"--proxytunnel", "-x", s.listen, "http://" + s.payments.addr + "/payments/"},
	} {
		cmd := exec.CommandContext(t.Context(), curl, append([]string{"-sS", "--noproxy", ""}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "GET /payments/ 0 bytes" {
			t.Errorf("curl %q: %v, %s", args, err, out)
		}
	}
}

// watchBreaker asks for payments and looks at the breaker after each answer, until it has the state. It returns the
// answers and the states that it saw, each change once.
func (s *stage) watchBreaker(t *testing.T, state string, seen, scraped []string) (
	answers []answer, states, numbers []string) {
	clitest.Eventually(t, "the breaker is "+state, func() bool {
		answers = append(answers, s.get("/payments/42"))
		now, number := s.breaker()
		seen, scraped = slices.Compact(append(seen, now)), slices.Compact(append(scraped, number))
		return now == state
	})
	return answers, seen, scraped
}

func (s *stage) outage(t *testing.T) {
	s.process.t = t
	_, states, numbers := s.watchBreaker(t, "closed", nil, nil)
	s.payments.kill()
	answers, states, numbers := s.watchBreaker(t, "open", states, numbers)
	for _, a := range append(answers, s.get("/payments/42")) {
		s.refused(t, a)
	}
	if last := s.get("/payments/42"); last.header.Get("Abate-Reason") != "circuit-open" &&
		last.header.Get("Abate-Reason") != "budget-exhausted" {
		t.Errorf("an open breaker and %v", last.header)
	}
	s.payments.start()
	answers, states, numbers = s.watchBreaker(t, "ramp-up", states, numbers)
	if a := answers[len(answers)-1]; a.status != 200 {
		t.Errorf("the traffic ramps up after %d %q", a.status, a.body)
	}
	answers, states, numbers = s.watchBreaker(t, "closed", states, numbers)
	for _, a := range answers {
		if a.status != 200 {
			s.refused(t, a)
		}
	}
	if want := []string{"closed", "open", "half-open", "ramp-up", "closed"}; !slices.Equal(states, want) {
		t.Errorf("/guards told %q, want %q", states, want)
	}
	if want := []string{"0", "2", "1", "0"}; !slices.Equal(numbers, want) {
		t.Errorf("circuit_breaker_state was %q, want %q", numbers, want)
	}
}

// refused checks that an answer is a no that says why, in its fields and in its body.
func (s *stage) refused(t *testing.T, a answer) {
	t.Helper()
	var said struct {
		Title, Detail, Service, Reason, Circuit string
		Status, RetryAfter                      int
	}
	if err := json.Unmarshal([]byte(a.body), &said); err != nil {
		t.Fatalf("%v: %d %q", err, a.status, a.body)
	}
	reasons := []string{"circuit-open", "budget-exhausted"}
	switch {
	case a.status != 503, said.Status != 503, a.header.Get("Content-Type") != "application/problem+json",
		a.header.Get("X-Should-Retry") != "false":
		t.Errorf("%d %v %q", a.status, a.header, a.body)
	case !slices.Contains(reasons, said.Reason), a.header.Get("Abate-Reason") != said.Reason,
		said.Service != "payment-service", said.Detail == "":
		t.Errorf("the reason: %v %q", a.header, a.body)
	case said.RetryAfter < 1, a.header.Get("Retry-After") != fmt.Sprint(said.RetryAfter):
		t.Errorf("when to come back: %v %q", a.header, a.body)
	case (said.Circuit != "") != (said.Reason == "circuit-open"):
		t.Errorf("the circuit: %q", a.body)
	}
}

func (s *stage) metrics(t *testing.T) {
	s.process.t = t
	promtool := needs.Program(t, "promtool", "prometheus")
	page := s.page("/metrics")
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(page)
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool: %v\n%s", err, said)
	}
	for _, line := range []string{
		`http_client_requests_total{endpoint="/payments",service="payment-service",status="200"} `,
		`http_client_requests_total{endpoint="/payments",service="payment-service",status="503"} `,
		`http_client_requests_total{endpoint="/payments",service="payment-service",status="404"} 1`,
		`http_client_retry_attempts_total{attempt="2",endpoint="/notify",service="notification-service"} 1`,
		`http_client_concurrent_requests{service="payment-service"} 0`,
		`abate_amplification_ratio{service="payment-service"} `, `abate_fallbacks_total{service="inventory-service"} 2`,
		`abate_circuit_breaker_transitions_total{service="payment-service",to="open"} `,
		`abate_retry_success_total{service="notification-service"} 1`,
		`abate_retry_budget_balance{service="payment-service"} `,
	} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	for line := range strings.Lines(page) {
		if strings.Contains(line, "/payments/42") {
			t.Errorf("a path is a label: %s", line)
		}
	}
}

// lineOf is how a mistake names the line of the policy file that has a text.
func lineOf(s *stage, text string) string {
	before, _, _ := strings.Cut(s.text, text)
	return fmt.Sprintf("%s:%d:", s.file, 1+strings.Count(before, "\n"))
}

func (s *stage) reload(t *testing.T) {
	s.process.t = t
	before := s.guards().Policy.Hash
	rename(t, s.file, edited(t, s.text, "maxRetries: 2", "maxRetries: 4", "- {path: /payments}", "- {path: /pay}"))
	clitest.Eventually(t, "the edit is in force", func() bool {
		return s.policy("payment-service").Policy.MaxRetries == 4
	})
	if a, b := s.get("/pay/42"), s.get("/payments/42"); a.status != 200 || b.status != 404 {
		t.Errorf("the new route %d, the old one %d; want 200 and 404", a.status, b.status)
	}
	good := s.guards().Policy
	if good.Error != "" || good.Hash == before {
		t.Errorf("/guards: %+v", good)
	}

	rename(t, s.file, edited(t, s.text, "maxRetries: 2", "maxRetrys: 2", "multiplier: 2.0", "multiplier: 0"))
	clitest.Eventually(t, "the mistakes of the edit are told", func() bool { return s.guards().Policy.Error != "" })
	now := s.guards().Policy
	for _, want := range []string{lineOf(s, "multiplier: 2.0"), lineOf(s, "maxRetries: 2"), "did you mean maxRetries?"} {
		if !strings.Contains(now.Error, want) || !strings.Contains(s.log.String(), want) {
			t.Errorf("/guards or the log does not tell %q: %q", want, now.Error)
		}
	}
	if now.Hash != good.Hash || s.policy("payment-service").Policy.MaxRetries != 4 || s.get("/pay/42").status != 200 {
		t.Errorf("the last good policy is no longer in force: %+v", now)
	}

	s.send(syscall.SIGHUP)
	clitest.Eventually(t, "SIGHUP tells the mistakes again", func() bool {
		return strings.Count(s.log.String(), "level=ERROR msg=\"policy file not loaded") == 2
	})
	rename(t, s.file, s.text)
	s.send(syscall.SIGHUP)
	clitest.Eventually(t, "SIGHUP loads the file", func() bool {
		return strings.Contains(s.log.String(), "policy file loaded on SIGHUP")
	})
	if p := s.guards().Policy; p.Error != "" || p.Hash != before || s.policy("payment-service").Policy.MaxRetries != 2 ||
		s.get("/payments/42").status != 200 {
		t.Errorf("after SIGHUP: %+v", p)
	}
}

// slow is a proxy with a request under way that ends when release is called.
func slow(t *testing.T, flags ...string) (p *process, release func(), answered chan answer) {
	t.Helper()
	arrived, gate := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/quick" {
			return
		}
		fmt.Fprint(w, "begun, ")
		_ = http.NewResponseController(w).Flush()
		close(arrived)
		<-gate
		fmt.Fprint(w, "ended")
	})
	t.Cleanup(release) // before the server is killed
	p = launch(
		t, clitest.Put(t, "policy.yaml",
			fmt.Sprintf("services: {s: {upstreams: [\"http://%s\"], routes: [{path: /}]}}\n", u.addr)), flags...)
	idle := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(idle.CloseIdleConnections)
	// its connection is kept: it must not hold up the end
	if a := ask(t, idle, "GET", p.listen+"/quick", ""); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	answered = make(chan answer, 1)
	go func() {
		a, err := try(p.client, "GET", p.listen+"/slow", "")
		if err != nil {
			a.body = err.Error()
		}
		answered <- a
	}()
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the request has not arrived")
	}
	return p, release, answered
}

// draining waits until /readyz says so, and checks what else there is to see.
func (p *process) draining() {
	p.t.Helper()
	clitest.Eventually(p.t, "/readyz says no", func() bool {
		return ask(p.t, p.client, "GET", p.admin+"/readyz", "").status == http.StatusServiceUnavailable
	})
	if p.page("/healthz") != "ok\n" || !p.guards().Draining {
		p.t.Error("a draining proxy is alive, and /guards says that it drains")
	}
	clitest.Eventually(p.t, "no new client is taken", func() bool {
		nc, err := net.Dial("tcp", strings.TrimPrefix(p.listen, "http://"))
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
}

func TestProxyEndsARequestUnderWayBeforeItEnds(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p, release, answered := slow(t)
		if ask(t, p.client, "GET", p.admin+"/readyz", "").status != 200 {
			t.Error("it is not ready")
		}
		p.send(s)
		p.draining()
		p.send(syscall.SIGHUP) // a reload that comes too late ends nothing
		release()
		if a := <-answered; a.status != 200 || a.body != "begun, ended" {
			t.Errorf("%v: the request under way got %d %q", s, a.status, a.body)
		}
		if code := p.exitCode(); code != 0 || !strings.Contains(p.log.String(), "msg=drained") {
			t.Errorf("%v: exit code %d", s, code)
		}
	}
}

func TestProxyCutsOffWhatTakesLongerThanTheDrainTimeout(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	p, _, answered := slow(t, "--drain-timeout", "200ms")
	p.send(syscall.SIGTERM)
	if code := p.exitCode(); code != 1 ||
		!strings.Contains(p.log.String(), "they took longer than --drain-timeout\" timeout=200ms") {
		t.Errorf("exit code %d", code)
	}
	if a := <-answered; a.body == "begun, ended" || a.body == "begun, " {
		t.Errorf("the client takes %q for an answer", a.body)
	}
}

func TestProxyEndsAtOnceOnASecondSignal(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	p, _, answered := slow(t)
	p.send(syscall.SIGTERM)
	p.draining()
	p.send(syscall.SIGTERM)
	if code := p.exitCode(); code != 1 || !strings.Contains(p.log.String(), "requests cut off on a second signal") {
		t.Errorf("exit code %d", code)
	}
	if a := <-answered; a.body == "begun, ended" || a.body == "begun, " {
		t.Errorf("the client takes %q for an answer", a.body)
	}
}

func TestProxyTakesSIGHUPAsSoonAsItListens(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	for range 5 {
		p := launch(t, clitest.Put(t, "policy.yaml", "services: {}\n"))
		p.send(syscall.SIGHUP)
		clitest.Eventually(t, "the file is loaded", func() bool {
			return strings.Contains(p.log.String(), "policy file loaded on SIGHUP")
		})
	}
}
