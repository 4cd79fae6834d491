package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// guardOf is a policy with one protected service, "s", with this upstream and more keys, as lines like "timeout: 1s".
func guardOf(upstream string, keys ...string) string {
	lines := append([]string{"listen: 127.0.0.1:0", `upstreams: ["` + upstream + `"]`}, keys...)
	return "protect:\n  s:\n    " + strings.Join(lines, "\n    ") + "\n"
}

// Keys for guardOf.
const (
	noShed    = "shed: {disabled: true}"
	trustLoop = "trustedPeers: [127.0.0.0/8]"
)

// protect runs a proxy with a policy file that protects something, and connects to the first address it opens.
func protect(t testing.TB, policyYAML string, change ...func(*proxy.Config)) *running {
	t.Helper()
	r := start(t, policyYAML, change...)
	if err := r.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	r.addr = r.proxy.Entrances()[0].Addr.String()
	return r
}

// mirror answers every request with what the service got.
func mirror(t testing.TB) *server {
	return upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(req)) })
}

// gateState is what /gates tells about a gate.
type gateState struct {
	Gate string `json:"gate"`
	Shed struct {
		Limit    int `json:"limit"`
		InFlight int `json:"inFlight"`
		Queued   int `json:"queued"`
	} `json:"shed"`
	RateLimit struct {
		Keys int `json:"keys"`
	} `json:"rateLimit"`
	Tokens    int      `json:"bearerTokens"`
	Learned   []string `json:"learned"`
	Endpoints []struct {
		URL   string `json:"url"`
		Idle  int    `json:"idleConnections"`
		HTTP2 int    `json:"http2Connections"`
	} `json:"endpoints"`
}

// gate returns the first gate of /gates.
func (r *running) gate() gateState {
	r.t.Helper()
	var report struct{ Gates []gateState }
	if err := json.Unmarshal([]byte(r.adminGet("/gates")), &report); err != nil || len(report.Gates) == 0 {
		r.t.Fatalf("/gates: %v", err)
	}
	return report.Gates[0]
}

// refusedBy checks that an answer is a problem with that status and code.
func refusedBy(t *testing.T, a reply, status int, code string) map[string]any {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(a.content), &p); err != nil || a.status != status || p["code"] != code ||
		p["status"] != float64(status) {
		t.Fatalf("got %d %q, want %d with code %s (%v)", a.status, a.content, status, code, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Abate-Reason": code,
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if a.header.Get("Date") == "" || p["service"] != "s" {
		t.Errorf("no Date, or the service is %v: %v", p["service"], a.header)
	}
	return p
}

func TestIngressHandsAdmittedRequestsToTheService(t *testing.T) {
	up := mirror(t)
	r := protect(t, guardOf(up.url))
	c := r.dial()
	a := c.send("POST /orders?x=1 HTTP/1.1\r\nHost: shop.example:8080\r\nContent-Length: 5\r\n\r\nhello").answer()
	if a.status != 200 || line(a.content) != "POST /orders?x=1 HTTP/1.1" ||
		!strings.HasSuffix(a.content, "\r\n\r\nhello") {
		t.Fatalf("got %d %q", a.status, a.content)
	}
	host, _, _ := net.SplitHostPort(c.LocalAddr().String())
	for name, want := range map[string]string{
		"Host": "shop.example:8080", "X-Forwarded-For": host, "X-Forwarded-Proto": "http",
		"X-Forwarded-Host":      "shop.example:8080",
		"X-Envoy-Attempt-Count": "1", "Abate-Priority": "CRITICAL", "X-Envoy-Expected-Rq-Timeout-Ms": "",
	} {
		if got := field(a.content, name); got != want {
			t.Errorf("the service got %s %q, want %q", name, got, want)
		}
	}
	if a := c.get("/again"); a.status != 200 || up.connections() != 1 {
		t.Errorf("status %d over %d connections, want 200 over 1", a.status, up.connections())
	}
	if g := r.gate(); g.Gate != "s" || g.Shed.InFlight != 0 || g.Shed.Limit == 0 ||
		!strings.Contains(strings.Join(g.Learned, " "), fmt.Sprintf("0 of %d places are taken", g.Shed.Limit)) {
		t.Errorf("/gates shows %+v", g)
	}
}

func TestIngressReadsTheProcessorsLoadForItsGate(t *testing.T) {
	r := protect(t, guardOf(mirror(t).url, "shed: {cpu: 0.99}"))
	for range 3 {
		if a := r.get("/"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.content)
		}
	}
}

