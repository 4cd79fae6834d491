package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

const arenaMethod = "/arena.Service/Call"

// serveGRPC is the same service for gRPC: a 503 is UNAVAILABLE.
func serveGRPC(ctx context.Context, l net.Listener, e *endpoint) {
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "arena.Service",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(_ any, call context.Context,
			decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(new(emptypb.Empty)); err != nil {
				return nil, err
			}
			switch err := e.handle(call); {
			case errors.Is(err, errLost):
				return nil, status.FromContextError(call.Err()).Err()
			case err != nil:
				return nil, status.Error(codes.Unavailable, err.Error())
			}
			return new(emptypb.Empty), nil
		}}},
	}, nil)
	context.AfterFunc(ctx, s.Stop)
	_ = s.Serve(l) // it ends because it was stopped
}

// grpcService is the service config: retries of UNAVAILABLE with the pauses that the others have, under retryThrottling
// as gRFC A6 shows it. There is no time limit of an attempt in gRPC, so a call has that of an attempt, retries
// included.
var grpcService = fmt.Sprintf(`{
  "loadBalancingConfig": [{"round_robin": {}}],
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
  "methodConfig": [{
    "name": [{}],
    "timeout": "%s",
    "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]}
  }]
}`, seconds(attemptTimeout))

// startGRPC makes calls over one connection to each endpoint. A connection that broke is tried again after 100 ms and
// every second at last, where the default goes from one second to two minutes.
func startGRPC(r *rig) (caller, error) {
	list := manual.NewBuilderWithScheme("arena")
	var state resolver.State
	for _, addr := range r.addresses() {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: addr})
	}
	list.InitialState(state)
	conn, err := grpc.NewClient(list.Scheme()+":///service", grpc.WithResolvers(list),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(grpcService),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: attemptTimeout, Backoff: backoff.Config{
			BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}))
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() { _ = conn.Close() })
	ask := func(ctx context.Context) bool {
		return conn.Invoke(ctx, arenaMethod, new(emptypb.Empty), new(emptypb.Empty)) == nil
	}
	// The others have been asked once, too, before the day begins.
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	if !ask(ctx) {
		return nil, errors.New("no good answer from " + strings.Join(r.addresses(), ", "))
	}
	return ask, nil
}
