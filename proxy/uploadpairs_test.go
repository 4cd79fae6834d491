package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// wary opens its circuit after one failure or one slow call.
func wary(limit time.Duration) []string {
	return []string{noRetries, noEjection, fmt.Sprintf("attemptTimeout: %v", limit), fmt.Sprintf(
		"circuitBreaker: {failureThreshold: 1, slowCallDurationThreshold: %v, slowCallRateThreshold: 0.01, "+
			"minimumNumberOfCalls: 1, waitDurationInOpenState: 1m}", limit)}
}

// unhurt reports what the breaker of a wary service has against it.
func unhurt(r *running) error {
	if b := r.guard().Breaker; b.State != "closed" || b.Openings != 0 {
		return fmt.Errorf("the breaker is %s after %d openings", b.State, b.Openings)
	}
	return nil
}

// The end of a gRPC stream comes alone, as gRPC has it: it is what the service was handed last.
func TestTheEndOfAStreamIsWhatTheServiceHasLast(t *testing.T) {
	t.Parallel() // it waits
	s := serveGRPC(t, func(c *rpc) error {
		for {
			if _, err := c.receive(); errors.Is(err, io.EOF) {
				return c.send("all")
			} else if err != nil {
				return err
			}
		}
	})
	withLimits(t, func(limit time.Duration) error {
		r := start(t, single([]string{s.url}, wary(limit)...))
		c := converse(t, dialGRPC(t, r.addr), "/a.B/Upload").say("a")
		pause := time.NewTimer(limit * 3 / 2)
		<-pause.C
		if err := c.CloseSend(); err != nil {
			return err
		}
		var got []byte
		if err := c.RecvMsg(&got); err != nil || string(got) != "all" {
			return fmt.Errorf("%q, %v", got, err)
		}
		_ = c.RecvMsg(&got)
		return unhurt(r)
	})
}

// prompt has an answer begin at once, and end when the request has.
func prompt(t *testing.T, out wire) string {
	if out.name == h2c.name {
		return h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			if n, err := io.Copy(io.Discard, r.Body); err == nil {
				fmt.Fprint(w, n)
			}
		})
	}
	return rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.WriteString(c, okHead+"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
		if n, err := io.Copy(io.Discard, req.Body); err == nil {
			fmt.Fprintf(c, "1\r\n%d\r\n0\r\n\r\n", n)
		}
	}).url
}

const inChunks = "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

// A service that answers before it has all of the request waits for the client behind the head of its answer too.
func TestASlowUploadBehindAnEarlyAnswerIsNotASlowService(t *testing.T) {
	t.Parallel() // it waits
	for _, out := range []wire{http1, h2c} {
		url := prompt(t, out)
		withLimits(t, func(limit time.Duration) error {
			r := start(t, single([]string{url}, wary(limit)...))
			conn := r.dial().send(inChunks)
			pause := time.NewTimer(limit * 3 / 2)
			<-pause.C
			io.WriteString(conn, "3\r\nabc\r\n0\r\n\r\n")
			if a, err := conn.read("POST"); err != nil || a.content != "first6" {
				return fmt.Errorf("%s: %+v, %v", out.name, a, err)
			}
			return unhurt(r)
		})
	}
}

// What a client does to its own upload does not count against a service whose answer has begun.
func TestAClientThatBreaksItsUploadBehindAnEarlyAnswerIsNotTheServicesFailure(t *testing.T) {
	for _, out := range []wire{http1, h2c} {
		url := prompt(t, out)
		for name, spoil := range map[string]func(*client){
			"no chunk": func(c *client) { c.send("no chunk\r\n") },
			"its end":  func(c *client) { c.CloseWrite() },
		} {
			r := start(t, single([]string{url}, wary(patience)...))
			conn := r.dial().send(inChunks)
			if _, err := conn.in.Peek(1); err != nil {
				t.Fatal(err)
			}
			spoil(conn)
			if a, err := conn.read("POST"); err == nil {
				t.Errorf("%s, %s: the answer seems to be whole: %+v", out.name, name, a)
			}
			eventually(t, "it is over", func() bool { return calm(r) })
			if err := unhurt(r); err != nil {
				t.Errorf("%s, %s: %v", out.name, name, err)
			}
		}
	}
}

