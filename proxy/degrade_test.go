package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

const staticFallback = `fallback: {status: 203, body: '{"degraded":true}'}`

func TestAFailureGetsTheStaticFallback(t *testing.T) {
	l := listen(t)
	dead := "http://" + l.Addr().String()
	l.Close()
	silent := upstream(t, func(net.Conn, string) {})
	for _, tt := range []struct {
		name, url string
		keys      []string
	}{
		{"nobody listens", dead, nil},
		{"a status", inTurn(t, status(503)).url, []string{noRetries}},
		{"a status after retries", inTurn(t, status(500)).url, []string{"maxRetries: 2"}},
		{"no time left", silent.url, []string{"attemptTimeout: 20ms", "maxRetries: 1"}},
		{"the circuit is open", dead, []string{"circuitBreaker: {mode: forcedOpen}"}},
		{"the budget is empty", inTurn(t, status(503)).url, []string{"retryBudget: {ratio: 0.0001, reserve: 0}"}},
		{"no HTTP", rawUpstream(t, func(c net.Conn, _ int) { io.WriteString(c, "hello\r\n\r\n") }).url, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, single([]string{tt.url}, append(tt.keys, quickRetry, staticFallback)...))
			c := r.dial()
			a := c.get("/")
			if a.status != 203 || a.content != `{"degraded":true}` || a.header.Get("Content-Type") != "application/json" ||
				a.header.Get("Abate-Fallback") != "true" {
				t.Errorf("got %+v", a)
			}
			for _, name := range []string{
				"Abate-Reason", "X-Should-Retry", "Retry-After", "Content-Encoding", "Transfer-Encoding",
			} {
				if v := a.header.Get(name); v != "" {
					t.Errorf("%s: %q", name, v)
				}
			}
			if a, err := c.send("HEAD / HTTP/1.1\r\nHost: s.test\r\n\r\n").read("HEAD"); err != nil || a.status != 203 ||
				a.content != "" || a.header.Get("Content-Length") != "17" {
				t.Errorf("HEAD got %+v, %v", a, err)
			}
			c.get("/") // the connection is still good
			if m := r.adminGet("/metrics"); !strings.Contains(m, `abate_fallbacks_total{service="s"} 3`) {
				t.Errorf("metrics: %s", grep(m, "fallback"))
			}
		})
	}
}

func TestWhatIsNoFailureGetsNoFallback(t *testing.T) {
	for _, tt := range []struct{ name, answer, fallback, want string }{
		{"an answer", ok("good"), staticFallback, "200 good"},
		{"the client's mistake", status(404), staticFallback, "404 "},
		{"switched off", status(503), `fallback: {disabled: true, status: 203, body: x}`, "503 "},
		{"none", status(503), "", "503 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, single([]string{inTurn(t, tt.answer).url}, noRetries, tt.fallback))
			if a := r.get("/"); fmt.Sprint(a.status, " ", a.content) != tt.want || a.header.Get("Abate-Fallback") != "" {
				t.Errorf("got %+v, want %s", a, tt.want)
			}
		})
	}
}

func TestTheFallbackReachesClientsOfHTTP2(t *testing.T) {
	r := start(t, single([]string{inTurn(t, status(503)).url}, noRetries,
		`fallback: {status: 200, body: sorry, contentType: text/plain}`))
	b := begin(t, h2c.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
	b.head()
	b.rest("sorry")
	if h := b.resp.Header; b.resp.StatusCode != 200 || h.Get("Content-Type") != "text/plain" ||
		h.Get("Abate-Fallback") != "true" || h.Get("Content-Length") != "5" {
		t.Errorf("got %s %v", b.resp.Status, h)
	}
}

// shop is an upstream that can be switched off. Its content tells which request it answered.
type shop struct {
	*server
	down atomic.Bool
	n    atomic.Int32
}

func newShop(t *testing.T) *shop {
	s := new(shop)
	s.server = upstream(t, func(c net.Conn, req string) {
		if s.down.Load() {
			io.WriteString(c, status(503, "X-From: service"))
			return
		}
		content := fmt.Sprint("answer ", s.n.Add(1))
		switch target := strings.Fields(req)[1]; {
		case strings.HasPrefix(target, "/chunked"):
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(content), content)
		case strings.HasPrefix(target, "/mine"):
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nSet-Cookie: me=1\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
		case strings.HasPrefix(target, "/large"):
			content = strings.Repeat("x", 2<<20)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
		case strings.HasPrefix(target, "/private"):
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
		case strings.HasPrefix(target, "/404"):
			fmt.Fprintf(c, "HTTP/1.1 404 None\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
		case strings.HasPrefix(target, "/vary"):
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nVary: X-Lang\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
		default:
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Kept: yes\r\nContent-Type: text/x\r\nContent-Length: %d\r\n\r\n%s",
				len(content), content)
		}
	})
	return s
}

