package proxy_test

import (
	"bufio"
	"io"
	"net"
	"testing"
)

// A WebSocket over HTTP/2 that was there before the drain goes on until it ends, and the drain waits for it.
func TestADrainWaitsForAWebSocketOverHTTP2(t *testing.T) {
	s, heads := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade+"welcome")
		_, _ = io.Copy(c, in)
		c.CloseWrite()
	})
	r := start(t, single([]string{s.url}))
	c := r.h2(1 << 20)
	c.request(1, 0, extended...)
	wait(t, "the request", heads)
	c.content(1, "welcome")
	drained := r.begins(t)
	for range 3 {
		c.frame(0, 0, 1, []byte("hello"))
		c.content(1, "hello")
	}
	select {
	case <-drained:
		t.Error("the drain is over before the tunnel is")
	default:
	}
	c.frame(0, 1, 1, []byte("bye"))
	c.content(1, "bye")
	c.ended(1)
	if err := wait(t, "the end of the drain", drained); err != nil {
		t.Error(err)
	}
}
