package main

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/inbound"
)

// overGRPC is gRPC.
type overGRPC struct {
	through func(net.Listener) net.Listener // where tests cut lines; else nil
}

// service is what protoc would have made of: service Service { rpc Ask(google.protobuf.StringValue) returns
// (google.protobuf.Empty); }
var service = grpc.ServiceDesc{
	ServiceName: "chain.Service",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: func(srv any, ctx context.Context, decode func(any) error,
		intercept grpc.UnaryServerInterceptor) (any, error) {
		user := new(wrapperspb.StringValue)
		if err := decode(user); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, req any) (any, error) {
			if err := srv.(ask)(ctx, req.(*wrapperspb.StringValue).Value); err != nil {
				return nil, status.Error(codes.Unavailable, err.Error())
			}
			return new(emptypb.Empty), nil
		}
		if intercept == nil {
			return handle(ctx, user)
		}
		return intercept(ctx, user, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/chain.Service/Ask"}, handle)
	}}},
}

func (w overGRPC) serve(g *inbound.Gate, answer ask) (string, func(), error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var options []grpc.ServerOption
	if g != nil {
		options = abategrpc.ServerOptions(g)
	}
	address := listener.Addr().String()
	if w.through != nil {
		listener = w.through(listener)
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&service, answer)
	go server.Serve(listener)
	return address, server.Stop, nil
}

func (overGRPC) dial(address string, g *abate.Guard) (ask, func(), error) {
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if g != nil {
		options = append(options, abategrpc.DialOptions(g)...)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, user string) error {
		return conn.Invoke(ctx, "/chain.Service/Ask", wrapperspb.String(user), new(emptypb.Empty))
	}, func() { conn.Close() }, nil
}
