package abatehttp_test

import (
	"context"
	"net/http"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/startup"
)

// store is a program's own.
type store struct{}

func openStore(context.Context) (*store, error) { return &store{}, nil }

func ExampleReadyHandler() {
	serve := func(ctx context.Context, orders http.HandlerFunc) error {
		var ready startup.Readiness
		db, err := startup.ConnectInBackground(ctx, &ready, "orders-db", startup.Policy(), openStore)
		if err != nil { // of the policy
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("/readyz", abatehttp.ReadyHandler(&ready))
		mux.HandleFunc("/orders", func(w http.ResponseWriter, r *http.Request) {
			if _, err := db.Get(); err != nil { // not there yet: err says since when, and why
				http.Error(w, "come back later", http.StatusServiceUnavailable)
				return
			}
			orders(w, r)
		})
		context.AfterFunc(ctx, func() { ready.Drain("shutting down") })
		return http.ListenAndServe(":8080", mux)
	}
	_ = serve
}
