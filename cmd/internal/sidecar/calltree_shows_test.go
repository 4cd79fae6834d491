package sidecar

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// joined is "abate proxy" at both sides of a program, which passes all fields of a request on with its own call, and
// all of the answer back, as reverse proxies do.
func joined(t *testing.T, next, owner string) (in string) {
	t.Helper()
	var out atomic.Pointer[url.URL]
	program := serve(t, (&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(out.Load())
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusBadGateway)
	}}).ServeHTTP)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	rename(t, policy, fmt.Sprintf(`
protect:
  program:
    listen: 127.0.0.1:0
    upstreams: ["http://%s"]
    trustedPeers: [127.0.0.0/8]
services:
  next:
    upstreams: [%q]
    routes: [{path: /}]
    retryOwner: %s
    maxRetries: 2
    initialDelay: 1ms
    retryBudget: {disabled: true}
    circuitBreaker: {disabled: true}
    outlierDetection: {disabled: true}
`, program.addr, next, owner))
	p := launch(t, policy)
	egress, err := url.Parse(p.listen)
	if err != nil {
		t.Fatal(err)
	}
	out.Store(egress)
	for _, l := range p.greeting {
		if m := regexp.MustCompile(`^  program +(http://\S+) -> http://` + program.addr + `$`).FindStringSubmatch(l); m !=
			nil {
			in = m[1]
		}
	}
	if in == "" {
		t.Fatalf("it does not say what it protects where:\n%s", strings.Join(p.greeting, "\n"))
	}
	return in
}

func TestProxiesAroundThreeProgramsMakeThreeAttemptsNot27(t *testing.T) {
	for _, owner := range []string{"nearest", "edge"} {
		t.Run(owner, func(t *testing.T) {
			var attempts atomic.Int32
			leaf := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				attempts.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			url := "http://" + leaf.addr
			for range 3 {
				url = joined(t, url, owner)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for n := int32(1); n <= 3; n++ {
				resp, err := client.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if got := attempts.Load(); got != 3*n || resp.StatusCode != http.StatusServiceUnavailable {
					t.Fatalf("%d attempts for %d requests, and then %d", got, n, resp.StatusCode)
				}
			}
		})
	}
}
