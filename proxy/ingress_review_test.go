package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// Many servers make one name of X-Tenant and X_Tenant: CGI, WSGI and Rack among them.
func TestStrangersCannotSpellPrivilegedFieldsAnotherWay(t *testing.T) {
	names := []string{"X_Forwarded_For", "X-Forwarded_Proto", "X_Real_IP", "Abate_Priority", "x_envoy_retry_on",
		"X_Tenant", "X_Importance",
		"Grpc-Previous-Rpc-Attempts", "X-Number-Of-Retry-Attempts", "grpc_previous-rpc_attempts"}
	request := "GET / HTTP/1.1\r\nHost: s\r\nX_Custom: kept\r\n"
	for _, name := range names {
		request += name + ": 7\r\n"
	}
	up := mirror(t)
	for peer, kept := range map[string]bool{"192.0.2.1": false, "127.0.0.1": true} {
		r := protect(t, guardOf(up.url, "trustedPeers: ["+peer+"]", `caller: "header:X-Tenant"`,
			"priority: {header: X-Importance}"))
		a := r.dial().send(request + "\r\n").answer()
		for _, name := range names {
			if got := field(a.content, name); (got != "") != kept {
				t.Errorf("trusted %v: the service got %s %q", kept, name, got)
			}
		}
		if field(a.content, "X_Custom") != "kept" {
			t.Errorf("a field that is nobody's privilege is gone: %s", a.content)
		}
	}
}

func TestStrangersCannotSendPrivilegedFieldsAsTrailers(t *testing.T) {
	const request = "POST / HTTP/1.1\r\nHost: s\r\n%sTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Tenant: " +
		"acme\r\nX-Real-IP: 192.0.2.9\r\nX_Forwarded_For: 192.0.2.9\r\nX-Checksum: 1\r\n\r\n"
	up := mirror(t)
	for _, key := range []string{"", "Idempotency-Key: a\r\n"} {
		r := protect(t, guardOf(up.url, "trustedPeers: [192.0.2.1]", `caller: "header:X-Tenant"`, keys))
		a := r.dial().send(fmt.Sprintf(request, key)).answer()
		if a.status != 200 || !strings.Contains(a.content, "X-Checksum: 1") || strings.Contains(a.content, "acme") ||
			strings.Contains(a.content, "192.0.2.9") {
			t.Errorf("with %q the service got %q", key, a.content)
		}
	}
}

// %61 and a are the same (RFC 3986 §6.2.2.2), and so they are to the service.
func TestAnEscapedPathFindsTheSameEntrance(t *testing.T) {
	up := mirror(t)
	addr := vacant(t)
	r := protect(t, fmt.Sprintf("protect:\n"+
		"  open: {listen: %q, upstreams: [%q]}\n"+
		"  closed: {listen: %q, upstreams: [%q], routes: [{path: /admin}], rateLimit: {limit: 0/1s}}\n", addr, up.url,
		addr, up.url))
	for _, path := range []string{"/admin", "/admin/x", "/%61dmin", "/%61%64%6D%69%6e/x", "/x/../admin", "/x/%2e%2e/admin",
		"/x/%2E./admin", "//admin", "/admin?x=%2e"} {
		if a := r.get(path); a.status != 429 {
			t.Errorf("%s got %d %q", path, a.status, line(a.content))
		}
	}
	for _, path := range []string{
		"/", "/other", "/%6", "/%", "/%zz", "/admin%00", "/%2561dmin", "/a%20dmin", "/?x=/../admin",
	} {
		if a := r.get(path); a.status == 429 || a.status == 200 && line(a.content) != "GET "+path+" HTTP/1.1" {
			t.Errorf("%s got %d %q", path, a.status, line(a.content))
		}
	}
}

func TestNothingIsDoneForAClientThatLeftTheQueueAtItsEnd(t *testing.T) {
	up, came, answer := holding(t)
	t.Cleanup(func() { close(answer) })
	r := protect(
		t, guardOf(up.url, "shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 10, queueInterval: 1m, queueTarget: 1m}"))
	for range 3 {
		first, second := r.dial(), r.dial()
		first.send("GET /1 HTTP/1.1\r\nHost: s\r\n\r\n")
		soon(t, "the service has the first", came)
		second.send("GET /gone HTTP/1.1\r\nHost: s\r\n\r\n")
		eventually(t, "it waits", func() bool { return r.gate().Shed.Queued == 1 })
		second.Close()
		answer <- ok("one")
		first.answer()
		eventually(t, "the slot is free", func() bool { g := r.gate().Shed; return g.InFlight == 0 && g.Queued == 0 })
	}
	for _, req := range up.seen() {
		if line(req) != "GET /1 HTTP/1.1" {
			t.Errorf("the service did %q for nobody", line(req))
		}
	}
}

