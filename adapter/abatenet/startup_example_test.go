package abatenet_test

import (
	"context"
	"database/sql"

	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/startup"
)

func ExampleClassify() {
	ready := func(ctx context.Context, db *sql.DB) error {
		p := startup.Policy()
		p.Classify = abatenet.Classify
		_, err := startup.Connect(ctx, "orders-db", p, func(ctx context.Context) (any, error) {
			return nil, db.PingContext(ctx)
		})
		return err
	}
	_ = ready
}
