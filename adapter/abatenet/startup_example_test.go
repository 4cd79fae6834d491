package abatenet_test

import (
	"context"
	"database/sql"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
)

func ExampleClassify() {
	ready := func(ctx context.Context, db *sql.DB) error {
		p := abate.StartupPolicy()
		p.Classify = abatenet.Classify
		_, err := abate.Connect(ctx, "orders-db", p, func(ctx context.Context) (any, error) {
			return nil, db.PingContext(ctx)
		})
		return err
	}
	_ = ready
}