func TestIngressSaysWhatAClosedLimitIs(t *testing.T) {
	a := protect(t, guardOf(mirror(t).url, "rateLimit: {limit: 0/1s}")).get("/")
	if h := a.header; a.status != 429 || h.Get("RateLimit") != `"default";r=0` || h["X-Ratelimit-Reset"] != nil ||
		h.Get("X-RateLimit-Limit") != "0" || h.Get("Retry-After") != "" {
		t.Errorf("%d %v", a.status, h)
	}
}

func TestTheNearestHopSaysThePriority(t *testing.T) {
	c := protect(t, guardOf(mirror(t).url, trustLoop)).dial()
	for nearest, want := range map[string]string{"SHEDDABLE": "SHEDDABLE", "nonsense": "CRITICAL"} {
		a := c.send("GET / HTTP/1.1\r\nHost: s\r\nAbate-Priority: CRITICAL_PLUS\r\nAbate-Priority: " + nearest +
			"\r\n\r\n").answer()
		if got := field(a.content, "Abate-Priority"); got != want {
			t.Errorf("the nearest hop said %s, the service hears %s", nearest, got)
		}
	}
}

func TestOneFieldSaysNotToTryAgain(t *testing.T) {
	up := upstream(t, func(c net.Conn, req string) {
		said := ""
		if line(req) == "GET /said HTTP/1.1" {
			said = "X-Should-Retry: false\r\n"
		}
		io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\n"+said+"Content-Length: 0\r\n\r\n")
	})
	c := protect(t, guardOf(up.url, trustLoop)).dial()
	ask := func(path string) int {
		a := c.send("GET " + path + " HTTP/1.1\r\nHost: s\r\nX-Envoy-Attempt-Count: 3\r\n\r\n").answer()
		return len(a.header["X-Should-Retry"])
	}
	eventually(t, "the gate says so", func() bool { return ask("/") == 1 })
	if n := ask("/said"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}

func TestAReloadWithoutShedLetsThoseWhoWaitIn(t *testing.T) {
	up, came, answer := holding(t)
	t.Cleanup(func() { close(answer) })
	with := func(shed string) string {
		return guardOf(up.url, shed)
	}
	r := protect(
		t, with("shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 10, queueInterval: 1m, queueTarget: 1m}"))
	first, second := r.dial(), r.dial()
	first.send("GET /1 HTTP/1.1\r\nHost: s\r\n\r\n")
	soon(t, "the service has the first", came)
	second.send("GET /2 HTTP/1.1\r\nHost: s\r\n\r\n")
	eventually(t, "it waits", func() bool { return r.gate().Shed.Queued == 1 })
	r.write(with(noShed))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	third := r.dial()
	third.send("GET /3 HTTP/1.1\r\nHost: s\r\n\r\n")
	soon(t, "a new one gets in", came)
	answer <- ok("x")
	answer <- ok("x")
	soon(t, "the second gets in", came)
	answer <- ok("x")
	for _, c := range []*client{first, second, third} {
		if a := c.answer(); a.status != 200 {
			t.Errorf("%+v", a)
		}
	}
}

func TestAnAddressMayBecomeAWiderOneAtOnce(t *testing.T) {
	up := echo(t)
	first := vacant(t)
	var log lockedBuffer
	r := protect(t, entrances(up.url, first), logTo(&log))
	_, port, _ := net.SplitHostPort(first)
	for _, next := range []string{"0.0.0.0:" + port, first} {
		r.write(entrances(up.url, next))
		if err := r.proxy.Reload(); err != nil {
			t.Fatal(err)
		}
		if a := dial(t, first).get("/"); a.status != 200 {
			t.Errorf("%+v", a)
		}
	}
	if strings.Contains(log.String(), "not in force") {
		t.Errorf("a false alarm:\n%s", log.String())
	}
}

func TestAReplayAnnouncesNoTrailer(t *testing.T) {
	up := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
	})
	c := protect(t, guardOf(up.url, keys)).dial()
	c.send(post("a", "")).answer()
	c.send(post("a", "")) // net/http would hide the field
	if head, err := wellFormedHead(c.in); err != nil || field(head, "Trailer") != "" ||
		field(head, "Idempotency-Replayed") != "true" {
		t.Errorf("%q %v", head, err)
	}
}
