//go:build !race

package abategrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate/adapter/abategrpc"
)

// Under the race detector a sync.Pool forgets at random.
func TestACallThatSucceedsCostsOneAllocation(t *testing.T) {
	client := abategrpc.NewClient(guard(t, composed()))
	req, reply := wrapperspb.String("a"), new(wrapperspb.StringValue)
	stub := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	opts := []grpc.CallOption{grpc.WaitForReady(true)}
	ctx := t.Context()
	n := testing.AllocsPerRun(1000, func() {
		if err := client.Unary(ctx, chargeMethod, req, reply, nil, stub, opts...); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}
