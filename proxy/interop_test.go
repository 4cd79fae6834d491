package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// payments is the service that the programs in testdata/clients call. What is worth a second attempt fails at first.
type payments struct {
	t     *testing.T
	mu    sync.Mutex
	calls map[string]int // by method and path
}

func (p *payments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Errorf("%s %s: the body broke off: %v", r.Method, r.URL.Path, err)
	}
	p.mu.Lock()
	p.calls[r.Method+" "+r.URL.Path]++
	n := p.calls[r.Method+" "+r.URL.Path]
	p.mu.Unlock()
	switch {
	case r.URL.Path == "/charges/42" && n == 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/charges/42":
		fmt.Fprint(w, "charged")
	case r.URL.Path == "/charges" && n == 1:
		w.WriteHeader(http.StatusBadGateway)
	case r.URL.Path == "/charges":
		if key := r.Header.Get("Idempotency-Key"); key != "order-7" || !strings.Contains(string(body), "4200") {
			p.t.Errorf("the second attempt brought key %q and body %q", key, body)
		}
		fmt.Fprint(w, `{"charged": true}`)
	case r.URL.Path == "/large":
		fmt.Fprintf(w, "%d bytes", len(body))
	case r.URL.Path == "/stream":
		for range 100 {
			_, _ = w.Write(make([]byte, 10_000))
			_ = http.NewResponseController(w).Flush()
		}
	default:
		p.t.Errorf("%s %s reached the service", r.Method, r.URL.Path)
	}
}

// What every program prints: the failures of the first attempts are not in it.
const payed = `get 200 charged
post 200 True
chunked 200 300000 bytes
down 503 application/problem+json circuit-open false
stream 200 1000000
`

func TestProgramsInOtherLanguagesAreGuardedUnchanged(t *testing.T) {
	if testing.Short() {
		return
	}
	for _, c := range []struct {
		language string
		// command runs the program: with the service's own URL and the proxy as its HTTP proxy, or with the proxy as the base
		// URL for those that know no HTTP proxy.
		command func(t *testing.T, service, proxy string) *exec.Cmd
	}{
		{"Python, requests", func(t *testing.T, service, proxy string) *exec.Cmd {
			cmd := exec.Command(needs.Python(t, "requests"), "testdata/clients/pay.py")
			cmd.Env = append(os.Environ(), "PAYMENTS_URL="+service, "http_proxy="+proxy, "no_proxy=", "NO_PROXY=")
			return cmd
		}},
		{"Node, fetch", func(t *testing.T, _, proxy string) *exec.Cmd {
			cmd := exec.Command(needs.Program(t, "node"), "testdata/clients/pay.js")
			cmd.Env = append(os.Environ(), "PAYMENTS_URL="+proxy+"/payments")
			return cmd
		}},
		{"Java, java.net.http", func(t *testing.T, service, proxy string) *exec.Cmd {
			host, port, _ := strings.Cut(strings.TrimPrefix(proxy, "http://"), ":")
			cmd := exec.Command(needs.Program(t, "java"), "-Dhttp.proxyHost="+host, "-Dhttp.proxyPort="+port,
				"-Dhttp.nonProxyHosts=",
				filepath.Join("testdata", "clients", "Pay.java"))
			cmd.Env = append(os.Environ(), "PAYMENTS_URL="+service)
			return cmd
		}},
	} {
		t.Run(c.language, func(t *testing.T) {
			service := &payments{t: t, calls: map[string]int{}}
			server := httptest.NewServer(http.StripPrefix("/payments", service))
			bare := httptest.NewServer(service)
			t.Cleanup(server.Close)
			t.Cleanup(bare.Close)
			p := start(t, fmt.Sprintf(`
defaults: {initialDelay: 5ms, retryBudget: {ratio: 1}}
services:
  payments:
    upstreams: ["%[1]s"]
  payments-by-path:
    upstreams: ["%[2]s"]
    routes: [{path: /payments}]
  down:
    circuitBreaker: {mode: forcedOpen}
    upstreams: ["%[1]s/down"]
    routes: [{path: /payments/down}]
`, bare.URL, server.URL))
			out, err := c.command(t, bare.URL, "http://"+p.addr).CombinedOutput()
			if err != nil || string(out) != payed {
				t.Errorf("%v; it printed\n%s\nand should have printed\n%s", err, out, payed)
			}
			for call, want := range map[string]int{
				"GET /charges/42": 2, "POST /charges": 2, "POST /large": 1, "GET /stream": 1,
			} {
				if n := service.calls[call]; n != want {
					t.Errorf("the service saw %s %d times, want %d", call, n, want)
				}
			}
		})
	}
}
