package proxy_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
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
