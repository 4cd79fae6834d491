package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// settleTime is how long memory may settle before it is looked at, once all connections are open.
const settleTime = 2 * time.Second

// dialers is how many connections are opened at a time: fewer than any target's queue of new ones.
const dialers = 32

// idleMode measures what a connection costs that sent one request and is kept open.
func idleMode(n int) mode {
	return mode{
		title: fmt.Sprintf("memory of %d idle keep-alive connections, each after one request; direct is the upstream's; "+
			"the kernel's part is not in it", n),
		load:    "this command",
		clients: n + connections,
		columns: []column{
			spread(perConnection, "%.2f"), median(before, "%.1f"), median(after, "%.1f"), worst(others, "%.2f"),
		},
		promises: []promise{
			{what: "each idle connection, KB", metric: perConnection, limit: 4},
		},
		run: func(l *lab, _ mode, s started) (sample, error) { return runIdle(l, s, n) },
	}
}

func runIdle(l *lab, s started, n int) (sample, error) {
	if need := n + 8*connections; need > l.files {
		return nil, fmt.Errorf("%d connections need %d open files and the limit is %d: raise it with ulimit -n", n,
			need, l.files)
	}
	// so that what does not grow with connections is there
	if _, err := l.load(shapes[0], s.addr, l.opt.warmUp); err != nil {
		return nil, err
	}
	pid := s.measured().PID()
	kbBefore, err := residentKB(pid)
	if err != nil {
		return nil, err
	}
	var kbAfter int64
	spent, seconds, err := s.watch(func() error {
		c, err := openClients(l.ctx, s.addr, n)
		defer c.close()
		if err != nil {
			return err
		}
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case <-time.After(settleTime):
		}
		if kbAfter, err = residentKB(pid); err != nil {
			return err
		}
		return c.askAgain(l.ctx) // a proxy that closed them would look cheap
	})
	if err != nil {
		return nil, err
	}
	return sample{
		before:        float64(kbBefore) * kib / mib,
		after:         float64(kbAfter) * kib / mib,
		perConnection: float64(kbAfter-kbBefore) / float64(n),
		others:        spent.others(seconds),
	}, nil
}

// clients are open connections.
type clients struct {
	request []byte
	conns   []net.Conn
}

// close resets the connections: else their ports would be taken for another minute.
func (c *clients) close() {
	for _, conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // as after an error of its own, it is closed all the same
			tcp.Close()
		}
	}
}

// openClients opens n connections and sends one request on each. Those that it opened are to be closed even after an
// error.
func openClients(ctx context.Context, addr string, n int) (*clients, error) {
	c := &clients{request: smallRequest(addr), conns: make([]net.Conn, n)}
	perSource, err := portsOfOneSource()
	if err != nil {
		return c, err
	}
	err = c.each(ctx, func(i int, buf []byte) error {
		source := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/perSource))}
		d := net.Dialer{Timeout: exchangeLimit, LocalAddr: source, Control: portLater}
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, n, err)
		}
		c.conns[i] = conn
		return exchange(conn, c.request, buf)
	})
	return c, err
}

// askAgain sends a second request on every connection.
func (c *clients) askAgain(ctx context.Context) error {
	return c.each(ctx, func(i int, buf []byte) error {
		if err := exchange(c.conns[i], c.request, buf); err != nil {
			return fmt.Errorf("connection %d was not kept open: %w", i+1, err)
		}
		return nil
	})
}

// each does something on every connection, some at a time, and stops at the first error.
func (c *clients) each(ctx context.Context, do func(i int, buf []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for first := range dialers {
		all.Go(func() {
			buf := make([]byte, 4*bodySize)
			for i := first; i < len(c.conns) && ctx.Err() == nil; i += dialers {
				if err := do(i, buf); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// portsOfOneSource is how many connections to one address may come from one source address: three quarters of the
// ports that the system hands out, the rest being for everybody else. More come from further loopback addresses.
func portsOfOneSource() (int, error) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, err
	}
	return parsePortRange(string(text))
}

func parsePortRange(text string) (int, error) {
	var low, high int
	if _, err := fmt.Sscan(text, &low, &high); err != nil || low < 0 || high < low {
		return 0, fmt.Errorf("the range of ports is %q, not two numbers", text)
	}
	return max((high-low+1)*3/4, 1), nil
}
