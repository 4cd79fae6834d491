package abate_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"

	"github.com/abate-go/abate/startup"
)

// openOrders is a program's own.
func openOrders() (*sql.DB, error) { return nil, nil }

func ExampleConnect_database() {
	start := func(ctx context.Context) {
		db, err := openOrders()
		if err == nil {
			_, err = startup.Connect(ctx, "orders-db", startup.Policy(), func(ctx context.Context) (any, error) {
				return nil, db.PingContext(ctx)
			})
		}
		if err != nil {
			slog.Error("cannot start", "error", err)
			os.Exit(1)
		}
	}
	_ = start
}

func ExampleConnect() {
	attempts := 0
	ctx := startup.ContextWithLogger(context.Background(), slog.New(slog.DiscardHandler))
	conn, err := startup.Connect(ctx, "cache", startup.Policy(), func(context.Context) (string, error) {
		if attempts++; attempts < 2 {
			return "", fmt.Errorf("connection refused")
		}
		return "a connection", nil
	})
	fmt.Println(conn, err)
	// Output: a connection <nil>
}
