package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
)

func asGateway(c *proxy.Config) { c.Gateway = true }

// TestAGatewayRepeatsOnlyWhatTheFileAllows: else every layer in front of the services multiplies the load.
func TestAGatewayRepeatsOnlyWhatTheFileAllows(t *testing.T) {
	for _, tt := range []struct {
		name, more string
		gateway    bool
		attempts   int
	}{
		{"gateway by default", "", true, 1},
		{"gateway that may not", "gatewayRetries: false\n", true, 1},
		{"gateway that may", "gatewayRetries: true\n", true, 2},
		{"sidecar", "gatewayRetries: false\n", false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := inTurn(t, status(503), ok("good"))
			r := start(t, single([]string{s.url}, quickRetry)+tt.more, func(c *proxy.Config) { c.Gateway = tt.gateway })
			if a := r.get("/"); len(s.seen()) != tt.attempts || (a.status == 200) != (tt.attempts == 2) {
				t.Errorf("%d attempts, and then %+v", len(s.seen()), a)
			}
		})
	}
}

func TestAGatewaySendsNoCopies(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	s := upstream(t, func(net.Conn, string) {})
	r := start(t, single([]string{s.url}, "hedge: {delay: 1ms}", "attemptTimeout: "+long.String()), asGateway)
	if a := r.get("/"); a.status != 504 || len(s.seen()) != 1 {
		t.Errorf("%d attempts, and then %+v", len(s.seen()), a)
	}
}

// fieldsSeen answers with the fields that tell who asked.
func fieldsSeen(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s %q %q %q", r.Host, r.RequestURI, r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Host"],
		r.Header["X-Forwarded-Proto"])
}

func TestAGatewayTellsWhoAsked(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, fieldsSeen) + "/base"}), asGateway)
		c := in.client(t)
		for _, tt := range []struct {
			header http.Header
			want   string
		}{
			{nil, `shop.test /base/x?q ["127.0.0.1"] ["shop.test"] ["http"]`},
			{
				http.Header{"X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Host": {"edge.test"}, "X-Forwarded-Proto": {"https"}},
				`shop.test /base/x?q ["192.0.2.1" "127.0.0.1"] ["edge.test"] ["https"]`,
			},
		} {
			req := newRequest(t, "GET", "http://"+r.addr+"/x?q", nil)
			req.Host = "shop.test"
			for name, values := range tt.header {
				req.Header[name] = values
			}
			b := begin(t, c, req)
			b.head()
			b.rest(tt.want)
		}
	})
}

func TestASidecarAsksAsIfItWereTheProgram(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		url := out.serve(t, fieldsSeen)
		_, addr, _ := strings.Cut(url, "://")
		r := start(t, single([]string{url + "/base/"}))
		req := newRequest(t, "GET", "http://"+r.addr+"/x?q", nil)
		req.Host = "shop.test"
		req.Header.Set("X-Forwarded-For", "192.0.2.1") // the program's own
		b := begin(t, in.client(t), req)
		b.head()
		b.rest(addr + ` /base/x?q ["192.0.2.1"] [] []`)
	})
}

// TestTheBasePathIsAddedOnce: to what a route has chosen, not to what is addressed to the upstream itself.
func TestTheBasePathIsAddedOnce(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		t.Run(scheme, func(t *testing.T) {
			out := http1
			if scheme == "h2c" {
				out = h2c
			}
			url := out.serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.RequestURI) })
			_, addr, _ := strings.Cut(url, "://")
			r := start(t, "services:\n  s:\n    upstreams: [\""+url+"/base\"]\n    routes: [{host: api.test, path: /shop}]\n")
			for _, tt := range []struct{ target, host, want string }{
				{"/shop", "api.test", "/base/shop"},
				{"/shop/x?y=/base", "api.test", "/base/shop/x?y=/base"},
				{"http://api.test/shop/x", "other.test", "/base/shop/x"},
				{"http://api.test:80/shop", "api.test", "/base/shop"},
				{"http://" + addr + "/base/x", addr, "/base/x"},
				{"http://" + addr + "/base/x", "other.test", "/base/x"},
				{"http://" + addr + "/elsewhere", addr, "/elsewhere"},
				{"http://" + addr, addr, "/"},
				{"http://" + addr + "?q", addr, "/?q"},
				{"/base/x", addr, "/base/x"},
				{"/", addr, "/"},
			} {
				c := r.dial()
				a := c.send("GET " + tt.target + " HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n").answer()
				if want := addr + tt.want; a.content != want {
					t.Errorf("%s for %s: the service got %q (%d), want %q", tt.target, tt.host, a.content, a.status, want)
				}
				c.Close()
			}
		})
	}
}