func TestIngressTellsTheServiceHowMuchTimeIsLeft(t *testing.T) {
	r := protect(t, guardOf(mirror(t).url, "timeout: 1m"))
	var left int
	fmt.Sscan(field(r.get("/").content, "X-Envoy-Expected-Rq-Timeout-Ms"), &left)
	if left < 30_000 || left > 60_000 {
		t.Errorf("the service was told %d ms, want nearly 60000", left)
	}
}

func TestIngressBelievesTrustedPeersOnly(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: s\r\nX-Envoy-Attempt-Count: 3\r\nAbate-Priority: SHEDDABLE\r\nX-Tenant: " +
		"acme\r\nX-Forwarded-For: 192.0.2.7\r\n" +
		"X-Forwarded-Proto: https\r\nX-Envoy-Retry-On: 5xx\r\nAbate-Hop: 7\r\nForwarded: for=192.0.2.7\r\nX-Real-Ip: " +
		"192.0.2.7\r\nX-Custom: kept\r\n\r\n"
	up := mirror(t)
	for _, c := range []struct {
		name, keys string
		want       map[string]string
	}{
		{"stranger", "trustedPeers: [192.0.2.0/24]", map[string]string{
			"X-Envoy-Attempt-Count": "1", "Abate-Priority": "CRITICAL", "X-Tenant": "", "X-Forwarded-Proto": "http",
			"X-Envoy-Retry-On": "", "Abate-Hop": "",
			"Forwarded": "", "X-Real-Ip": "", "X-Custom": "kept", "X-Forwarded-For": "127.0.0.1"}},
		{"trusted", trustLoop, map[string]string{
			"X-Envoy-Attempt-Count": "3", "Abate-Priority": "SHEDDABLE", "X-Tenant": "acme", "X-Forwarded-Proto": "https",
			"X-Envoy-Retry-On": "5xx", "Abate-Hop": "7",
			"Forwarded": "for=192.0.2.7", "X-Real-Ip": "192.0.2.7", "X-Custom": "kept", "X-Forwarded-For": "192.0.2.7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := protect(t, guardOf(up.url, c.keys, `caller: "header:X-Tenant"`))
			a := r.dial().send(request).answer()
			for name, want := range c.want {
				if got := field(a.content, name); got != want {
					t.Errorf("the service got %s %q, want %q", name, got, want)
				}
			}
			if n := strings.Count(a.content, "X-Forwarded-For"); c.name == "trusted" && n != 2 ||
				c.name == "stranger" && n != 1 {
				t.Errorf("%d fields X-Forwarded-For: %q", n, a.content)
			}
			if strings.Count(a.content, "Abate-Priority") != 1 || strings.Count(a.content, "X-Envoy-Attempt-Count") != 1 {
				t.Errorf("doubled: %q", a.content)
			}
		})
	}
}

// TestIngressTakesOffWhatOnlyProxiesMaySay: an address or a path that a stranger writes is not told to the service, in
// whichever field its framework would look for it.
func TestIngressTakesOffWhatOnlyProxiesMaySay(t *testing.T) {
	names := strings.Fields("True-Client-IP X-Real-IP CF-Connecting-IP CF-Connecting-IPv6 X-Client-IP " +
		"X-Cluster-Client-IP Client-IP Fastly-Client-IP Fly-Client-IP Forwarded X-Forwarded X-Forwarded-By " +
		"X-Forwarded-Server X-Forwarded-Ssl X-Forwarded-Prefix X-Forwarded-Port Forwarded-For X-Originating-IP X-Remote-IP " +
		"X-Remote-Addr X-ProxyUser-Ip WL-Proxy-Client-IP Proxy-Client-IP X-Azure-ClientIP X-AppEngine-User-IP " +
		"X-Original-URL X-Rewrite-URL X-Original-Forwarded-For X-Host X_Forwarded_For true_client_ip")
	kept := strings.Fields("X-Forward X-Realistic True-Client CF-Other X-Custom Client-Ip-Range Accept " +
		"X-Original-Filename")
	up := mirror(t)
	for _, trusted := range []bool{false, true} {
		keys := []string{noShed}
		if trusted {
			keys = append(keys, trustLoop)
		}
		r := protect(t, guardOf(up.url, keys...))
		request := "GET / HTTP/1.1\r\nHost: s\r\n"
		for _, name := range append(names, kept...) {
			request += name + ": 192.0.2.7\r\n"
		}
		a := r.dial().send(request + "\r\n").answer()
		for _, name := range names {
			if got := field(a.content, name); (got == "192.0.2.7") != trusted {
				t.Errorf("trusted %v: the service got %s %q", trusted, name, got)
			}
		}
		for _, name := range kept {
			if got := field(a.content, name); got != "192.0.2.7" {
				t.Errorf("trusted %v: %s was lost", trusted, name)
			}
		}
	}
}

