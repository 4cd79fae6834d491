package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// pythonShop runs the gRPC service in Python and returns its address.
func pythonShop(t *testing.T) string {
	t.Helper()
	return program(t, needs.Python(t, "grpc"), "testdata/clients/grpc_server.py")
}

// program runs a service that prints its port and ends when its standard input does. It returns the service's address.
func program(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%q has not said its port: %v", command, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// shopPolicy is the policy of the calls to the shop, and of the gate before it.
func shopPolicy(service, gate string) string {
	return fmt.Sprintf(`
defaults: {initialDelay: 5ms, retryBudget: {ratio: 1}}
services:
  payments:
    retryOn: [UNAVAILABLE]
    upstreams: ["h2c://%[1]s"]
    routes: [{path: /shop.Payment}]
  careful:
    upstreams: ["h2c://%[1]s"]
    routes: [{path: /shop.Careful}]
  hedged:
    retryMethods: ["/shop.Hedged/*"]
    hedge: {delay: 50ms}
    upstreams: ["h2c://%[1]s"]
    routes: [{path: /shop.Hedged}]
  down:
    circuitBreaker: {mode: forcedOpen}
    upstreams: ["h2c://%[1]s"]
    routes: [{path: /shop.Down}]
protect:
  gate:
    listen: %[2]s
    upstreams: ["h2c://%[1]s"]
    shed: {concurrency: fixed, maxConcurrency: 1, noQueue: true}
`, service, gate)
}

// What every gRPC client prints. "seen" is how often the service was called.
const shopped = `ok charged
metadata head one,two 00ff01
flaky charged 2
careful UNAVAILABLE 1
pushback UNAVAILABLE 1
invalid INVALID_ARGUMENT 1
hedged charged 2 cancelled
deadline DEADLINE_EXCEEDED had a deadline
down UNAVAILABLE
unknown method UNIMPLEMENTED
no route UNIMPLEMENTED
large 6291456
stream 499500
late failure 10 DATA_LOSS
upload 100 messages, 500 bytes
talk 20 echo 19
at once 200
cancelled CANCELLED
shed UNAVAILABLE 0
busy charged
`

func TestGRPCProgramsInOtherLanguagesAreGuardedUnchanged(t *testing.T) {
	if testing.Short() {
		return
	}
	for _, c := range []struct {
		language string
		command  func(t *testing.T, proxy, gate string) *exec.Cmd
	}{
		{"Python, grpcio", func(t *testing.T, proxy, gate string) *exec.Cmd {
			return exec.Command(needs.Python(t, "grpc"), "testdata/clients/grpc_pay.py", proxy, gate)
		}},
		{"Java, grpc-netty", func(t *testing.T, proxy, gate string) *exec.Cmd {
			libraries := needs.Jars(t, "libgrpc-java and libnetty-java", "grpc-*.jar", "netty-*.jar", "guava.jar",
				"perfmark-*.jar")
			return exec.Command(needs.Program(t, "java"), "-cp", libraries, "testdata/clients/GrpcPay.java", proxy, gate)
		}},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			gate := vacant(t)
			p := start(t, shopPolicy(pythonShop(t), gate))
			if err := p.proxy.Open(); err != nil {
				t.Fatal(err)
			}
			out, err := c.command(t, p.addr, gate).CombinedOutput()
			if err != nil || string(out) != shopped {
				t.Errorf("%v; it printed\n%s\nand should have printed\n%s", err, out, shopped)
			}
		})
	}
}

func TestCurlSpeaksHTTP2ThroughTheProxy(t *testing.T) {
	curl := needs.Program(t, "curl")
	var calls atomic.Int32
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Spoken", r.Proto)
		body, _ := io.ReadAll(r.Body)
		if calls.Add(1) == 1 && r.URL.Path == "/flaky" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%s %d bytes\n", r.Method, len(body))
		_ = http.NewResponseController(w).Flush() // an answer with a length has no trailers
		w.Header().Set("X-Sum", "seven")
	})
	old := httptest.NewServer(service)
	defer old.Close()
	modern := httptest.NewUnstartedServer(service)
	modern.Config.Protocols = new(http.Protocols)
	modern.Config.Protocols.SetUnencryptedHTTP2(true)
	modern.Start()
	defer modern.Close()
	for _, up := range []struct {
		url, spoken string
	}{{old.URL, "HTTP/1.1"}, {"h2c" + strings.TrimPrefix(modern.URL, "http"), "HTTP/2.0"}} {
		p := start(t, fmt.Sprintf(`
defaults: {initialDelay: 5ms, retryBudget: {ratio: 1}}
services:
  s: {upstreams: [%q], routes: [{path: /}]}
  down: {upstreams: [%q], routes: [{path: /down}], circuitBreaker: {mode: forcedOpen}}
`, up.url, up.url))
		for _, c := range []struct {
			args []string
			want []string
		}{
			{[]string{"/flaky"}, []string{"HTTP/2 200", "x-spoken: " + up.spoken, "GET 0 bytes", "x-sum: seven"}},
			{[]string{"--data-binary", "@testdata/clients/GrpcPay.java", "/post"}, []string{"HTTP/2 200", "POST "}},
			{[]string{"/down"}, []string{"HTTP/2 503", "abate-reason: circuit-open", `"circuit-open"`}},
		} {
			calls.Store(0)
			args := append([]string{"--silent", "--show-error", "--include", "--max-time", "20", "--http2-prior-knowledge"},
				c.args[:len(c.args)-1]...)
			out, err := exec.Command(curl, append(args, "http://"+p.addr+c.args[len(c.args)-1])...).CombinedOutput()
			for _, want := range c.want {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("curl %q of %s: %v, without %q:\n%s", c.args, up.url, err, want, out)
				}
			}
		}
	}
}

func TestCurlSeesTrailersOfGRPC(t *testing.T) {
	curl := needs.Program(t, "curl")
	p := start(t, shopPolicy(pythonShop(t), "127.0.0.1:0"))
	for path, want := range map[string][]string{
		"/shop.Payment/Charge": {"HTTP/2 200", "grpc-status: 0", "charged"},
		"/shop.Down/Charge":    {"HTTP/2 200", "grpc-status: 14", "abate-reason: circuit-open"},
	} {
		cmd := exec.Command(curl, "--silent", "--show-error", "--include", "--max-time", "20", "--http2-prior-knowledge",
			"-H", "content-type: application/grpc", "-H", "te: trailers", "--data-binary", "@-", "--output", "-",
			"http://"+p.addr+path)
		cmd.Stdin = strings.NewReader("\x00\x00\x00\x00\x04ok k")
		out, err := cmd.CombinedOutput()
		for _, w := range want {
			if err != nil || !strings.Contains(string(out), w) {
				t.Errorf("%s: %v, without %q:\n%s", path, err, w, out)
			}
		}
	}
}
