package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy"
)

// A service may answer without having asked for the body, and take long over its content.
func TestNothingIsPutIntoAnAnswerWhoseRequestWaits(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := expected(t, func(c net.Conn, head string, in *bufio.Reader) {
		io.WriteString(c, okHead+"Content-Length: 10\r\n\r\nhello")
		wake := time.NewTimer(1500 * time.Millisecond) // longer than a service may think about the expectation
		<-wake.C
		io.WriteString(c, "world")
	})
	c := start(t, single([]string{s.url})).dial()
	if a := c.send(expecting(large)).answer(); a.content != "helloworld" || !a.close {
		t.Errorf("got %+v", a)
	}
	c.closed()
}

// A body that is held is waited for before the call begins, or, when the client asked, for the attempt's time at most.
func TestAHeldBodyIsNotWaitedForByTheCall(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	s := echo(t)
	r := start(t, single([]string{s.url}, "attemptTimeout: "+long.String(), counting,
		"bulkhead: {maxConcurrentCalls: 1, noQueue: true}"))
	slow := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 10\r\n\r\nabc").pause(short)
	if a := r.get("/"); a.status != 200 {
		t.Errorf("another request got %d %s", a.status, a.content)
	}
	if a := slow.send("defghij").answer(); a.status != 200 {
		t.Errorf("the slow one got %d %s", a.status, a.content)
	}
	asked := r.dial().send(expecting(10))
	asked.told()
	if a := asked.answer(); a.status != 408 {
		t.Errorf("the one that was asked got %d %s", a.status, a.content)
	}
	unharmed(t, r)
}

// A slow client must not use up the time of the service, and have it counted as failed.
func TestASlowBodyIsNotHeldAgainstTheService(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	for _, c := range []struct {
		name  string
		limit int
		out   wire
	}{{"held", 0, http1}, {"streamed", 5, http1}, {"streamed to h2c", 5, h2c}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it waits
			url := c.out.serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
			r := start(t, single([]string{url}, "attemptTimeout: "+long.String(), counting), stallTimeout(long+2*short),
				func(p *proxy.Config) {
					p.MaxBufferedBody = c.limit
				})
			conn := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 10\r\n\r\nabc")
			a := conn.answer()
			if a.status != 408 {
				t.Errorf("%d %s", a.status, a.content)
			}
			unharmed(t, r)
		})
	}
}

func TestHedgesOverHTTP2DoNotRace(t *testing.T) {
	var n atomic.Int32
	url := h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 1 {
			tick := time.NewTimer(2 * time.Millisecond)
			<-tick.C
		}
		io.WriteString(w, "ok")
	})
	r := start(t, single([]string{url}, "hedge: {delay: 1ms}", "retryBudget: {disabled: true}"))
	for _, in := range []wire{http1, h2c} {
		cl := in.client(t)
		for range 100 {
			resp, err := cl.Do(newRequest(t, "GET", "http://"+r.addr+"/", nil))
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
}

// HTTP/1.0 has nothing but the end of the connection to tell that an answer is complete.
func TestABrokenAnswerIsResetForHTTP10(t *testing.T) {
	s := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, okHead+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		c.Close()
	})
	c := start(t, single([]string{s.url}, noRetries)).dial()
	a, err := c.send("GET / HTTP/1.0\r\nHost: s.test\r\n\r\n").read("GET")
	if err == nil {
		t.Errorf("%q seems to be complete", a.content)
	}
}

// panicking is an observer that fails.
type panicking struct{ kind core.EventKind }

func (p panicking) Observe(e abate.Event) {
	if e.Kind == p.kind {
		panic("observer")
	}
}

// A panic of the policy's own random numbers ends the exchange; one of an observer is nobody's concern.
func TestAPanicGivesEverythingBack(t *testing.T) {
	for name, broken := range map[string]func(*abate.Policy){
		"observer at the begin": func(p *abate.Policy) { p.Observer = panicking{core.AttemptBegan} },
		"observer at the end":   func(p *abate.Policy) { p.Observer = panicking{core.AttemptEnded} },
		"random numbers":        func(p *abate.Policy) { p.Rand = func() uint64 { panic("dice") } },
	} {
		for _, in := range []wire{http1, h2c} {
			t.Run(in.name+" "+name, func(t *testing.T) {
				s := echo(t)
				r := start(t, single([]string{s.url}, "bulkhead: {maxConcurrentCalls: 1, noQueue: true}", "throttle: {k: 2}"),
					func(c *proxy.Config) {
						c.Adjust = func(_ string, p *abate.Policy) { broken(p) }
					})
				resp, err := in.client(t).Do(newRequest(t, "GET", "http://"+r.addr+"/", nil))
				if (err == nil) != strings.HasPrefix(name, "observer") {
					t.Errorf("%v", err)
				}
				if err == nil {
					resp.Body.Close()
				}
				eventually(t, "everything is given back", func() bool { return calm(r) })
				eventually(t, "no request is under way", func() bool {
					return strings.Contains(r.adminGet("/metrics"), "http_client_concurrent_requests{service=\"s\"} 0")
				})
			})
		}
	}
}

// A request that has come before the drain began is answered.
func TestADrainAnswersWhatHasCome(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}))
	const clients = 200
	conns := make([]*client, clients)
	for i := range conns {
		conns[i] = r.dial()
		conns[i].get("/")
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, c := range conns {
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
		}
		r.once.Do(func() { _ = r.proxy.Shutdown(ctx) })
	}()
	lost := 0
	for _, c := range conns {
		if _, err := c.read("GET"); err != nil {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d requests were lost", lost, clients)
	}
}

