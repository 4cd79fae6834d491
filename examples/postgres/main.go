// A service with a pool of connections to PostgreSQL, which comes back gently when the server does.
//
//	DATABASE_URL=postgres://user@127.0.0.1:5432/postgres go run ./examples/postgres
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

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/adapter/abatepgx"
	"github.com/abate-go/abate/startup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config := must(pgxpool.ParseConfig(cmp.Or(os.Getenv("DATABASE_URL"), "postgres://postgres@127.0.0.1:5432/postgres")))
	abatepgx.Guard(config, must(abate.New("postgres", abate.ConnectionPolicy()))) // every connection, not only the first
	pool := must(pgxpool.NewWithConfig(ctx, config))
	defer pool.Close()

	policy := startup.Policy()
	policy.Classify = abatenet.Classify // a wrong password ends the start at once
	must(startup.Connect(ctx, "postgres", policy, func(ctx context.Context) (any, error) { return nil, pool.Ping(ctx) }))
	for ctx.Err() == nil {
		if _, err := pool.Exec(ctx, "SELECT 1"); err != nil {
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
