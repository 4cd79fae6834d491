package proxy

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/abate-go/abate/proxy/h2"
)

// transport makes the connections to services.
type transport struct {
	connectTimeout time.Duration
	stallTimeout   time.Duration
	clock          instant
	life           context.Context // of connections that no single attempt owns
	http2          h2.Config
	upstreamSlots  upstreamSlots
	age            time.Duration // of connections, if there is one endpoint: see spread.Life
	idle           func()        // closes connections that nobody uses
	mark           int           // of its sockets, for the rules of a firewall; 0 for none

	control func(network, address string, c syscall.RawConn) error // Config.Control
}

func (t *transport) init(life context.Context, c *Config, clock instant, most int, idle func()) {
	t.connectTimeout, t.stallTimeout, t.clock, t.life, t.idle = c.ConnectTimeout, c.StallTimeout, clock, life, idle
	t.age = c.UpstreamMaxAge
	t.mark, t.control = c.Mark, c.Control
	t.http2 = h2.Config{
		MaxHeadBytes: maxHead, HeaderTimeout: c.HeaderTimeout, IdleTimeout: c.UpstreamIdleTimeout,
		StallTimeout: c.StallTimeout, Bounded: true, // dialPast sees to it
		// What a slow client does not take yet lies here. As many answers as a service lets be under way on a connection,
		// 250 as a rule, may fill their windows, and one that is taken at once still passes.
		MaxStreamWindow: 256 << 10, ConnWindow: 64 << 20,
	}
	t.upstreamSlots.stock, t.upstreamSlots.freed = int64(most), make(chan struct{}, 1)
}

// dial makes a connection to e, which begins with what there is to say of its client.
func (t *transport) dial(ctx context.Context, e *endpoint, of announcement) (net.Conn, error) {
	nc, err := t.dialPast(ctx, e.screen, e.network, e.addr)
	if err != nil {
		return nil, err
	}
	until, _ := ctx.Deadline()
	if err := of.to(nc, until); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}
