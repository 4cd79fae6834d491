package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// An answer that breaks off after its head is a failure of the service, whose head has counted as a success: once.
func TestAnswersThatBreakOffOpenTheCircuit(t *testing.T) {
	const brittle = "circuitBreaker: {failureThreshold: 3, failureRateThreshold: 1, minimumNumberOfCalls: 3, " +
		"waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 1h}"
	for name, keys := range map[string][]string{
		"plain":  {noRetries, noEjection, brittle},
		"hedged": {noRetries, noEjection, brittle, "hedge: {delay: 1m}"},
	} {
		for kind, answer := range map[string]string{
			"length":  okHead + "Content-Length: 10\r\n\r\nabcde",
			"chunked": okHead + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := upstream(t, func(c net.Conn, _ string) {
					io.WriteString(c, answer)
					c.Close()
				})
				r := start(t, single([]string{s.url}, keys...))
				for i := range 3 {
					if got := r.guard().Breaker; got.Calls != i || got.Openings != 0 {
						t.Fatalf("after %d answers: %+v", i, got)
					}
					c := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
					if a, err := c.final(); a.status != 200 || err == nil {
						t.Fatal(a.status, err)
					}
					c.closed()
				}
				if a := r.get("/"); a.status != 503 || r.guard().Breaker.Openings != 1 {
					t.Errorf("status %d, %+v", a.status, r.guard().Breaker)
				}
			})
		}
	}
}

// Whoever leaves in the middle of an answer, or lets the proxy find out while it writes, says nothing about the
// service.
func TestAClientThatLeavesInTheMiddleOfAnAnswerIsNoFailureOfTheService(t *testing.T) {
	for name, keys := range map[string][]string{"plain": nil, "hedged": {"hedge: {delay: 1m}"}} {
		for kind, more := range map[string]bool{"a service that is silent": false, "a service that goes on": true} {
			t.Run(name+", "+kind, func(t *testing.T) {
				eachWay(t, func(t *testing.T, in, out wire) {
					left := make(chan struct{}, 1)
					r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Content-Length", "1000000000")
						io.WriteString(w, "begun")
						for flush(w); more && r.Context().Err() == nil; {
							_, _ = w.Write(make([]byte, 64<<10))
						}
						<-r.Context().Done()
						left <- struct{}{}
					})}, append(keys, noRetries, noEjection, brittleAtOnce)...))
					req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
					ctx, cancel := context.WithCancel(req.Context())
					b := begin(t, in.client(t), req.WithContext(ctx))
					b.head()
					within(t, "the beginning of the answer", func() { _, _ = io.ReadFull(b.in, make([]byte, len("begun"))) })
					cancel()
					wait(t, "the service hears of it", left)
					r.unblamed()
				})
			})
		}
	}
}

// The kernel has the client's next request before the end of its connection: that it has left must be seen all the
// same.
func TestAClientThatLeavesWithAnotherRequestUnreadIsNoFailureOfTheService(t *testing.T) {
	for kind, c := range map[string]struct {
		head string
		more bool
	}{
		"long, moved by the kernel":   {okHead + "Content-Length: 1000000000\r\n\r\nbegun", true},
		"in chunks":                   {okHead + "Transfer-Encoding: chunked\r\n\r\n3b9aca00\r\nbegun", true},
		"of a service that is silent": {okHead + "Content-Length: 1000\r\n\r\nbegun", false},
		"of events": {
			okHead + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n", false,
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it waits
			left := make(chan struct{})
			s := rawUpstream(t, func(nc net.Conn, _ int) {
				defer close(left)
				in := bufio.NewReader(nc)
				_, _ = readMessage(in)
				io.WriteString(nc, c.head)
				for c.more {
					if _, err := nc.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
				_, _ = in.ReadByte()
			})
			r := start(t, single([]string{s.url}, noRetries, noEjection, brittleAtOnce))
			client := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
			for got := ""; !strings.HasSuffix(got, "begun"); {
				one, err := client.in.ReadByte()
				if err != nil {
					t.Fatal(got, err)
				}
				got += string(one)
			}
			client.send("GET /next HTTP/1.1\r\nHost: s.test\r\n\r\n").Close()
			wait(t, "the service hears of it", left)
			r.unblamed()
		})
	}
}

// A client that sent a key and left is worked for as long as its lease lasts; the service is not blamed for its leaving
// either.
func TestAClientThatLeavesInTheMiddleOfAKeyedAnswerIsNoFailureOfTheService(t *testing.T) {
	for kind, head := range map[string]string{
		"kept":      okHead + "Content-Length: 10\r\n\r\nbegun",
		"too large": okHead + "Content-Length: 1000000\r\n\r\nbegun",
		"of events": okHead + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it waits
			came, left := make(chan struct{}), make(chan struct{})
			s := rawUpstream(t, func(nc net.Conn, _ int) {
				defer close(left)
				in := bufio.NewReader(nc)
				_, _ = readMessage(in)
				io.WriteString(nc, head)
				close(came)
				_, _ = in.ReadByte()
			})
			r := protect(t, guardOf(s.url, "idempotency: {methods: [POST], lease: 100ms}"))
			client := r.dial().send(post("a", "one"))
			wait(t, "the service has it", came)
			client.Close()
			wait(t, "the service hears of it", left)
			eventually(t, "the slot is free", func() bool { return r.gate().Shed.InFlight == 0 })
			refusedBy(t, r.dial().send(post("a", "one")).answer(), 409, "idempotency-not-stored")
		})
	}
}

const brittleAtOnce = "circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 1h, " +
	"maxWaitDurationInOpenState: 1h}"

// unblamed checks that a call is over, and that it was none that failed.
func (r *running) unblamed() {
	r.t.Helper()
	eventually(r.t, "the call is over", func() bool { return r.guard().Endpoints[0].Pending == 0 })
	if g := r.guard().Breaker; g.Openings != 0 || g.State != "closed" {
		r.t.Errorf("the service was blamed: %+v", g)
	}
}
