package sidecar

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/internal/needs"
)

// protected is "abate proxy -c examples/ingress.yaml" in front of a plain server, both on free ports.
type protected struct {
	*process
	url  string
	done atomic.Int64 // requests that the server has got
}

func protect(t *testing.T, handle http.HandlerFunc, oldnew ...string) *protected {
	t.Helper()
	p := new(protected)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		p.done.Add(1)
		handle(w, r)
	})
	example, err := os.ReadFile("../../../examples/ingress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(t.TempDir(), "ingress.yaml")
	rename(t, policy,
		edited(t, string(example), append([]string{
			"listen: 127.0.0.1:8080", "listen: 127.0.0.1:0", "http://127.0.0.1:9000", "http://" + server.addr,
		}, oldnew...)...))
	p.process = launch(t, policy, "--access-log", "all")
	for _, l := range p.greeting {
		if m := regexp.MustCompile(`^  orders +(http://\S+) -> http://` + server.addr + `$`).FindStringSubmatch(l); m != nil {
			p.url = m[1]
		}
	}
	if p.url == "" || !strings.HasPrefix(p.greeting[0], "abate proxy: 1 protected service from ") ||
		!strings.Contains(strings.Join(p.greeting, "\n"), "rate limit ") {
		t.Fatalf("it does not say what it protects where:\n%s", strings.Join(p.greeting, "\n"))
	}
	return p
}

// curl runs curl and returns what it printed.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(needs.Program(t, "curl"),
		append([]string{"-s", "--noproxy", "*", "--max-time", "30"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	return strings.ReplaceAll(string(out), "\r", "")
}

func TestTheExampleDoesARequestWithAKeyOnce(t *testing.T) {
	var orders atomic.Int64
	p := protect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d: %s", orders.Add(1), body)
	})
	order := func(key, item string) string {
		return curl(t, "-i", "-H", "Idempotency-Key: "+key, "-d", item, p.url+"/orders")
	}
	first, again := order(`"order-1"`, `{"item": 1}`), order(`"order-1"`, `{"item": 1}`)
	for _, a := range []string{first, again} {
		if !strings.HasPrefix(a, "HTTP/1.1 201 Created\n") || !strings.HasSuffix(a, "\n\norder 1: {\"item\": 1}") {
			t.Errorf("got %q", a)
		}
	}
	if strings.Contains(first, "Idempotency-Replayed") || !strings.Contains(again, "\nIdempotency-Replayed: true\n") ||
		p.done.Load() != 1 {
		t.Errorf("the server got %d requests, want 1:\n%s\n%s", p.done.Load(), first, again)
	}
	if a := order(`"order-1"`, `{"item": 2}`); !strings.HasPrefix(a, "HTTP/1.1 422 ") ||
		!strings.Contains(a, `"code":"idempotency-mismatch"`) {
		t.Errorf("another order under the same key: %q", a)
	}
	if m := p.page("/metrics"); !regexp.MustCompile(`(?m)^abate_idempotency_total\{.*result="replay".*\} 1$`).MatchString(
		m) {
		t.Error("the replay is not in /metrics")
	}
}

func TestTheExampleRefusesPastItsLimit(t *testing.T) {
	p := protect(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }, "limit: 100/s", "limit: 1/h")
	args := []string{"-w", `%{http_code}\n`}
	for range 30 {
		args = append(args, "-o", "/dev/null", p.url+"/orders")
	}
	statuses := curl(t, args...)
	if ok, refused := strings.Count(statuses, "200\n"), strings.Count(statuses, "429\n"); ok != 20 || refused != 10 {
		t.Errorf("%d answers with 200 and %d with 429, want 20 and 10", ok, refused)
	}
	a := curl(t, "-i", p.url+"/orders")
	for _, want := range []string{"HTTP/1.1 429 Too Many Requests\n", "\nRetry-After: ", "\nRateLimit: \"default\";r=0;t=",
		"\nRateLimit-Policy: \"default\";q=20;w=", "\nX-RateLimit-Remaining: 0\n",
		"\nAbate-Reason: rate-limited\n", `"code":"rate-limited"`, "\nContent-Type: application/problem+json\n"} {
		if !strings.Contains(a, want) {
			t.Errorf("lacks %q:\n%s", want, a)
		}
	}
	if p.done.Load() != 20 {
		t.Errorf("the server got %d requests, want 20", p.done.Load())
	}
	if a := curl(t, "-i", "-H", "X-Tenant: acme", p.url+"/orders"); !strings.HasPrefix(a, "HTTP/1.1 200 ") {
		t.Errorf("another caller: %q", a)
	}
	clitest.Eventually(t, "the log names gate, caller and code", func() bool {
		log := p.log.String()
		return strings.Contains(log, "gate=orders caller=127.0.0.1") && strings.Contains(log, "reason=rate-limited") &&
			strings.Contains(log, "caller=acme")
	})
}

