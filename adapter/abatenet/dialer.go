package abatenet

import (
	"context"
	"net"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/connfail"
)

// Dialer opens connections under a guard. Make one for each dependency: all addresses that it is given share the
// guard's circuit breaker and pace. It is safe for concurrent use; do not change it once it is used.
type Dialer struct {
	// Guard decides when a connection may be opened, how long an attempt may take and whether there is another. Make it
	// once, from abate.ConnectionPolicy(). A nil one lets every call pass.
	Guard *abate.Guard
	// Dial opens the connection, TLS included where it should be; it has to end when its context does. nil means the
	// DialContext of a net.Dialer with its defaults.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Greet asks the server on a new connection whether it takes it, within the same attempt; it has to end when its
	// context does. A server that accepts connections and can do nothing with them counts as away then, and is not
	// knocked at by everybody. When it returns an error, the connection is closed and the error judged as one of Dial.
	// nil: a connection that was made is a success. PingRedis is one for Redis and Valkey.
	Greet func(ctx context.Context, conn net.Conn) error
}

// DialContext opens one connection, as the DialContext of a net.Dialer does: what drivers call a dialer or a dial
// function. It waits for its token, for the back-off between attempts and for the attempts, at most as long as ctx. The
// connection is the one that Dial returned, not wrapped. The error is that of Dial or Greet when another attempt could
// not fix it, else an *abate.Error with it or, if nothing was sent, without. The guard's policy judges errors by its
// Classify if it has one. It adds two allocations to those of Dial.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return abate.Do(ctx, d.Guard, func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && d.Greet != nil {
			if err = d.Greet(ctx, conn); err != nil {
				conn.Close()
				conn = nil
			}
		}
		return conn, connfail.Mark(d.Guard, err)
	})
}
