package abatesql_test

import (
	"context"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
)

func TestWithoutAGuardEverythingPasses(t *testing.T) {
	for name, g := range map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)} {
		db := abatesql.OpenDB(&witness{shape: shapes["all"], stmts: stmtShapes["all"]}, g)
		t.Cleanup(func() { db.Close() })
		if err := db.PingContext(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		v, err := abatesql.Read(t.Context(), g, func(context.Context) (int, error) { return 7, nil })
		if v != 7 || err != nil {
			t.Errorf("%s: read %d, %v", name, v, err)
		}
	}
}
