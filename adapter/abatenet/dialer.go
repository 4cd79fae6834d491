// Package abatenet opens network connections under a guard.
package abatenet

import (
	"context"
	"net"

	"github.com/abate-go/abate"
)

// Dialer opens connections under a guard. Its DialContext is what drivers ask for.
type Dialer struct {
	// Guard decides when a connection may be opened. Required.
	Guard *abate.Guard
	// Dial opens the connection; nil means a net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DialContext opens one connection.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return abate.Do(ctx, d.Guard, func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) })
}
