// A service with a database/sql pool, whatever the driver, which comes back gently when the server does.
//
//	DATABASE_URL=postgres://user@127.0.0.1:5432/postgres go run ./examples/sql
//
// Start it before the server, or restart the server while it runs: it waits for the server at its start, and says "ok"
// once a second. While the server is away it says why it cannot ask, and hardly knocks; when the server is back, one
// connection goes first, and "ok" follows within seconds. The others come at a pace. Ctrl-C ends it.
package main

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/startup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config := must(pgx.ParseConfig(cmp.Or(os.Getenv("DATABASE_URL"), "postgres://postgres@127.0.0.1:5432/postgres")))
	guard := must(abate.New("postgres", abate.ConnectionPolicy()))
	db := abatesql.OpenDB(stdlib.GetConnector(*config), guard) // instead of sql.Open: any driver.Connector will do
	defer db.Close()
	db.SetMaxOpenConns(20) // times the number of instances: not more than the server takes
	db.SetMaxIdleConns(20) // the same: else all but 2 are closed after each burst

	policy := startup.Policy()
	policy.Classify = abatenet.Classify // a wrong password ends the start at once
	must(startup.Connect(ctx, "postgres", policy, func(c context.Context) (any, error) { return nil, db.PingContext(c) }))
	for ctx.Err() == nil {
		if _, err := db.ExecContext(ctx, "SELECT 1"); err != nil {
			slog.Warn("failed", "error", err)
		} else {
			slog.Info("ok")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
