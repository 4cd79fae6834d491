package postgrestest_test

import (
	"testing"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

func TestStorePassesTheSuite(t *testing.T) {
	db := running(t).open(t)
	open := func(t *testing.T) idempotency.Store { return newStore(t, db, abatesql.Config{}) }
	storetest.Run(t, open, storetest.Options{})
}

func TestStorePassesTheSuiteUnderStricterIsolation(t *testing.T) {
	for _, level := range []string{"repeatable%20read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			db := running(t).open(t, "default_transaction_isolation="+level)
			open := func(t *testing.T) idempotency.Store { return newStore(t, db, abatesql.Config{}) }
			storetest.Run(t, open, storetest.Options{})
		})
	}
}
