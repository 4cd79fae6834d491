package abatepgx_test

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatepgx"
)

func ExampleGuard() {
	open := func(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		g, err := abate.New("orders-db", abate.ConnectionPolicy())
		if err != nil {
			return nil, err
		}
		abatepgx.Guard(config, g)
		return pgxpool.NewWithConfig(ctx, config)
	}
	_ = open
}