func (r *running) ask(method, target string, fields ...string) reply {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	a, err := c.send(method + " " + target + " HTTP/1.1\r\nHost: s.test\r\n" + strings.Join(append(fields, ""), "\r\n") +
		"\r\n").read(method)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func TestTheLastGoodAnswerIsGivenInsteadOfAnError(t *testing.T) {
	s := newShop(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker,
		"fallback: {staleIfError: 1m, shared: true, status: 203, body: sorry}"))
	for _, path := range []string{"/a", "/chunked"} {
		s.down.Store(false)
		good := r.ask("GET", path)
		if good.status != 200 || good.header.Get("Abate-Fallback") != "" {
			t.Fatalf("got %+v", good)
		}
		s.down.Store(true)
		for range 2 {
			a := r.ask("GET", path)
			if a.status != 200 || a.content != good.content || a.header.Get("Abate-Fallback") != "stale" ||
				a.header.Get("X-From") != "" {
				t.Errorf("%s: got %+v, want what was in %+v", path, a, good)
			}
			if age, err := strconv.Atoi(a.header.Get("Age")); err != nil || age < 0 || age > 60 {
				t.Errorf("%s: Age %q", path, a.header.Get("Age"))
			}
			if path == "/a" && (a.header.Get("X-Kept") != "yes" || a.header.Get("Content-Type") != "text/x") {
				t.Errorf("%s: header %v", path, a.header)
			}
		}
	}
	if a := r.ask("HEAD", "/a"); a.status != 200 || a.header.Get("Abate-Fallback") != "stale" ||
		a.header.Get("Content-Length") != "8" {
		t.Errorf("HEAD got %+v", a)
	}
	b := begin(t, h2c.client(t), newRequest(t, "GET", "http://"+r.addr+"/h2", nil)) // another path, and another host
	b.head()
	b.rest("sorry")
}

