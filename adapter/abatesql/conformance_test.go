package abatesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
)

// shapes are connections that show none, each one, or all of what database/sql asks for.
var shapes = map[string]func(*witnessConn) driver.Conn{
	"none": func(c *witnessConn) driver.Conn { return struct{ driver.Conn }{c} },
	"all":  func(c *witnessConn) driver.Conn { return c },
	"ExecerContext": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.ExecerContext
		}{c, c}
	},
	"Execer": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.Execer
		}{c, c}
	},
	"QueryerContext": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.QueryerContext
		}{c, c}
	},
	"Queryer": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.Queryer
		}{c, c}
	},
	"Execer and Queryer": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.Execer
			driver.Queryer
		}{c, c, c}
	},
	"ConnPrepareContext": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.ConnPrepareContext
		}{c, c}
	},
	"ConnBeginTx": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.ConnBeginTx
		}{c, c}
	},
	"Pinger": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.Pinger
		}{c, c}
	},
	"NamedValueChecker": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.NamedValueChecker
		}{c, c}
	},
	"SessionResetter": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.SessionResetter
		}{c, c}
	},
	"Validator": func(c *witnessConn) driver.Conn {
		return struct {
			driver.Conn
			driver.Validator
		}{c, c}
	},
}

var stmtShapes = map[string]func(*witnessStmt) driver.Stmt{
	"none": func(s *witnessStmt) driver.Stmt { return struct{ driver.Stmt }{s} },
	"all":  func(s *witnessStmt) driver.Stmt { return s },
	"StmtExecContext": func(s *witnessStmt) driver.Stmt {
		return struct {
			driver.Stmt
			driver.StmtExecContext
		}{s, s}
	},
	"StmtQueryContext": func(s *witnessStmt) driver.Stmt {
		return struct {
			driver.Stmt
			driver.StmtQueryContext
		}{s, s}
	},
	"NamedValueChecker": func(s *witnessStmt) driver.Stmt {
		return struct {
			driver.Stmt
			driver.NamedValueChecker
		}{s, s}
	},
	"ColumnConverter": func(s *witnessStmt) driver.Stmt { return columns{s, s} },
}

type columns struct {
	driver.Stmt
	of *witnessStmt
}

func (c columns) ColumnConverter(i int) driver.ValueConverter { return c.of.ColumnConverter(i) }

// endings are what the driver says: nothing, or an error at each of its methods.
func endings() map[string]map[string][]error {
	all := map[string]map[string][]error{"all goes well": nil}
	for _, method := range []string{"Prepare", "PrepareContext", "Begin", "BeginTx", "ExecContext", "Exec", "QueryContext",
		"Query", "Ping",
		"ResetSession", "IsValid", "Commit", "Rollback", "Close", "Stmt.Exec", "Stmt.Query", "Stmt.ExecContext",
		"Stmt.QueryContext", "Stmt.Close"} {
		for _, err := range []error{driver.ErrBadConn, driver.ErrSkip, errors.New("wrong")} {
			all[fmt.Sprintf("%s says %v", method, err)] = map[string][]error{method: {err}}
		}
		all[method+" is bad for good"] = map[string][]error{
			method: {driver.ErrBadConn, driver.ErrBadConn, driver.ErrBadConn, driver.ErrBadConn},
		}
	}
	return all
}

// battery does what programs do with a pool, and notes what they get.
func battery(ctx context.Context, db *sql.DB, say func(string, ...any)) {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	say("ping %v", db.PingContext(ctx))
	for _, args := range [][]any{nil, {1, "two"}, {sql.Named("n", 3)}, {money{450}}, {forbidden{}}, {struct{}{}}} {
		r, err := db.ExecContext(ctx, "insert", args...)
		say("exec %v %v", r != nil, err)
		rows, err := db.QueryContext(ctx, "select", args...)
		say("query %v %v", rows != nil, err)
		if rows != nil {
			say("rows %v %v %v", rows.Next(), rows.Err(), rows.Close())
		}
	}
	_, err := db.ExecContext(cancelled, "insert")
	say("cancelled %v", err)
	if s, err := db.PrepareContext(ctx, "prepared"); err != nil {
		say("prepare %v", err)
	} else {
		for _, args := range [][]any{{1}, {sql.Named("n", 3)}, {money{450}}, {forbidden{}}} {
			_, err := s.ExecContext(ctx, args...)
			say("prepared exec %v", err)
			var n int
			say("prepared query %v", s.QueryRowContext(ctx, args...).Scan(&n))
		}
		say("close %v", s.Close())
	}
	for _, opts := range []*sql.TxOptions{nil, {ReadOnly: true}, {Isolation: sql.LevelSerializable}} {
		tx, err := db.BeginTx(ctx, opts)
		say("begin %v", err)
		if err != nil {
			continue
		}
		_, err = tx.ExecContext(ctx, "update", 1)
		say("in it %v", err)
		if opts == nil {
			say("commit %v", tx.Commit())
		} else {
			say("rollback %v", tx.Rollback())
		}
		say("after it %v", tx.Rollback())
	}
	if c, err := db.Conn(ctx); err != nil {
		say("conn %v", err)
	} else {
		say("raw %v", c.Raw(func(any) error { return nil }))
		_, err := c.ExecContext(ctx, "set")
		say("on it %v, close %v", err, c.Close())
	}
	stats := db.Stats()
	say("open %d, idle %d", stats.OpenConnections, stats.Idle)
	say("close pool %v", db.Close())
}

// play runs the battery on a pool with one connection, and returns what the program and the driver saw.
func play(w *witness, connector driver.Connector) string {
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	battery(context.Background(), db, w.note)
	return w.told()
}

func TestAWrappedDriverBehavesAsItself(t *testing.T) {
	free, err := abate.New("db", abate.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for shapeName, shape := range shapes {
		for stmtName, stmts := range stmtShapes {
			if shapeName != "none" && stmtName != "all" { // else thousands, and nothing new
				continue
			}
			for endName := range endings() {
				driverOf := func() *witness {
					return &witness{shape: shape, stmts: stmts, ends: endings()[endName]}
				}
				bare, wrapped := driverOf(), driverOf()
				want := play(bare, bare)
				got := play(wrapped, &abatesql.Connector{Base: wrapped, Guard: free})
				if got != want {
					t.Fatalf("connection with %s, statement with %s, %s: %s", shapeName, stmtName, endName, difference(got, want))
				}
			}
		}
	}
}

// difference is where two texts part.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	n := 0
	for n < len(g) && n < len(w) && g[n] == w[n] {
		n++
	}
	from := max(0, n-3)
	return fmt.Sprintf("from line %d\n got %q\nwant %q", from, g[from:min(n+3, len(g))], w[from:min(n+3, len(w))])
}
