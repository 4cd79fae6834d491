package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// server is a payment service that has its bad moments.
var server struct {
	calls   atomic.Int64 // that reached it
	charges atomic.Int64 // cards that were charged
	failing atomic.Int64 // so many of the next calls fail
	slow    atomic.Int64 // so many of the next ones hang
	quiet   atomic.Bool  // it says nothing of the calls it gets
}

// startServer starts it on a free port, behind a gate that has each order charged once.
func startServer() (address string) {
	protection := inbound.DefaultProtection()
	protection.Idempotency = idempotency.Config{Methods: []string{"/shop.Payment/Charge"}}
	gate := must(inbound.NewGate("payments", protection))
	s := grpc.NewServer(abategrpc.ServerOptions(gate)...)
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "shop.Payment", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
		{MethodName: "Charge", Handler: handler("Charge")}, {MethodName: "Balance", Handler: handler("Balance")},
	}}, nil)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { log.Fatal(s.Serve(listener)) }()
	return listener.Addr().String()
}

// handler is what a compiler for protobuf would write.
func handler(method string) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
		card := new(wrapperspb.StringValue)
		if err := decode(card); err != nil {
			return nil, err
		}
		return through(ctx, card, &grpc.UnaryServerInfo{FullMethod: "/shop.Payment/" + method},
			func(ctx context.Context, _ any) (any, error) {
				return serve(ctx, method, card.Value)
			})
	}
}

func serve(ctx context.Context, method, card string) (*wrapperspb.StringValue, error) {
	server.calls.Add(1)
	if !server.quiet.Load() {
		md, _ := metadata.FromIncomingContext(ctx)
		fmt.Printf("    server: %s of %s, attempts before %v, order %v\n", method, card, md["grpc-previous-rpc-attempts"],
			md["x-idempotency-key"])
	}
	switch {
	case server.failing.Add(-1) >= 0:
		return nil, status.Error(codes.Unavailable, "the ledger is restarting")
	case server.slow.Add(-1) >= 0:
		<-ctx.Done()
		return nil, ctx.Err()
	case method == "Charge":
		return wrapperspb.String(fmt.Sprintf("charge %d of %s", server.charges.Add(1), card)), nil
	}
	return wrapperspb.String("100.00"), nil
}