func TestTheLastGoodAnswerIsOneToTheSameRequest(t *testing.T) {
	for _, tt := range []struct{ name, first, then string }{
		{"another path", "GET /a", "GET /b"},
		{"another query", "GET /a?x=1", "GET /a?x=2"},
		{"a query more", "GET /a", "GET /a?"},
		{"another method", "GET /a", "POST /a"},
		{"after another method", "POST /a", "GET /a"},
		{"after HEAD", "HEAD /a", "GET /a"},
		{"who asks is told", "GET /a", "GET /a\r\nAuthorization: Bearer me"},
		{"who asked was told", "GET /a\r\nAuthorization: Bearer me", "GET /a"},
		{"both were told", "GET /a\r\nAuthorization: Bearer me", "GET /a\r\nAuthorization: Bearer me"},
		{"a cookie", "GET /a\r\nCookie: me=1", "GET /a\r\nCookie: me=1"},
		{"a part", "GET /a", "GET /a\r\nRange: bytes=0-1"},
		{"an answer for one client", "GET /mine", "GET /mine"},
		{"a private answer", "GET /private", "GET /private"},
		{"no good answer", "GET /404", "GET /404"},
		{"a large answer", "GET /large", "GET /large"},
		{"an answer that varies", "GET /vary\r\nX-Lang: de", "GET /vary\r\nX-Lang: fr"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t)
			r := start(t, single([]string{s.url}, noRetries, noBreaker, "fallback: {staleIfError: 1m, shared: true}"),
				func(c *proxy.Config) {
					c.StaleMemory = 1 << 20
				})
			ask := func(what string) reply {
				head, field, _ := strings.Cut(what, "\r\n")
				method, target, _ := strings.Cut(head, " ")
				return r.ask(method, target, strings.Fields("X-A:b "+strings.ReplaceAll(field, " ", ""))...)
			}
			ask(tt.first)
			s.down.Store(true)
			if a := ask(tt.then); a.status != 503 || a.header.Get("X-From") != "service" ||
				a.header.Get("Abate-Fallback") != "" {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestAnOldAnswerIsNotGiven(t *testing.T) {
	s := newShop(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker, "fallback: {staleIfError: 50ms, shared: true}"))
	r.ask("GET", "/a")
	s.down.Store(true)
	eventually(t, "it is too old", func() bool { return r.ask("GET", "/a").status == 503 })
}

// TestAnAnswerThatBrokeOffIsNotKept: half an answer is no good answer.
func TestAnAnswerThatBrokeOffIsNotKept(t *testing.T) {
	var n atomic.Int32
	s := rawUpstream(t, func(c net.Conn, _ int) {
		buf := make([]byte, 4096)
		_, _ = c.Read(buf)
		switch n.Add(1) {
		case 1:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		case 2:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
		default:
			io.WriteString(c, status(503))
		}
	})
	r := start(t, single([]string{s.url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m, shared: true}"))
	for range 2 {
		c := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
		if a, err := c.read("GET"); err == nil {
			t.Errorf("it looks complete: %+v", a)
		}
	}
	if a := r.get("/"); a.status != 503 {
		t.Errorf("got %+v", a)
	}
}

// TestALongGoodAnswerIsKeptWhileItPasses: what is kept goes to the client piece by piece all the same.
func TestALongGoodAnswerIsKeptWhileItPasses(t *testing.T) {
	body := strings.Repeat("0123456789abcde\n", 20_000)
	s := inTurn(t, ok(body), status(503))
	r := start(t, single([]string{s.url}, noRetries, noBreaker, "fallback: {staleIfError: 1m, shared: true}"))
	for i := range 3 {
		if a := r.get("/"); a.status != 200 || a.content != body || (a.header.Get("Abate-Fallback") == "stale") != (i > 0) {
			t.Errorf("request %d: got %d with %d bytes, %v", i, a.status, len(a.content), a.header)
		}
	}
}

// TestAnsweringFromMemoryIsQuickWhenTheCircuitIsOpen: the service is not asked at all.
func TestAnsweringFromMemoryWhenTheCircuitIsOpen(t *testing.T) {
	s := newShop(t)
	r := start(t, single([]string{s.url}, noRetries, "fallback: {staleIfError: 1m, shared: true}",
		"circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 1h}"))
	r.ask("GET", "/a")
	s.down.Store(true)
	for range 5 {
		if a := r.ask("GET", "/a"); a.content != "answer 1" || a.header.Get("Abate-Fallback") != "stale" {
			t.Errorf("got %+v", a)
		}
	}
	if n := len(s.seen()); n != 3 {
		t.Errorf("the service was asked %d times, want 3", n)
	}
	if g := r.guard(); g.Breaker.State != "open" {
		t.Errorf("the breaker is %s", g.Breaker.State)
	}
}

func TestTheAgeOfAnAnswerGrows(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	s := newShop(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker, "fallback: {staleIfError: 1m, shared: true}"))
	before := time.Now()
	r.ask("GET", "/a")
	after := time.Now()
	s.down.Store(true)
	var age int
	var asked time.Time
	eventually(t, "a second old", func() bool {
		asked = time.Now()
		age, _ = strconv.Atoi(r.ask("GET", "/a").header.Get("Age"))
		return age > 0
	})
	if least, most := int(asked.Sub(after).Seconds()), int(time.Since(before).Seconds()); age < least || age > most {
		t.Errorf("it says %d s and is between %d and %d", age, least, most)
	}
}

// tenants is an upstream whose answers are each caller's own, and that can be switched off. cache is its Cache-Control.
func tenants(t *testing.T, cache string) (url string, down *atomic.Bool) {
	down = new(atomic.Bool)
	return upstream(t, func(c net.Conn, req string) {
		if down.Load() {
			io.WriteString(c, status(503))
			return
		}
		whose := field(req, "X-Tenant") + field(req, "X-User-Id") + field(req, "X-Shop")
		extra := ""
		if cache != "" {
			extra = "Cache-Control: " + cache + "\r\n"
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", extra, len(whose), whose)
	}).url, down
}

// TestStaleIfErrorGivesNoTenantsAnswerToAnother: the key covers every header that the policy names as identity, and
// those that usually tell whose a request is.
func TestStaleIfErrorGivesNoTenantsAnswerToAnother(t *testing.T) {
	const gates = "protect:\n  own: {listen: '127.0.0.1:0', upstreams: ['http://127.0.0.1:1'], trustedPeers: " +
		"[127.0.0.1], caller: 'header:X-Shop'}\n"
	for _, tt := range []struct{ name, cache, keys, header, more string }{
		{"a header that usually tells it", "", "shared: true", "X-Tenant", ""},
		{"another", "public, max-age=5, stale-if-error=60", "shared: false", "X-User-Id", ""},
		{"one that the policy names", "", "shared: true, identity: [x-shop]", "X-Shop", ""},
		{"the caller of a gate", "", "shared: true", "X-Shop", gates},
		{"with hedges", "", "shared: true", "X-Tenant", "hedged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, down := tenants(t, tt.cache)
			keys := []string{noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m, " + tt.keys + "}"}
			if tt.more == "hedged" {
				keys, tt.more = append(keys, "hedge: {delay: 1ms}"), ""
			}
			r := start(t, single([]string{url}, keys...)+tt.more)
			ask := func(whose string) reply { return r.ask("GET", "/orders", tt.header+": "+whose) }
			if a := ask("A"); a.content != "A" {
				t.Fatalf("got %+v", a)
			}
			down.Store(true)
			if a := ask("B"); a.content != "" || a.status != 503 {
				t.Errorf("B got %d %q", a.status, a.content)
			}
			if a := r.ask("GET", "/orders"); a.status != 503 {
				t.Errorf("nobody got %d %q", a.status, a.content)
			}
			if a := ask("A"); a.status != 200 || a.content != "A" || a.header.Get("Abate-Fallback") != "stale" {
				t.Errorf("A got %+v", a)
			}
		})
	}
}

// TestWhatIsNotKnownToBeSharedIsNotKept: an answer that says nothing may be one client's.
func TestWhatIsNotKnownToBeSharedIsNotKept(t *testing.T) {
	for _, tt := range []struct {
		cache, keys, ask string
		kept             bool
	}{
		{"", "", "", false}, {"max-age=60", "", "", false}, {"public", "", "", true}, {"s-maxage=60", "", "", true},
		{"", ", shared: true", "", true},
		{"private", ", shared: true", "", false}, {"no-store", ", shared: true", "", false},
		{"public, private", "", "", false}, {"public", "", "Cookie: a=b", false},
		{"public", "", "Authorization: Bearer x", false},
		{"public", ", identity: [X-Tenant]", "Authorization: Bearer x", false},
		{"public", ", identity: [Authorization]", "Authorization: Bearer x", true},
		{"", ", shared: true, identity: [cookie]", "Cookie: a=b", true}, {"", ", identity: [X-Shop]", "X-Shop: me", false},
	} {
		t.Run(fmt.Sprint(tt.cache, tt.keys, tt.ask), func(t *testing.T) {
			url, down := tenants(t, tt.cache)
			r := start(t, single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m"+tt.keys+"}"))
			ask := func() reply { return r.ask("GET", "/", strings.Fields(strings.ReplaceAll(tt.ask, " ", ""))...) }
			ask()
			down.Store(true)
			if a := ask(); (a.status == 200) != tt.kept {
				t.Errorf("got %+v, want it kept: %v", a, tt.kept)
			}
		})
	}
}
