package proxy_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// A client that leaves while it waits for the bulkhead is not worked for, as in Do, in Run and at a gate.
func TestTheQueueOfABulkheadDoesNotServeClientsThatHaveLeft(t *testing.T) {
	var inside atomic.Int32
	open := make(chan struct{})
	s := upstream(t, func(c net.Conn, _ string) {
		inside.Add(1)
		hold(t, open)
		io.WriteString(c, ok("good"))
	})
	r := start(t, single([]string{s.url}, "bulkhead: {maxConcurrentCalls: 1, maxQueue: 2, maxWait: 20s, order: fifo}"))
	var clients []*client
	for i := range 2 {
		clients = append(clients, r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 0\r\n\r\n"))
		eventually(t, "it is where it should be", func() bool {
			g := r.guard()
			return g.Bulkhead.Running == 1 && g.Bulkhead.Queued == i
		})
	}
	clients[1].SetLinger(0)
	clients[1].Close()
	close(open)
	if a := clients[0].answer(); a.content != "good" {
		t.Errorf("got %+v", a)
	}
	eventually(t, "empty", func() bool { return r.guard().Bulkhead.Running == 0 && r.guard().Bulkhead.Queued == 0 })
	if n := inside.Load(); n != 1 {
		t.Errorf("%d requests reached the service, one of them for a client that had left before it was sent", n)
	}
}
