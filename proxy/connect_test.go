package proxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// echoing is what a tunnel may lead to: it sends back what it gets, until its client finishes.
func echoing(t *testing.T) (s *server, addr string) {
	s = rawUpstream(t, func(c net.Conn, _ int) {
		_, _ = io.Copy(c, c)
		c.(*net.TCPConn).CloseWrite()
	})
	return s, strings.TrimPrefix(s.url, "http://")
}

// connectTo asks for a tunnel, and returns the status and what a refusal says.
func (c *client) connectTo(addr string) (int, string) {
	c.t.Helper()
	c.send("CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		if len(resp.Header) > 0 {
			c.t.Errorf("a tunnel begins with fields: %v", resp.Header)
		}
		return resp.StatusCode, ""
	}
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

func outsideOf(t *testing.T, r *running) (o proxy.Outside) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.adminGet("/outside")), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestConnectTunnelsToWhatIsListed(t *testing.T) {
	_, addr := echoing(t)
	r := start(t, "defaults: {}\noutside: {connect: [\"127.0.0.0/8:"+portOf(addr)+"\"]}\n")
	c := r.dial()
	if status, _ := c.connectTo(addr); status != 200 {
		t.Fatalf("CONNECT: %d", status)
	}
	c.send("hello")
	c.expect("hello")
	if o := outsideOf(t, r); len(o.Open) != 1 || o.Open[0].To != addr || len(o.Tunnels) != 1 || o.Tunnels[0].Open != 1 {
		t.Errorf("while it is open /outside says %+v", o)
	}
	c.CloseWrite()
	c.closed()
	eventually(t, "the tunnel is booked", func() bool {
		o := outsideOf(t, r)
		w := o.Tunnels[0]
		return len(o.Open) == 0 && w.Open == 0 && w.Opened == 1 && w.Up == 5 && w.Down == 5 && w.Seconds > 0
	})
	entry := `{entry="127.0.0.0/8:` + portOf(addr) + `"`
	for _, want := range []string{
		"abate_proxy_tunnels" + entry + "} 0\n", "abate_proxy_tunnels_opened_total" + entry + "} 1\n",
		"abate_proxy_tunnel_bytes_total{direction=\"received\",entry=\"127.0.0.0/8:" + portOf(addr) + "\"} 5\n",
		`abate_calls_total{`, `service="(tunnels)"`,
	} {
		if got := r.adminGet("/metrics"); !strings.Contains(got, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

func TestConnectIsDeniedByTheAddressThatIsDialled(t *testing.T) {
	up, addr := echoing(t)
	port := portOf(addr)
	r := start(t, `services:
  listed: {upstreams: ["https://pay.test"]}
  named: {upstreams: ["https://named.test:8443"]}
outside: {connect: ["*:*", "named.test:8443"]}
`)
	for to, want := range map[string]string{
		addr:                      "loopback address",
		"localhost:" + port:       "loopback address",
		"[::1]:" + port:           "loopback address",
		"[::ffff:7f00:1]:" + port: "loopback address",
		"0.0.0.0:" + port:         "no address of another machine",
		"169.254.169.254:80":      "where a cloud keeps credentials",
		"[fd00:ec2::254]:80":      "where a cloud keeps credentials",
		"169.254.1.1:80":          "link-local address",
		"[64:ff9b::a9fe:a9fe]:80": "where a cloud keeps credentials",
		"pay.test:443":            "http://pay.test/ without TLS",
	} {
		if status, said := r.dial().connectTo(to); status != 403 || !strings.Contains(said, want) ||
			!strings.Contains(said, "outside.connect") {
			t.Errorf("CONNECT %s: %d %s; want a word of %q", to, status, said, want)
		}
	}
	if up.accepted != 0 {
		t.Errorf("%d connections were made all the same", up.accepted)
	}
	if o := outsideOf(t, r); o.Refused["loopback"] < 3 || o.Refused["metadata"] != 3 || o.Refused["guarded"] != 1 {
		t.Errorf("/outside counts %v", o.Refused)
	}
}

// What could not be reached was not denied: who reads the answer looks in the wrong place.
func TestConnectThatFailsIsNotCalledDenied(t *testing.T) {
	addr := refusing(t)
	r := start(t, "defaults: {}\noutside: {connect: [\""+addr+"\"]}\n")
	status, said := r.dial().connectTo(addr)
	if status != 502 || !strings.Contains(said, `"reason":"upstream-error"`) {
		t.Errorf("%d %s", status, said)
	}
}

func TestConnectNeedsAList(t *testing.T) {
	_, addr := echoing(t)
	for _, c := range []struct{ policy, target, want string }{
		{"defaults: {}\n", addr, "405"},
		{"defaults: {}\noutside: {passThrough: [\"*:*\"]}\n", addr, "405"},
		{"defaults: {}\noutside: {connect: [other.test]}\n", addr, "403"},
		{"defaults: {}\noutside: {connect: [\"127.0.0.1:1\"]}\n", "127.0.0.1:1", "502"},
		{"defaults: {}\noutside: {connect: [\"*:*\"]}\n", "nobody.invalid:443", "50"},
	} {
		conn := start(t, c.policy).dial()
		conn.send("CONNECT " + c.target + " HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
		line, err := conn.in.ReadString('\n')
		if !strings.HasPrefix(line, "HTTP/1.1 "+c.want) || err != nil {
			t.Errorf("%s: CONNECT %s: %q, %v; want %s", c.policy, c.target, line, err, c.want)
		}
		if rest, _ := io.ReadAll(conn.in); strings.Contains(string(rest), "HTTP/1.1") {
			t.Errorf("CONNECT %s: what came behind it was answered: %s", c.target, rest)
		}
	}
}

// A client that asks for a tunnel to a service without TLS, as gRPC's and some of Node's do, is guarded all the same.
func TestTunnelToAServiceWithoutTLSIsRead(t *testing.T) {
	var n int
	s := upstream(t, func(c net.Conn, req string) {
		if n++; n == 1 {
			io.WriteString(c, status(503))
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req), req)
	})
	addr := strings.TrimPrefix(s.url, "http://")
	r := start(t, "services:\n  s: {upstreams: [\""+s.url+"\"], initialDelay: 1ms}\n")
	c := r.dial()
	if status, _ := c.connectTo(addr); status != 200 {
		t.Fatalf("CONNECT: %d", status)
	}
	for range 2 {
		a := c.send("GET /x HTTP/1.1\r\nHost: " + addr + "\r\n\r\n").answer()
		if a.status != 200 || !strings.HasPrefix(a.content, "GET /x HTTP/1.1") {
			t.Fatalf("in the tunnel: %d %s", a.status, a.content)
		}
	}
	if n != 3 || r.guard().Breaker.Calls == 0 && n == 0 {
		t.Errorf("%d requests reached the service, want 3: the first was to be repeated", n)
	}
}

func TestHostsThatAreNotListedArePassedOnOnlyIfTheFileSaysSo(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req), req)
	})
	addr := strings.TrimPrefix(s.url, "http://")
	ask := "GET http://" + addr + "/a//b?c HTTP/1.1\r\nHost: x\r\nAbate-Retry-Allowance: 3\r\n\r\n"
	if a := start(t, "defaults: {}\n").dial().send(ask).answer(); a.status != 404 {
		t.Errorf("without a list: %d %s", a.status, a.content)
	}
	r := start(t, "services: {s: {upstreams: [\"http://s.test\"]}}\noutside: {passThrough: [\"127.0.0.1:*\"]}\n")
	c := r.dial()
	for range 2 {
		a := c.send(ask).answer()
		if a.status != 200 || !strings.HasPrefix(a.content, "GET /a//b?c HTTP/1.1\r\nHost: "+addr+"\r\n") ||
			strings.Contains(a.content, "Abate-Retry") {
			t.Errorf("passed on: %d %s", a.status, a.content)
		}
	}
	if s.accepted != 1 {
		t.Errorf("%d connections for two requests", s.accepted)
	}
	if o := outsideOf(t, r); len(o.PassThrough) != 1 || o.PassThrough[0] != (proxy.Passed{Host: "http://" + addr,
		Calls: 2}) {
		t.Errorf("/outside says %+v", o.PassThrough)
	}
	if got := r.adminGet("/metrics"); !strings.Contains(got, `service="(pass-through)"`) {
		t.Error("/metrics does not have it")
	}
	r.put("services: {s: {upstreams: [\"http://s.test\"]}}\n") // taken back
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := c.send(ask).answer(); a.status != 404 {
		t.Errorf("after a reload without the list: %d", a.status)
	}
}