// requestsOf reads a number out of what wrk prints.
func requestsOf(t *testing.T, out, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("wrk did not print %s:\n%s", pattern, out)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

func TestTheExampleShedsALoadThatIsFarTooMuch(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	wrk := needs.Program(t, "wrk")
	const places = 10
	// 20 requests a second are all that the server can do, far fewer than come in on a slow machine
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var inside, most atomic.Int64
	var ending atomic.Bool
	p := protect(t, func(w http.ResponseWriter, _ *http.Request) {
		now := inside.Add(1)
		defer inside.Add(-1)
		for seen := most.Load(); now > seen && !ending.Load() && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		<-tick.C
		io.WriteString(w, "ok")
	}, "limit: 100/s", "limit: 1000000/s", "burst: 20 ", "burst: 1000000 ", "concurrency: gradient", "concurrency: fixed",
		"maxConcurrency: 200", "maxConcurrency: "+strconv.Itoa(places))
	// At its end wrk leaves, one connection after the other: those who stay get the places of those who have left, while
	// the server still works for these.
	time.AfterFunc(2*time.Second, func() { ending.Store(true) })
	out, err := exec.Command(wrk, "-t1", "-c200", "-d3s", p.url+"/orders").CombinedOutput()
	if err != nil {
		t.Fatalf("wrk: %v\n%s", err, out)
	}
	all, refused := requestsOf(t, string(out), `(\d+) requests in`),
		requestsOf(t, string(out), `Non-2xx or 3xx responses: (\d+)`)
	if most.Load() > places {
		t.Errorf("the server had %d requests at once, want at most %d", most.Load(), places)
	}
	if done := all - refused; done < places || refused < all/2 {
		t.Errorf("%d of %d requests refused: want most of them, and the others done", refused, all)
	}
	if m := p.page("/metrics"); !regexp.MustCompile(`(?m)^shed_total\{.*\} [1-9]`).MatchString(m) {
		t.Error("shed_total is not in /metrics")
	}
	clitest.Eventually(t, "all is quiet again", func() bool {
		return strings.Contains(p.page("/gates"), `"inFlight": 0`) && strings.Contains(p.page("/gates"), `"queued": 0`)
	})
	if a := ask(t, p.client, "GET", p.url+"/orders", ""); a.status != http.StatusOK {
		t.Errorf("after the storm: %d %s", a.status, a.body)
	}
}

func TestAFileThatOnlyProtectsNeedsNoOtherListener(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	rename(t, policy, "protect: {orders: {listen: '127.0.0.1:0', upstreams: ['http://127.0.0.1:1']}}\n")
	code, stdout, stderr := runProxy(t, clitest.Ended(t), "-c", policy, "--listen", "off", "--admin", "off")
	if code != 0 || strings.Contains(stdout, "listening on") ||
		!regexp.MustCompile(`\n  orders +http://127\.0\.0\.1:\d+ -> http://127\.0\.0\.1:1\n`).MatchString(stdout) {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestAnEntranceThatCannotBeOpenedIsNamedWithItsKey(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	addr := taken.Addr().String()
	rename(t, policy, "protect: {orders: {listen: '"+addr+"', upstreams: ['http://127.0.0.1:1']}}\n")
	code, stdout, stderr := runProxy(t, clitest.Ended(t), "-c", policy, "--listen", "127.0.0.1:0", "--admin", "off")
	want := "abate proxy: " + policy + ": protect.orders.listen " + addr + ": another program listens there already"
	if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("%d\n%s%s\nwant %s", code, stdout, stderr, want)
	}
}

func TestTheAdminPageOfTheCommandSpeaksTLS(t *testing.T) {
	dir := t.TempDir()
	policy, tokens, cert, key := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "tokens"),
		filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	rename(t, policy, "defaults: {}\n")
	rename(t, tokens, "me 0123456789abcdef\n")
	openssl := exec.Command(needs.Program(t, "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
		"ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
		"-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key)
	if out, err := openssl.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := launch(t, policy, "--admin-token-file", tokens, "--admin-tls-cert", cert, "--admin-tls-key", key)
	status := func(path string, args ...string) string {
		return curl(t, append([]string{"--cacert", cert, "-o", "/dev/null", "-w", "%{http_code}", p.admin + path},
			args...)...)
	}
	if !strings.HasPrefix(p.admin, "https://") || status("/readyz") != "200" || status("/guards") != "401" ||
		status("/guards", "-H", "Authorization: Bearer 0123456789abcdef") != "200" {
		t.Errorf("%s: /readyz %s, /guards %s, with a token %s", p.admin, status("/readyz"), status("/guards"),
			status("/guards", "-H", "Authorization: Bearer 0123456789abcdef"))
	}
}

func TestTheCommandListensAtUnixSocketsAndTakesThemAway(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "abate") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	policy, listen, admin := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "l"), filepath.Join(dir, "a")
	rename(t, policy, "services: {s: {upstreams: ['http://127.0.0.1:1'], routes: [{path: /}], maxRetries: 0}}\n")
	p := launch(t, policy, "--listen", "unix:"+listen+"?mode=0600", "--admin", "unix:"+admin)
	if p.listen != "http://unix:"+listen || p.admin != "unix:"+admin {
		t.Errorf("listening on %s, admin on %s", p.listen, p.admin)
	}
	for _, ask := range [][3]string{{admin, "http://localhost/readyz", "200"}, {listen, "http://s/", "502"}} {
		if got := curl(t, "--unix-socket", ask[0], "-o", "/dev/null", "-w", "%{http_code}", ask[1]); got != ask[2] {
			t.Errorf("%s: %s", ask[1], got)
		}
	}
	p.send(syscall.SIGTERM)
	<-p.done
	for _, path := range []string{listen, admin} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}
