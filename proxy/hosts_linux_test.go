package proxy_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// TestAcceptedConnectionsProbeIdleClients: a listener's connections have TCP keep-alive as it is set for the listener.
func TestAcceptedConnectionsProbeIdleClients(t *testing.T) {
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ level, name, want int }{
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 15}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 9},
		{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
	} {
		var got int
		if ctl := raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), c.level, c.name) }); ctl != nil ||
			err != nil || got != c.want {
			t.Errorf("option %d of level %d: %d, %v, %v; want %d", c.name, c.level, got, ctl, err, c.want)
		}
	}
}