func TestPassThroughIsDeniedByTheAddressThatIsDialled(t *testing.T) {
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, status(200)) })
	r := start(t, "defaults: {}\noutside: {passThrough: [\"*:*\"]}\n")
	for _, host := range []string{strings.TrimPrefix(s.url, "http://"), "localhost:" + portOf(s.url), "169.254.169.254"} {
		a := r.dial().send("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n").answer()
		if a.status != 403 || !strings.Contains(a.content, "outside.passThrough") {
			t.Errorf("%s: %d %s", host, a.status, a.content)
		}
	}
	if s.accepted != 0 {
		t.Errorf("%d connections were made", s.accepted)
	}
}

// With http://… a program has its call guarded, and the service is spoken to by TLS.
func TestListenerOfOneServiceIsItsBaseURL(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req), req)
	})
	r := start(t, "services:\n  s: {upstreams: [\""+s.url+"/api\"], routes: [{path: /s, rewrite: /v2}]}\n")
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- r.proxy.ServeFor("s", l) }()
	own := dial(t, l.Addr().String())
	for _, a := range []reply{
		own.send("GET /v1/x?y HTTP/1.1\r\nHost: whatever\r\n\r\n").answer(),
		r.dial().send("GET http://" + l.Addr().String() + "/v1/x?y HTTP/1.1\r\nHost: z\r\n\r\n").answer(),
	} {
		if a.status != 200 || !strings.HasPrefix(a.content, "GET /api/v1/x?y HTTP/1.1") {
			t.Errorf("%d %s", a.status, a.content)
		}
	}
	if a := r.dial().send("GET /s/x HTTP/1.1\r\nHost: z\r\n\r\n").answer(); !strings.HasPrefix(a.content,
		"GET /api/v2/x ") {
		t.Errorf("by the route: %d %s", a.status, a.content)
	}
	r.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestControlSeesEveryConnectionBeforeItIsMade: to services, through tunnels and of requests that are passed on.