func TestOptionsOfTheServerItselfPass(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(line(req))) })
	r := start(t, forward([]string{s.url + "/base"}))
	c := r.dial()
	for _, target := range []string{"*", "http://s.test"} {
		if a := c.send("OPTIONS " + target + " HTTP/1.1\r\nHost: s.test\r\n\r\n").answer(); a.content !=
			"OPTIONS * HTTP/1.1" {
			t.Errorf("%s: got %+v", target, a)
		}
	}
}

// TestARequestFindsItsService: the longest path, the more exact host, and what is not clean is cleaned for the choice
// and for the service alike.
func TestARequestFindsItsService(t *testing.T) {
	serve := func(name string) string {
		return http1.serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.RequestURI) })
	}
	r := start(t, fmt.Sprintf(`services:
  root:  {upstreams: [%q], routes: [{path: /}]}
  pay:   {upstreams: [%q], routes: [{path: /pay}]}
  cards: {upstreams: [%q], routes: [{path: /pay/cards}]}
  host:  {upstreams: [%q], routes: [{host: Pay.test, path: /pay}]}
  port:  {upstreams: [%q], routes: [{host: "pay.test:8080", path: /pay}]}
`, serve("root"), serve("pay"), serve("cards"), serve("host"), serve("port")))
	c := r.dial()
	for _, tt := range []struct{ host, target, want string }{
		{"a.test", "/", "root"},
		{"a.test", "/pay", "pay"},
		{"a.test", "/pay/", "pay"},
		{"a.test", "/pay?x=/pay/cards", "pay"},
		{"a.test", "/payments", "root"},
		{"a.test", "/pay/cards/1", "cards"},
		{"a.test", "/x/../pay/./cards", "cards /pay/cards"},
		{"a.test", "//pay//cards", "cards /pay/cards"},
		{"a.test", "/pay/../x", "root /x"},
		{"A.TEST.", "/pay", "pay"},
		{"pay.test.", "/pay", "host"},
		{"Pay.Test.:8080", "/pay", "port"},
		{"pay.test", "/pay", "host"},
		{"PAY.test:9090", "/pay", "host"},
		{"pay.test:8080", "/pay", "port"},
		{"pay.test", "/pay/cards", "cards"},
	} {
		if a := c.send("GET " + tt.target + " HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n").answer(); a.content != tt.want &&
			a.content != tt.want+" "+tt.target {
			t.Errorf("%s%s: got %q, want %s", tt.host, tt.target, a.content, tt.want)
		}
	}
}

// Why a circuit is open tells addresses, and what other clients met: strangers do not hear it, a service beside its
// proxy does.
func TestAGatewayDoesNotTellWhyACircuitIsOpen(t *testing.T) {
	for _, gateway := range []bool{true, false} {
		away := refusing(t)
		r := start(t, single([]string{"http://" + away}, noRetries, noEjection,
			"circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 1h}"),
			func(c *proxy.Config) { c.Gateway = gateway })
		r.get("/")
		if p := r.get("/").problem(t); p.Reason != "circuit-open" || strings.Contains(p.Detail, away) == gateway ||
			strings.Contains(p.Detail, "consecutive") == gateway {
			t.Errorf("as a gateway %t: %+v", gateway, p)
		}
	}
}
