package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// narrow gives a socket the least room for what nobody reads.
func narrow(_, _ string, raw syscall.RawConn) (err error) {
	if closed := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
	}); closed != nil {
		return closed
	}
	return err
}

// narrow is dial with little room for what the client does not read.
func (r *running) narrow() *client {
	r.t.Helper()
	nc, err := (&net.Dialer{Control: narrow}).DialContext(context.Background(), "tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(patience))
	r.t.Cleanup(func() { nc.Close() })
	return &client{r.t, nc.(*net.TCPConn), bufio.NewReader(nc)}
}

// An answer that fits into the socket has been written as far as the proxy can tell, but a client that reads nothing
// has not taken it: its connection must not be kept as an idle one is.
func TestClientThatLeavesItsAnswerInTheSocketIsLetGo(t *testing.T) {
	t.Parallel()
	const answer = 50_000
	asked := make(chan struct{}, 2)
	url := http1.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.Write(make([]byte, answer))
	})
	for _, c := range []struct {
		name string
		ask  func(cl *client)
	}{
		{"HTTP/1.1", func(cl *client) { cl.send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n") }},
		{"HTTP/2", func(cl *client) {
			two := &h2raw{client: cl}
			two.begin(answer)
			two.request(1, 1, ":method", "GET", ":scheme", "http", ":authority", "s.test", ":path", "/")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, single([]string{url}), stallTimeout(short), idleTimeout(100*patience))
			c.ask(r.narrow())
			soon(t, "the request", asked)
			eventually(t, "the client is let go", func() bool { return r.proxy.Clients() == 0 })
		})
	}
}

// A tunnel has no time limit: what its client leaves in the socket for a while, it finds there.
func TestATunnelWhoseClientPausesGoesOn(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel()
	const length = 50_000
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		c.Write(make([]byte, length))
		io.Copy(io.Discard, in) // until the client goes
	})
	c := start(t, single([]string{s.url}), stallTimeout(short)).narrow()
	c.send(askUpgrade).switched()
	tick := time.NewTicker(6 * short)
	defer tick.Stop()
	<-tick.C
	if n, err := io.CopyN(io.Discard, c.in, length); err != nil {
		t.Errorf("%d bytes came: %v", n, err)
	}
}

// A request that fits into the socket has not been taken by a service that reads nothing.
func TestServiceThatLeavesItsRequestInTheSocketHasFailed(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{Control: narrow}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // the kernel takes the connection, and nobody accepts it
	patient := single([]string{"http://" + l.Addr().String()}, noRetries, "attemptTimeout: 1h", "timeout: 1h")
	r := start(t, patient, stallTimeout(short))
	cl := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat("a", 50_000))
	cl.SetReadDeadline(time.Now().Add(patience))
	if a := cl.answer(); a.status < 500 {
		t.Errorf("%d %s", a.status, a.content)
	}
}
