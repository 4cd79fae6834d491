// A service with GORM, whose connections come back gently when the server does.
//
//	DATABASE_URL=postgres://user@127.0.0.1:5432/postgres go run ./examples/gorm
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
	pg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

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
	pool := abatesql.OpenDB(stdlib.GetConnector(*config), guard) // GORM stands on a database/sql pool
	defer pool.Close()
	pool.SetMaxOpenConns(20) // times the number of instances: not more than the server takes

	wait := startup.Policy()
	wait.Classify = abatenet.Classify // a wrong password ends the start at once
	must(startup.Connect(ctx, "postgres", wait, func(c context.Context) (any, error) { return nil, pool.PingContext(c) }))
	db := must(gorm.Open(pg.New(pg.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true}))
	for ctx.Err() == nil {
		if err := db.WithContext(ctx).Exec("SELECT 1").Error; err != nil {
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
