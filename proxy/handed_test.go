package proxy_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// A slow client is no slow service: neither the attempt's time nor the breaker's clock runs while it is waited for.
func TestASlowUploadIsNotASlowService(t *testing.T) {
	t.Parallel() // it waits
	s := echo(t)
	r := start(t, single([]string{s.url}, noRetries, noEjection, "attemptTimeout: 1s",
		"circuitBreaker: {slowCallDurationThreshold: 1s, slowCallRateThreshold: 0.5, minimumNumberOfCalls: 2, "+
			"failureThreshold: 2, waitDurationInOpenState: 1m}"))
	conns := make([]*client, 4)
	for i := range conns {
		conns[i] = r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 400000\r\n\r\n")
	}
	piece := strings.Repeat("x", 100_000)
	for range 4 { // each pause is short, all together are not
		conns[0].pause(400 * time.Millisecond)
		for _, conn := range conns {
			conn.send(piece)
		}
	}
	for _, conn := range conns {
		if a := conn.answer(); a.status != 200 {
			t.Errorf("%d %s", a.status, a.content)
		}
	}
	if b := r.guard().Breaker; b.State != "closed" || b.Openings != 0 {
		t.Errorf("the breaker is %s after %d openings", b.State, b.Openings)
	}
}

// The same of a client that has not announced how much it sends, and pauses for longer than an attempt may take.
func TestASlowUploadOfUnknownLengthIsNotASlowService(t *testing.T) {
	t.Parallel() // it waits
	r := start(t, single([]string{echo(t).url}, noRetries, noEjection, "attemptTimeout: 1s",
		"circuitBreaker: {slowCallDurationThreshold: 1s, slowCallRateThreshold: 0.5, minimumNumberOfCalls: 2, "+
			"failureThreshold: 1, waitDurationInOpenState: 1m}"))
	conns := make([]*client, 4)
	for i := range conns {
		conns[i] = r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
	}
	conns[0].pause(1500 * time.Millisecond)
	for _, conn := range conns {
		conn.send("0\r\n\r\n")
		if a := conn.answer(); a.status != 200 {
			t.Errorf("%d %s", a.status, a.content)
		}
	}
	if b := r.guard().Breaker; b.State != "closed" || b.Openings != 0 {
		t.Errorf("the breaker is %s after %d openings", b.State, b.Openings)
	}
}

// Under the default policy too, with slow and quick uploads in any order.
func TestSlowAndQuickUploadsToAHealthyServiceAreAllAnswered(t *testing.T) {
	t.Parallel() // it waits
	r := start(t, single([]string{echo(t).url}, "attemptTimeout: 1s"))
	rnd := rand.New(rand.NewPCG(21, 18))
	quick := r.dial()
	conns := make([]*client, 30)
	for i := range conns {
		conns[i] = r.dial()
		conns[i].send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 300000\r\n\r\n")
	}
	sent, piece := make([]int, len(conns)), strings.Repeat("x", 100_000)
	for left := len(conns); left > 0; {
		quick.pause(15 * time.Millisecond) // more than a hundred times
		quick.send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 3\r\n\r\nabc")
		if a := quick.answer(); a.status != 200 {
			t.Fatalf("a quick one: %d %s", a.status, a.content)
		}
		i := rnd.IntN(len(conns))
		if sent[i] == 3 {
			continue
		}
		sent[i]++
		conns[i].send(piece)
		if sent[i] == 3 {
			left--
		}
	}
	for i, conn := range conns {
		if a := conn.answer(); a.status != 200 {
			t.Errorf("slow upload %d: %d %s", i, a.status, a.content)
		}
	}
	if b := r.guard().Breaker; b.State != "closed" || b.Openings != 0 {
		t.Errorf("the breaker is %s after %d openings", b.State, b.Openings)
	}
}

// A service that hangs when it has all of an upload is found out, whatever its client took to send it.
func TestAServiceThatHangsAfterSlowUploadsIsFoundOut(t *testing.T) {
	t.Parallel() // it waits
	closed := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		go io.Copy(io.Discard, c)
		<-closed
	})
	t.Cleanup(func() { close(closed) }) // before the service waits for those that it serves
	r := start(t, single([]string{s.url}, noRetries, noEjection, "attemptTimeout: 200ms",
		"circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1m}"))
	conns := make([]*client, 2)
	for i := range conns {
		conns[i] = r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 100003\r\n\r\nabc")
	}
	conns[0].pause(500 * time.Millisecond)
	if b := r.guard().Breaker; b.State != "closed" {
		t.Errorf("while the clients send the breaker is %s", b.State)
	}
	for i, conn := range conns {
		conn.send(strings.Repeat("x", 100_000))
		if a := conn.answer(); a.status != 504 {
			t.Errorf("upload %d: %d %s", i, a.status, a.content)
		}
	}
	if b := r.guard().Breaker; b.State != "open" {
		t.Errorf("the breaker is %s", b.State)
	}
}

// A service that stops to read is found out, although its client is not done.
func TestAServiceThatDoesNotReadIsFoundOut(t *testing.T) {
	t.Parallel() // it waits
	closed := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		io.ReadFull(c, make([]byte, 1000))
		<-closed
	})
	t.Cleanup(func() { close(closed) }) // before the service waits for those that it serves
	r := start(t, single([]string{s.url}, noRetries, noEjection, "attemptTimeout: 300ms",
		"circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1m}"))
	for i := range 3 {
		conn := r.dial()
		conn.send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 100000000\r\n\r\n")
		go io.Copy(conn, io.LimitReader(zeros{}, 64<<20))
		want := 504
		if i == 2 {
			want = 503
		}
		if a := conn.answer(); a.status != want {
			t.Errorf("upload %d: %d %s", i, a.status, a.content)
		}
		conn.Close()
	}
	if b := r.guard().Breaker; b.State != "open" {
		t.Errorf("the breaker is %s", b.State)
	}
}

// A stream of gRPC whose own time is up has not broken off: how long a client wants it says nothing about the service.
// One that the service breaks off has.
func TestAStreamThatOutlivesItsTimeIsNoFailure(t *testing.T) {
	s := serveGRPC(t, func(c *rpc) error {
		if c.method == "/a.B/Idle" { // a subscription without news
			_ = c.SendHeader(nil)
		} else if err := c.send("first"); err != nil {
			return err
		}
		if c.method == "/a.B/Breaks" {
			return grpcstatus.Error(codes.Unavailable, "gone")
		}
		<-c.Context().Done()
		return context.Cause(c.Context())
	})
	for _, tt := range []struct {
		method string
		state  string
	}{{"/a.B/Watch", "closed"}, {"/a.B/Idle", "closed"}, {"/a.B/Breaks", "open"}} {
		r := start(t, single([]string{s.url}, noRetries, noEjection,
			"circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 1m}"))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		c := converseIn(ctx, t, dialGRPC(t, r.addr), tt.method)
		var err error
		for err == nil {
			err = c.RecvMsg(new([]byte))
		}
		cancel()
		eventually(t, tt.method+" is over", func() bool { return r.guard().Endpoints[0].Pending == 0 })
		if b := r.guard().Breaker; b.State != tt.state {
			t.Errorf("after %s, which ended with %v, the breaker is %s", tt.method, err, b.State)
		}
	}
}
