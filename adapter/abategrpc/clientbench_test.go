package abategrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/bulkhead"
)

// composed is a policy with five parts: time limits, retries with a budget, a breaker and a bulkhead.
func composed() abate.Policy {
	p := abate.DefaultPolicy()
	p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 100}
	p.Timeout, p.AttemptTimeout = 2*time.Second, 500*time.Millisecond
	return p
}

// BenchmarkUnaryClientInterceptor calls a stub, so that what is left is the price of the interceptor and the guard.
func BenchmarkUnaryClientInterceptor(b *testing.B) {
	timed := composed()
	full := timed
	full.Timeout, full.AttemptTimeout = 0, 0
	stub := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for _, c := range []struct {
		name   string
		policy abate.Policy
		omit   bool
	}{{"guarded", full, false}, {"guarded-timeouts", timed, false}, {"guarded-timeouts-no-metadata", timed, true}} {
		g, err := abate.New("payments", c.policy)
		if err != nil {
			b.Fatal(err)
		}
		client := abategrpc.NewClient(g)
		client.OmitHeaders = c.omit
		req, reply := wrapperspb.String("a"), new(wrapperspb.StringValue)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := client.Unary(b.Context(), "/test.Echo/Echo", req, reply, nil, stub); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				req, reply := wrapperspb.String("a"), new(wrapperspb.StringValue)
				for pb.Next() {
					if err := client.Unary(context.Background(), "/test.Echo/Echo", req, reply, nil, stub); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