func TestIngressShowsTheRateLimitOnEveryAnswer(t *testing.T) {
	up := upstream(t, func(c net.Conn, req string) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-RateLimit-Limit: 7\r\nRateLimit: "+
			"\"other\";r=1\r\nX-Powered-By: us\r\n\r\n")
	})
	r := protect(t, guardOf(up.url, noShed, "rateLimit: {limit: 2/200s, burst: 2}"))
	c := r.dial()
	for i, remaining := range []string{"1", "0"} {
		a := c.get("/")
		if a.status != 200 || a.header.Get("X-RateLimit-Remaining") != remaining ||
			a.header.Get("X-RateLimit-Limit") != "2" || len(a.header["X-Ratelimit-Limit"]) != 1 ||
			a.header.Get("RateLimit-Policy") != `"default";q=2;w=200` || len(a.header["Ratelimit"]) != 1 ||
			a.header.Get("X-Powered-By") != "us" ||
			!strings.HasPrefix(a.header.Get("RateLimit"), `"default";r=`+remaining+";t=") ||
			a.header.Get("X-RateLimit-Reset") == "" {
			t.Errorf("request %d: %d %v", i+1, a.status, a.header)
		}
	}
	a := c.get("/")
	p := refusedBy(t, a, 429, "rate-limited")
	var wait int
	fmt.Sscan(a.header.Get("Retry-After"), &wait)
	if wait < 60 || wait > 150 || p["retryAfter"] != float64(wait) || a.header.Get("X-RateLimit-Remaining") != "0" ||
		a.header.Get("RateLimit-Policy") == "" {
		t.Errorf("%v %v", p, a.header)
	}
	if n := len(up.seen()); n != 2 || a.close {
		t.Errorf("the service got %d requests, want 2; the connection closes: %v", n, a.close)
	}
}

func TestIngressLimitsEachCaller(t *testing.T) {
	up := mirror(t)
	for _, c := range []struct {
		name, keys string
		requests   []string // fields; each second one of a caller is refused
		want       []int
	}{
		{"by the address that a trusted peer says", trustLoop + "\n    rateLimit: {limit: 1/1h, burst: 1, key: caller}",
			[]string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2", "X-Forwarded-For: 192.0.2.1",
				"X-Forwarded-For: 198.51.100.9, 192.0.2.2, 127.0.0.5", ""}, []int{200, 200, 429, 429, 200}},
		{"not by what a stranger says", "rateLimit: {limit: 1/1h, burst: 1, key: ip}", []string{
			"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2",
		}, []int{200, 429}},
		{"by a field of a trusted peer", trustLoop + "\n    rateLimit: {limit: 1/1h, burst: 1, key: \"header:X-Tenant\"}",
			[]string{"X-Tenant: a", "x-tenant: b", "X-TENANT: a", "", "X-Other: 1"}, []int{200, 200, 429, 200, 429}},
		{"not by a field of a stranger", "trustedPeers: [192.0.2.0/24]\n    rateLimit: {limit: 1/1h, burst: 1, key: " +
			"\"header:X-Tenant\"}", []string{"X-Tenant: a", "X-Tenant: b"}, []int{200, 429}},
		{"all together", "rateLimit: {limit: 1/1h, burst: 1}", []string{"X-Tenant: a", "X-Tenant: b"}, []int{200, 429}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := protect(t, guardOf(up.url, noShed, c.keys)).dial()
			for i, fields := range c.requests {
				if fields != "" {
					fields += "\r\n"
				}
				if a := conn.send("GET / HTTP/1.1\r\nHost: s\r\n" + fields + "\r\n").answer(); a.status != c.want[i] {
					t.Errorf("request %d with %q: %d, want %d", i+1, fields, a.status, c.want[i])
				}
			}
		})
	}
}

