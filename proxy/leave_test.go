package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// leavers are proxies with clients: those of whom Leave has them go, and those of whom it does not.
var leavers = map[string]struct {
	start func(t *testing.T, upstream string) *running
	goes  bool
}{
	"of a gateway": {func(t *testing.T, upstream string) *running {
		return start(t, single([]string{upstream}), func(c *proxy.Config) { c.Gateway = true })
	}, true},
	"of a protected service": {func(t *testing.T, upstream string) *running {
		return protect(t, guardOf(upstream))
	}, true},
	"beside a sidecar": {func(t *testing.T, upstream string) *running {
		return start(t, single([]string{upstream}))
	}, false},
}

// TestAProxyThatLeavesServesAndAsksClientsToGo over HTTP/1.1: who is there, who has been idle, and who comes meanwhile.
func TestAProxyThatLeavesServesAndAsksClientsToGo(t *testing.T) {
	for name, c := range leavers {
		t.Run(name, func(t *testing.T) {
			r := c.start(t, newMember(t, "a").url)
			here, idle := r.dial(), r.dial()
			if a := here.get("/"); a.close || a.content != "a" {
				t.Errorf("before: %+v", a)
			}
			idle.get("/")
			r.proxy.Leave()
			if status := adminStatus(r, "/readyz"); status != 503 || r.proxy.Ready() {
				t.Errorf("/readyz says %d", status)
			}
			for what, client := range map[string]*client{"here": here, "idle": idle, "new": r.dial()} {
				a := client.get("/")
				if a.close != c.goes || a.content != "a" {
					t.Errorf("%s: %+v", what, a)
				}
				if c.goes {
					client.closed()
				} else if a := client.get("/"); a.content != "a" {
					t.Errorf("%s, again: %+v", what, a)
				}
			}
		})
	}
}

// TestAProxyThatLeavesEndsConnectionsOfHTTP2 between two requests, and those that are made meanwhile after a second.
func TestAProxyThatLeavesEndsConnectionsOfHTTP2(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for name, c := range leavers {
		t.Run(name, func(t *testing.T) {
			r := c.start(t, newMember(t, "a").url)
			tr := &http.Transport{Protocols: new(http.Protocols)}
			tr.Protocols.SetUnencryptedHTTP2(true)
			defer tr.CloseIdleConnections()
			reused := func() (again bool) {
				req, err := http.NewRequest(http.MethodPost, "http://"+r.addr+"/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = "s.test"
				trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }}
				resp, err := tr.RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "a" {
					t.Errorf("%s %q %v", resp.Status, body, err)
				}
				return again
			}
			if reused() || !reused() {
				t.Error("it has not kept its connection")
			}
			r.proxy.Leave()
			if !c.goes {
				if !reused() {
					t.Error("it had to go")
				}
				return
			}
			eventually(t, "the connection ends", func() bool { return !reused() })
			eventually(t, "so does the next one", func() bool { return !reused() })
		})
	}
}
