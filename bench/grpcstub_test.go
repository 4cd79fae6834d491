package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/bulkhead"
)

const echoMethod = "/bench.Echo/Call"

// BenchmarkGRPCStub is one unary call through a client interceptor, over an invoker that succeeds at once. impl=floor
// is the invoker alone: subtract it to get what an interceptor costs. impl=abate is the default policy with timeouts, a
// bulkhead and leave to repeat the method, abate-five has a rate limit besides, as failsafe-five has.
func BenchmarkGRPCStub(b *testing.B) {
	run(b, "impl=abate", unary(intercept(b, grpcPolicy("timeout"))))
	run(b, "impl=abate-five", unary(intercept(b, grpcPolicy("five"))))
	run(b, "impl=floor",
		unary(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			return invoker(ctx, method, req, reply, cc, opts...)
		}))
	run(b, "impl=failsafe-five", unary(failsafegrpc.NewUnaryClientInterceptor(failsafeStack[any]("five")...)))
	run(b, "impl=failsafe-timeout", unary(failsafegrpc.NewUnaryClientInterceptor(failsafeStack[any]("timeout")...)))
}

func intercept(b *testing.B, p abate.Policy) grpc.UnaryClientInterceptor {
	return abategrpc.UnaryClientInterceptor(guard(b, p))
}

// unary makes an operation that sends one call.
func unary(i grpc.UnaryClientInterceptor) maker {
	ctx := context.Background()
	return func() func() error {
		req, reply := wrapperspb.String("4711"), new(wrapperspb.StringValue)
		return func() error { return i(ctx, echoMethod, req, reply, nil, answered) }
	}
}

// answered is the invoker of a call that succeeds at once.
func answered(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return nil
}

// grpcPolicy is what a careful team starts from.
func grpcPolicy(policies string) abate.Policy {
	p := abate.DefaultPolicy()
	if policies != "untimed" {
		p.Timeout, p.AttemptTimeout = 20*time.Second, 10*time.Second
	}
	p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1024}
	p.RetryMethods = []string{echoMethod}
	if policies == "five" {
		p.RateLimit.Config = rateLimit(1e6)
	}
	return p
}
