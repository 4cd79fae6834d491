package pagestest

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
)

// The short examples of README.md and of pages under docs are compiled here and not run: this module has all that they
// import.

type (
	Charge struct{}
	Order  struct{}
	banks  struct{}
)

func (banks) Charge(context.Context, Order) (Charge, error) { return Charge{}, nil }

// bank, client, order, target and creds are the reader's own.
var (
	bank   banks
	order  Order
	target string
	creds  grpc.DialOption
)

func wrapped(ctx context.Context, guard *abate.Guard) (*http.Client, Charge, error) {
	client := &http.Client{Transport: abatehttp.NewTransport(nil, guard)}
	charge, err := abate.Do(ctx, guard, func(ctx context.Context) (Charge, error) { return bank.Charge(ctx, order) })
	return client, charge, err
}

func called(ctx context.Context, client banks) (Charge, error) {
	guard, err := abate.New("payment-service", abate.DefaultPolicy())
	if err != nil {
		return Charge{}, err
	}
	charge, err := abate.Do(ctx, guard, func(ctx context.Context) (Charge, error) { return client.Charge(ctx, order) })
	return charge, err
}

func overGRPC(guard *abate.Guard, gate *inbound.Gate, json []byte) ([]any, error) {
	conn, err := grpc.NewClient(target, append(abategrpc.DialOptions(guard), creds)...)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(abategrpc.ServerOptions(gate)...)
	config, err := abategrpc.ParseServiceConfig(json)
	return []any{conn, server, config}, err
}

func fromFile(ctx context.Context, client *http.Client) (*abate.Guard, error) {
	set, err := policyfile.Load("policy.yaml") // all mistakes at once, as file:line:col
	if err != nil {
		return nil, err
	}
	go set.Watch(ctx) // reloads keep breaker and budget state; a bad file changes nothing
	guard := set.Guard("payment-service")

	// or one client for all of them: a request goes by the upstreams and routes that the file names
	client.Transport = &abatehttp.Transport{Select: func(r *http.Request) *abate.Guard {
		g, _ := set.Match(r.URL.Host, r.URL.EscapedPath()) // nil: the request passes unguarded
		return g
	}}
	return guard, nil
}

func served(set *policyfile.Set, mux *http.ServeMux) error {
	gate, _ := set.Gate("orders") // or inbound.NewGate("orders", inbound.DefaultProtection())
	return http.ListenAndServe(":8080", abatehttp.NewHandler(gate, mux))
}

var _ = []any{wrapped, called, overGRPC, fromFile, served}