func TestIngressTellsTheUnixTimeOfAResetIfThePolicySaysSo(t *testing.T) {
	up := mirror(t)
	c := protect(t, guardOf(up.url, noShed, "rateLimit: {limit: 1/1h, burst: 1, reset: epoch}")).dial()
	for _, status := range []int{200, 429} {
		before := time.Now().Unix()
		a := c.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n").answer()
		at, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
		if a.status != status || err != nil || at < before || at > time.Now().Unix()+3601 || at < 1_700_000_000 {
			t.Errorf("%d, %v; want %d and a reset at most an hour after %d", a.status, a.header, status, before)
		}
	}
}

func TestIngressObeysDeadlines(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	up, came, ended := silentUpstream(t)
	r := protect(t, guardOf(up.url, "timeout: 1h"))
	for _, header := range []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0", "Grpc-Timeout: 0m"} {
		a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + header + "\r\n\r\n").answer()
		refusedBy(t, a, 504, "deadline")
	}
	if n := up.connections(); n != 0 {
		t.Errorf("the service got %d connections for requests that were over", n)
	}
	a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\nX-Envoy-Expected-Rq-Timeout-Ms: 2000\r\n\r\n").answer()
	soon(t, "the service has the request", came)
	soon(t, "the attempt is given up", ended)
	if a.status != 504 || r.gate().Shed.InFlight != 0 {
		t.Errorf("got %d %q, %d in flight; want 504 and none", a.status, a.content, r.gate().Shed.InFlight)
	}
}

// holding is a service that answers when it is told to.
func holding(t testing.TB) (s *server, came chan struct{}, answer chan string) {
	came, answer = make(chan struct{}, 100), make(chan string, 100)
	return upstream(t, func(c net.Conn, req string) {
		came <- struct{}{}
		if a, more := <-answer; more {
			io.WriteString(c, a)
		}
	}), came, answer
}

func TestIngressShedsWhatTheServiceCannotDo(t *testing.T) {
	up, came, answer := holding(t)
	t.Cleanup(func() { close(answer) })
	r := protect(
		t, guardOf(up.url, "shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 1, queueInterval: 1m, queueTarget: 1m}"))
	first, second := r.dial(), r.dial()
	first.send("GET /1 HTTP/1.1\r\nHost: s\r\n\r\n")
	soon(t, "the service has the first", came)
	second.send("GET /2 HTTP/1.1\r\nHost: s\r\n\r\n")
	eventually(t, "the second waits", func() bool { return r.gate().Shed.Queued == 1 })
	a := r.get("/3")
	p := refusedBy(t, a, 503, "overloaded")
	if p["reason"] != "queue-full" || a.header.Get("Retry-After") == "" || a.header.Get("X-Should-Retry") != "" {
		t.Errorf("%v %v", p, a.header)
	}
	answer <- ok("one")
	if a := first.answer(); a.content != "one" {
		t.Errorf("the first got %+v", a)
	}
	soon(t, "the service has the second", came)
	answer <- ok("two")
	if a := second.answer(); a.content != "two" {
		t.Errorf("the second got %+v", a)
	}
	eventually(t, "the slots are free again", func() bool { return r.gate().Shed.InFlight == 0 })
	if n := len(up.seen()); n != 2 {
		t.Errorf("the service got %d requests, want 2", n)
	}
}

func TestAClientThatLeavesTheGatesQueueIsForgotten(t *testing.T) {
	up, came, answer := holding(t)
	r := protect(
		t, guardOf(up.url, "shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 10, queueInterval: 1m, queueTarget: 1m}"))
	first := r.dial()
	first.send("GET /1 HTTP/1.1\r\nHost: s\r\n\r\n")
	soon(t, "the service has the first", came)
	for _, way := range leaving {
		c := r.dial()
		c.send("GET /gone HTTP/1.1\r\nHost: s\r\n\r\n")
		eventually(t, "it waits", func() bool { return r.gate().Shed.Queued == 1 })
		way.leave(c)
		eventually(t, "one that "+way.name+" waits no more", func() bool { return r.gate().Shed.Queued == 0 })
	}
	answer <- ok("one")
	first.answer()
	eventually(t, "the slot is free", func() bool { return r.gate().Shed.InFlight == 0 })
	close(answer)
	if n := len(up.seen()); n != 1 {
		t.Errorf("the service got %d requests, want 1", n)
	}
}