func TestControlSeesEveryConnectionBeforeItIsMade(t *testing.T) {
	_, tunnelled := echoing(t)
	service, stranger := mirror(t), mirror(t)
	var mu sync.Mutex
	refuse, seen := false, []string(nil)
	host := strings.TrimPrefix(stranger.url, "http://")
	outside := "outside: {connect: ['" + tunnelled + "'], passThrough: ['" + host + "']}\n"
	r := start(t, single([]string{service.url}, "maxRetries: 0")+outside, func(c *proxy.Config) {
		c.Control = func(_, address string, _ syscall.RawConn) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, address)
			if refuse {
				return errors.New("no more")
			}
			return nil
		}
	})
	if a := r.get("/"); a.status != 200 {
		t.Errorf("a service: %d", a.status)
	}
	a := r.dial().send("GET " + stranger.url + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n").answer()
	if status, said := r.dial().connectTo(tunnelled); a.status != 200 || status != 200 {
		t.Errorf("a stranger: %d; a tunnel: %d %s", a.status, status, said)
	}
	mu.Lock()
	want := []string{strings.TrimPrefix(service.url, "http://"), host, tunnelled}
	if refuse = true; !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
	mu.Unlock()
	if status, _ := r.dial().connectTo(tunnelled); status != 502 {
		t.Errorf("refused: %d", status)
	}
}
