package h2_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// narrow makes the buffers of a socket as small as possible.
func narrow(_, _ string, raw syscall.RawConn) (err error) {
	if closed := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
	}); closed != nil {
		return closed
	}
	return err
}

// takesNothing is a limit that has to end a connection that has no other.
var takesNothing = &h2.Config{StallTimeout: 200 * time.Millisecond, IdleTimeout: -1, PingAfter: -1}

// For this program, what fits into the socket has been written; but a peer that reads nothing has not accepted it.
func TestClientThatLeavesAllInTheSocketIsEnded(t *testing.T) {
	t.Parallel()
	addr, ended := serveOne(t, takesNothing, func(s *h2.Stream) {
		s.WriteHead(200, nil, -1, false)
		s.Write(make([]byte, 6000), true, core.NoDeadline)
	})
	nc, err := (&net.Dialer{Control: narrow}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.Write([]byte(http2.ClientPreface))
	r := newRaw(t, nc)
	r.WriteSettings()
	for id := uint32(1); id < 20; id += 2 {
		r.request(id, true)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("the connection ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the server waits for a client that takes nothing")
	}
}

func TestServerThatLeavesAllInTheSocketIsEnded(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{Control: narrow}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := dial(t, l.Addr().String(), takesNothing)
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	newRaw(t, nc).WriteSettings()
	for range 10 {
		s, _, err := c.Open(post("/"), make([]byte, 6000), true, core.NoDeadline)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	select {
	case <-c.Done():
		if !errors.Is(c.Err(), syscall.ETIMEDOUT) {
			t.Errorf("the connection ended with %v", c.Err())
		}
	case <-time.After(patience):
		t.Error("the client waits for a server that takes nothing")
	}
}