// gRPC calls have no end that can be foreseen, but the head of their answers has to come in time once the client has
// sent all.
func TestAGRPCServiceThatHangsHasTheAttemptsTime(t *testing.T) {
	url := h2c.serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r := start(t, single([]string{url}, noRetries, "attemptTimeout: "+short.String()))
	req, send := grpcRequest(t, r)
	send.Close()
	b := begin(t, h2c.client(t), req)
	if code := b.head().Header.Get("Grpc-Status"); code != "4" { // DEADLINE_EXCEEDED
		t.Errorf("status %q: %v", code, b.resp.Header)
	}
}

// A tunnel whose service has gone does not wait for its client for ever.
func TestATunnelDoesNotWaitForASilentClient(t *testing.T) {
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		c.CloseWrite()
		io.Copy(io.Discard, in)
	})
	r := start(t, single([]string{s.url}), stallTimeout(short))
	r.dial().send(askUpgrade).switched()
	eventually(t, "the tunnel ends", func() bool { return calm(r) && s.open() == 0 })
}

// Trailer fields of HTTP/2 are looked at like those of HTTP/1.1.
func TestTrailersOfHTTP2AreLookedAt(t *testing.T) {
	r := start(t, single([]string{h2c.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "a")
		flush(w)
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "a=b")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	})}))
	if a := r.get("/"); a.trailer.Get("X-Sum") != "1" || a.trailer.Get("Set-Cookie") != "" {
		t.Errorf("got %+v", a)
	}
}

// A reload that takes an upstream away must not fail the requests that still go there.
func TestAnUpstreamOfHTTP2ThatHasLeftServesItsLastRequests(t *testing.T) {
	for range 30 {
		came, goOn := make(chan struct{}, 1), make(chan struct{})
		bad := h2c.serve(t, func(w http.ResponseWriter, _ *http.Request) {
			came <- struct{}{}
			<-goOn
			w.WriteHeader(500)
		})
		good := h2c.serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "good") })
		r := start(t, single([]string{bad, good}, quickRetry, noBreaker))
		b := begin(t, http1.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
		select {
		case <-came:
		case b.resp = <-b.answer: // the good one was first
			b.resp.Body.Close()
			continue
		}
		r.write(single([]string{bad}, quickRetry, noBreaker))
		if err := r.proxy.Reload(); err != nil {
			t.Fatal(err)
		}
		r.guard() // looks at the fleet
		close(goOn)
		if status := b.head().StatusCode; status != 200 {
			t.Errorf("status %d", status)
		}
		return
	}
	t.Error("the bad upstream was never first")
}

// A connection whose request was cut off has taken a part of it: what came next would be taken for the rest.
func TestAConnectionThatTookAPartOfARequestIsNotUsedAgain(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	const size = 32 << 20
	goOn := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, n int) {
		in := bufio.NewReader(c)
		if head := readHead(in); strings.HasPrefix(head, "POST") {
			io.WriteString(c, "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno")
			<-goOn
			io.CopyN(io.Discard, in, size)
			readHead(in)
		}
		io.WriteString(c, ok("good"))
	})
	r := start(t, single([]string{s.url}, noRetries), stallTimeout(long), func(c *proxy.Config) {
		c.MaxBufferedBody = size
	})
	c := r.dial()
	go io.WriteString(c, "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: "+fmt.Sprint(
		size)+"\r\n\r\n"+strings.Repeat("a", size))
	if a := c.answer(); a.status != 413 {
		t.Errorf("got %+v", a)
	}
	close(goOn)
	c2 := r.dial()
	c2.SetDeadline(time.Now().Add(patience))
	if a, err := c2.send("GET /secret HTTP/1.1\r\nHost: s.test\r\n\r\n").read("GET"); err != nil || a.content != "good" {
		t.Errorf("the next request got %+v, %v", a, err)
	}
}

// A connection that waits does not keep the body of its last request.
func TestAnIdleConnectionHoldsNoBody(t *testing.T) {
	const clients, size = 300, 60_000
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("")) })
	r := start(t, single([]string{s.url}))
	conns := make([]*client, clients)
	for i := range conns {
		conns[i] = r.dial()
		conns[i].get("/")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	before := heap()
	body := strings.Repeat("a", size)
	for _, c := range conns {
		c.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: %d\r\n\r\n", size)).send(body).answer()
	}
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	if grown := (int64(heap()) - int64(before)) / clients; grown > 12<<10 {
		t.Errorf("%d bytes for each idle connection", grown)
	}
}

// What a client writes as long as it likes is not shown at that length.
func TestALongPathDoesNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	r := start(t, "services:\n  s: {upstreams: [\"http://elsewhere.test\"]}\n", func(c *proxy.Config) {
		c.AccessLog = slog.New(slog.NewJSONHandler(&log, nil))
	})
	c := r.dial()
	a := c.get("/" + strings.Repeat("a", 60_000))
	c.Close()
	r.shutdown()
	if a.status != 404 || len(a.content) > 2000 || log.Len() == 0 || log.Len() > 4000 {
		t.Errorf("%d, %d bytes; a line of %d", a.status, len(a.content), log.Len())
	}
}

// A client of HTTP/1.0 that stalls must not take what has come until then for the whole answer.
func TestAStalledClientOfHTTP10IsReset(t *testing.T) {
	for _, e := range endlessAnswers[1:] {
		s, ended := pouring(t, e.head, e.piece)
		r := start(t, single([]string{s.url}), stallTimeout(short))
		c := r.dial().send("GET / HTTP/1.0\r\nHost: s.test\r\n\r\n")
		wait(t, "the service is let go", ended)
		eventually(t, "everything is given back", func() bool { return calm(r) })
		if _, err := c.read("GET"); err == nil {
			t.Errorf("%s: the answer seems to be complete", e.name)
		}
	}
}
