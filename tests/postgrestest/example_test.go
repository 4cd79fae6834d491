package postgrestest_test

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
)

func ExampleOpenDB() {
	open := func(dsn string) (*sql.DB, error) {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		g, err := abate.New("orders-db", abate.ConnectionPolicy())
		if err != nil {
			return nil, err
		}
		return abatesql.OpenDB(stdlib.GetConnector(*config), g), nil
	}
	_ = open
}

func ExampleRead() {
	statements, err := abate.New("orders-db statements", abate.DefaultPolicy())
	if err != nil {
		panic(err)
	}
	total := func(ctx context.Context, db *sql.DB, order int64) (int64, error) {
		return abatesql.Read(ctx, statements, func(ctx context.Context) (cents int64, err error) {
			err = db.QueryRowContext(ctx, `SELECT cents FROM orders WHERE id = $1`, order).Scan(&cents)
			return cents, err
		})
	}
	_ = total
}
