package abategrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/hedge"
)

// One guard for a server, and a policy of its own for a method that may be hedged. Both share one retry budget.
func ExampleDialOptions() {
	policy := abate.DefaultPolicy()
	policy.Timeout = 2 * time.Second
	server, err := abate.New("payments", policy)
	if err != nil {
		log.Fatal(err)
	}
	policy.RetryMethods = []string{"/shop.Payment/Get"}
	policy.Hedge = hedge.Config{Delay: 50 * time.Millisecond}
	get, err := abategrpc.ForMethods(server, policy, "/shop.Payment/Get")
	if err != nil {
		log.Fatal(err)
	}

	options := append(abategrpc.DialOptions(server, get), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("127.0.0.1:1", options...) // nobody listens there
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx := abategrpc.WithIdempotencyKey(context.Background(), "order-4711") // so that a charge may be repeated
	err = conn.Invoke(ctx, "/shop.Payment/Charge", wrapperspb.String("12 EUR"), new(wrapperspb.StringValue))
	fmt.Println(status.Code(err), errors.Is(err, abate.ErrAttemptsExhausted))
	// Output: Unavailable true
}
