package proxy_test

import (
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

const userTimeoutOption = 18 // TCP_USER_TIMEOUT

// userTimeout is what the kernel was told about the socket of this process whose other end is at addr, in milliseconds.
func userTimeout(t *testing.T, addr net.Addr) int {
	t.Helper()
	want := addr.(*net.TCPAddr)
	for fd := range 4096 {
		peer, err := syscall.Getpeername(fd)
		if at, ok := peer.(*syscall.SockaddrInet4); err != nil || !ok || at.Port != want.Port {
			if at, ok := peer.(*syscall.SockaddrInet6); err != nil || !ok || at.Port != want.Port {
				continue
			}
		}
		ms, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, userTimeoutOption)
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	t.Fatal("no such socket")
	return 0
}

// A client that came before the proxy served, as while one takes over the listener of another, leaves no more untaken
// than those after it. These have what was set for the listener: no call is made for each of them.
func TestAClientThatCameEarlyIsBoundToo(t *testing.T) {
	const stall = 7 * time.Second
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
	r := &running{t: t, file: t.TempDir() + "/policy.yaml"}
	r.write(single([]string{s.url}))
	var err error
	if r.proxy, err = proxy.New(proxy.Config{Policy: r.file, Log: slog.New(slog.DiscardHandler),
		StallTimeout: stall}); err != nil {
		t.Fatal(err)
	}
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	early := r.dial()
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	bounded := func(c *client, want int) {
		t.Helper()
		c.get("/")
		if ms := userTimeout(t, c.LocalAddr()); ms != want {
			t.Errorf("the kernel has been told %d ms, want %d", ms, want)
		}
	}
	bounded(early, int(stall.Milliseconds()))
	bounded(r.dial(), int(stall.Milliseconds()))
	const other = 9000
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeoutOption, other)
	})
	if err != nil {
		t.Fatal(err)
	}
	bounded(r.dial(), other)
	r.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