func TestASlowBodyHoldsNoPlace(t *testing.T) {
	r := protect(t, guardOf(mirror(t).url, "shed: {concurrency: fixed, maxConcurrency: 1}"))
	slow := r.dial()
	slow.send("POST /slow HTTP/1.1\r\nHost: s\r\nContent-Length: 5\r\n\r\nhe")
	for range 3 { // the slow one may be read at any time before these are answered
		if a := r.get("/"); a.status != 200 {
			t.Fatalf("got %d %q while another client is slow", a.status, a.content)
		}
	}
	if a := slow.send("llo").answer(); a.status != 200 || !strings.HasSuffix(a.content, "\r\n\r\nhello") {
		t.Errorf("the slow one got %d %q", a.status, a.content)
	}
}

func TestStreamsAndTunnelsHoldNoPlace(t *testing.T) {
	for _, c := range []struct{ name, request, head string }{
		{"events", "GET / HTTP/1.1\r\nHost: s\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"upgrade", "GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := rawUpstream(t, func(nc net.Conn, n int) {
				req := make([]byte, 4096)
				nc.Read(req)
				if n == 1 {
					io.WriteString(nc, c.head)
					io.Copy(io.Discard, nc)
					return
				}
				io.WriteString(nc, ok("two"))
				nc.Read(req)
			})
			r := protect(t, guardOf(up.url, "shed: {concurrency: fixed, maxConcurrency: 1}"))
			first := r.dial()
			head, err := wellFormedHead(first.send(c.request).in)
			if err != nil {
				t.Fatal(head, err)
			}
			eventually(t, "its slot is free", func() bool { return r.gate().Shed.InFlight == 0 })
			if a := r.get("/"); a.content != "two" {
				t.Errorf("the second got %+v", a)
			}
			first.Close()
		})
	}
}

func TestIngressAnswersForAServiceThatIsNotThere(t *testing.T) {
	l := listen(t)
	url := "http://" + l.Addr().String()
	l.Close()
	a := protect(t, guardOf(url)).get("/")
	p := a.problem(t)
	if a.status != 502 || p.Reason != "upstream-error" || p.Service != "s" || strings.Contains(p.Detail, url[7:]) ||
		a.header.Get("X-Should-Retry") != "" {
		t.Errorf("%d %+v %v", a.status, p, a.header)
	}
}

func TestIngressKeepsItsOwnFieldsFromStrangers(t *testing.T) {
	up := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Envoy-Upstream-Service-Time: 7\r\nAbate-Hop: "+
			"1\r\nX-Other: 1\r\n\r\n")
	})
	for keys, want := range map[string]string{trustLoop: "7", "timeout: 1h": ""} {
		a := protect(t, guardOf(up.url, keys)).get("/")
		if a.header.Get("X-Envoy-Upstream-Service-Time") != want || a.header.Get("Abate-Hop") != "" && want == "" ||
			a.header.Get("X-Other") != "1" {
			t.Errorf("%s: %v", keys, a.header)
		}
	}
}

func TestIngressRoutesByHostAndPath(t *testing.T) {
	one := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("one")) })
	two := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("two")) })
	r := protect(t, fmt.Sprintf(`protect:
  one: {listen: "127.0.0.1:0", upstreams: ["%s"], routes: [{path: /one}]}
  two: {listen: "127.0.0.1:0", upstreams: ["%s"], routes: [{host: two.example}]}
`, one.url, two.url))
	c := r.dial()
	if a := c.get("/one/x"); a.content != "one" {
		t.Errorf("%+v", a)
	}
	if a := c.send("GET /x HTTP/1.1\r\nHost: two.example\r\n\r\n").answer(); a.content != "two" {
		t.Errorf("%+v", a)
	}
	if a := c.get("/x"); a.status != 404 || a.problem(t).Reason != "no-route" || strings.Contains(a.content, "one") {
		t.Errorf("%+v", a)
	}
}

func TestEgressAndIngressOfOneProcessMayMeet(t *testing.T) {
	up := mirror(t)
	r := protect(t, guardOf(up.url))
	inside := r.addr
	r.write(guardOf(up.url) + single([]string{"http://" + inside}, noRetries))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	if a := dial(t, l.Addr().String()).get("/"); a.status != 200 || !strings.Contains(a.content, "Via:") {
		t.Errorf("through both: %d %q", a.status, a.content)
	}
	r.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestIngressSeesALoop(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	r := protect(t, "protect:\n  s: {listen: \""+addr+"\", upstreams: [\"http://"+addr+"\"]}\n")
	if a := r.get("/"); a.status != 508 {
		t.Errorf("got %d %q, want 508", a.status, a.content)
	}
}
