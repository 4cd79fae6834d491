package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// oneProbe opens a circuit after one failure, for a moment, and lets one probe through.
const oneProbe = "circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 100ms, maxWaitDurationInOpenState: " +
	"100ms, permittedCallsInHalfOpen: 1, successThreshold: 1, halfOpenPermitLease: 1h, rampUp: 0s}"

// TestAProbeEndsWithItsAnswerWhateverThatIs: a half-open circuit has one place for a probe. An answer that is all there
// with its head frees it at once, whatever its head says of a length; one that goes on, when the probe's lease is over.
func TestAProbeEndsWithItsAnswerWhateverThatIs(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	for _, tt := range []struct {
		name, request, answer, more string
		goesOn                      bool // the answer: the probe counts when its lease is over
	}{
		{name: "HEAD", request: "HEAD / HTTP/1.1\r\n", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"},
		{name: "204", request: "GET / HTTP/1.1\r\n", answer: "HTTP/1.1 204 No Content\r\n\r\n"},
		{name: "304", request: "GET / HTTP/1.1\r\nIf-None-Match: x\r\n",
			answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n"},
		{name: "205", request: "GET / HTTP/1.1\r\n", answer: "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"},
		{name: "101", request: "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n",
			answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"},
		{
			name:    "101 where copies may be sent",
			request: "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n",
			answer:  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
			more:    "hedge: {delay: 59s}",
		},
		{name: "426", request: "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n",
			answer: "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n"},
		{name: "events", goesOn: true, request: "GET / HTTP/1.1\r\n",
			answer: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{
			name:    "events where copies may be sent",
			goesOn:  true,
			request: "GET / HTTP/1.1\r\n",
			answer:  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
			more:    "hedge: {delay: 59s}",
		},
		{name: "half of a download", goesOn: true, request: "GET / HTTP/1.1\r\n",
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf"},
		{name: "half of one where copies may be sent", goesOn: true, request: "GET / HTTP/1.1\r\n",
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", more: "hedge: {delay: 59s}"},
		{name: "gzip without a length", goesOn: true, request: "GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n",
			answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b"},
		{name: "chunks with a trailer", goesOn: true, request: "GET / HTTP/1.1\r\nTE: trailers\r\nConnection: TE\r\n",
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nX-Sum: 1\r\n"},
		{name: "an early answer", goesOn: true, request: "POST / HTTP/1.1\r\nContent-Length: 1000000\r\n",
			answer: "HTTP/1.1 413 Content Too Large\r\nContent-Length: 1000\r\n\r\nhalf"},
		{name: "103 first", goesOn: true, request: "GET / HTTP/1.1\r\n",
			answer: "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ill, probed atomic.Bool
			ill.Store(true)
			s := rawUpstream(t, func(c net.Conn, _ int) {
				buf := make([]byte, 64<<10)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					switch req := string(buf[:n]); {
					case !strings.Contains(req, "HTTP/1.1\r\n"): // a body
					case ill.Load():
						io.WriteString(c, status(500))
					case probed.CompareAndSwap(false, true):
						io.WriteString(c, tt.answer)
					default:
						io.WriteString(c, ok("good"))
					}
				}
			})
			breaker := oneProbe
			if tt.goesOn {
				breaker = strings.Replace(oneProbe, "Lease: 1h", "Lease: 50ms", 1)
			}
			r := start(t, single([]string{s.url}, noRetries, breaker, noEjection, "attemptTimeout: "+patience.String(), tt.more))
			if a := r.get("/"); a.status != 500 {
				t.Fatalf("got %+v", a)
			}
			eventually(t, "the circuit is half-open or about to be", func() bool { return r.guard().Breaker.State != "closed" })
			ill.Store(false)
			var first *client
			eventually(t, "a probe is let through", func() bool {
				c := r.dial().send(tt.request + "Host: s.test\r\n\r\n")
				line, err := c.in.ReadString('\n')
				if err == nil && !strings.Contains(line, " 503 ") {
					first = c
					return true
				}
				c.Close()
				return false
			})
			defer first.Close()
			if tt.goesOn {
				eventually(t, "the slot is free", func() bool { return r.get("/second").content == "good" })
			} else if a := r.get("/second"); a.status != 200 || a.content != "good" {
				t.Errorf("the next request got %d %s", a.status, a.content)
			}
			if g := r.guard(); g.Breaker.State != "closed" || g.Bulkhead.Running != 0 {
				t.Errorf("the guard is %+v", g)
			}
		})
	}
}

// TestAProbeWhoseClientLeavesGivesItsPlaceBack: at whatever moment.
func TestAProbeWhoseClientLeavesGivesItsPlaceBack(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	for _, more := range []string{"", "hedge: {delay: 59s}", "bulkhead: {maxConcurrentCalls: 1, noQueue: true}"} {
		for _, answer := range []string{
			"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
		} {
			for _, reset := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %q reset %v", more, answer, reset), func(t *testing.T) {
					var ill atomic.Bool
					ill.Store(true)
					probed := make(chan struct{}, 1)
					s := rawUpstream(t, func(c net.Conn, _ int) {
						buf := make([]byte, 64<<10)
						for {
							n, err := c.Read(buf)
							if err != nil {
								return
							}
							switch req := string(buf[:n]); {
							case ill.Load():
								io.WriteString(c, status(500))
							case strings.Contains(req, "/leaves"):
								io.WriteString(c, answer)
								probed <- struct{}{}
							default:
								io.WriteString(c, ok("good"))
							}
						}
					})
					r := start(t, single([]string{s.url}, noRetries, oneProbe, noEjection, "attemptTimeout: "+patience.String(), more))
					r.get("/")
					ill.Store(false)
					eventually(t, "a probe is let through", func() bool {
						c := r.dial().send("GET /leaves HTTP/1.1\r\nHost: s.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
						defer c.Close()
						if reset {
							c.SetLinger(0)
						}
						select {
						case <-probed:
							return true
						case <-time.After(20 * time.Millisecond):
							return false
						}
					})
					eventually(t, "the slot is free", func() bool { return r.get("/").status == 200 })
					eventually(t, "nothing is left", func() bool {
						g := r.guard()
						return g.Bulkhead.Running == 0 && g.Endpoints[0].Pending == 0
					})
				})
			}
		}
	}
}
