package abatesql

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/abate-go/abate"
)

// Connector opens the connections of a database/sql pool under a guard.
type Connector struct {
	// Base is the driver's own connector. Required.
	Base driver.Connector
	// Guard decides when a connection may be opened. Required.
	Guard *abate.Guard
}

// Connect opens one connection.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	return abate.Do(ctx, c.Guard, c.Base.Connect)
}

// Driver returns the driver's own driver.
func (c *Connector) Driver() driver.Driver { return c.Base.Driver() }

// OpenDB returns a pool whose connections are opened under the guard.
func OpenDB(base driver.Connector, g *abate.Guard) *sql.DB {
	return sql.OpenDB(&Connector{Base: base, Guard: g})
}