// A service that does not know Expect waits for the body, and the proxy not for longer than the attempt lasts. Limits
// are shorter than the second that a service may take to think about the word.
func TestAnExpectationEndsBeforeTheAttempt(t *testing.T) {
	t.Parallel() // it waits
	s := expected(t, func(c net.Conn, head string, in *bufio.Reader) { take(c, in, large) })
	play := func(limit time.Duration) error {
		r := start(t, single([]string{s.url}, wary(limit)...))
		conn := r.dial().send(expecting(large))
		if a, err := conn.read("POST"); err != nil || a.status != 100 {
			return fmt.Errorf("first: %+v, %v", a, err)
		}
		conn.send(strings.Repeat("x", large))
		if a, err := conn.read("POST"); err != nil || a.content != fmt.Sprint(large) {
			return fmt.Errorf("%+v, %v", a, err)
		}
		return unhurt(r)
	}
	var err error
	for _, limit := range []time.Duration{400 * time.Millisecond, 800 * time.Millisecond, 900 * time.Millisecond} {
		for range 3 { // the machine may be busy
			if err = play(limit); err == nil {
				return
			}
			t.Logf("with a limit of %v: %v", limit, err)
		}
	}
	t.Error(err)
}

// A key is held from when its request is there: half a body holds none, and a client that leaves halfway leaves none.
func TestHalfABodyHoldsNoKey(t *testing.T) {
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		up := numbering(t, "")
		r := protect(t, guardOf(up.url, keys))
		whole := strings.Replace(post("k", "one"), "Host: s\r\n", "Host: s\r\n"+expect, 1)
		half := whole[:len(whole)-1]
		begin := func() *client {
			c := r.dial().send(half)
			if expect != "" {
				c.told()
			}
			return c
		}
		slow, leaves := begin(), begin()
		if a := r.dial().send(post("k", "one")).answer(); a.content != "order 1" {
			t.Errorf("while two send: %+v", a)
		}
		leaves.Close()
		if a := slow.send("e").answer(); a.content != "order 1" || a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the slow one: %+v", a)
		}
		if a := slow.send(post("k", "one")).answer(); a.content != "order 1" {
			t.Errorf("again: %+v", a)
		}
	}
}

// A client that leaves in the middle of its upload lets in who waits for its place.
func TestAnUploadThatIsGivenUpLetsTheNextOneIn(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker, noRetries, "bulkhead: {maxConcurrentCalls: 1, maxWait: 1h}"))
	first := r.dial().send(inChunks)
	eventually(t, "it is in", func() bool { return r.guard().Bulkhead.Running == 1 })
	next := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	eventually(t, "the next waits", func() bool { return r.guard().Bulkhead.Queued == 1 })
	first.Close()
	if a := next.answer(); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

// What is left of a body that nobody read is no request, however it looks.
func TestTheRestOfAnUploadBehindAnEarlyAnswerIsNoRequest(t *testing.T) {
	for _, closes := range []bool{true, false} {
		s := early(t, closes)
		r := start(t, single([]string{s.url}, noBreaker, noRetries), func(c *proxy.Config) { c.MaxBufferedBody = -1 })
		conn := r.dial().send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: %d\r\n\r\n", 2*len(smuggled)))
		if a := conn.answer(); a.status != 413 || !a.close {
			t.Errorf("%+v", a)
		}
		io.WriteString(conn, smuggled+smuggled+smuggled) // it may be closed by now
		if rest, _ := io.ReadAll(conn.in); len(rest) > 0 {
			t.Errorf("%q came behind the answer", rest)
		}
	}
}
