package abategrpc_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/retry"
)

// stacked makes calls of a service that is down through the default policy without a circuit breaker, which would hide
// what the budget does. try makes one attempt of a retrier above.
func stacked(t *testing.T) (try func(ctx context.Context, req *wrapperspb.StringValue) error, sent *int) {
	p := abate.DefaultPolicy()
	p.CircuitBreaker.Disabled, p.Backoff, p.RetryMethods = true, retry.NoBackoff, []string{chargeMethod}
	c := abategrpc.NewClient(guard(t, p))
	sent = new(int)
	down := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		*sent++
		return status.Error(codes.Unavailable, "down")
	}
	return func(ctx context.Context, req *wrapperspb.StringValue) error {
		return c.Unary(ctx, chargeMethod, req, new(wrapperspb.StringValue), nil, down)
	}, sent
}

func TestRetriesStackedAboveStayWithinTheBudget(t *testing.T) {
	const users, tries = 200, 5
	numbered := func(name string, value func(try int) string) func(context.Context, int) context.Context {
		return func(ctx context.Context, try int) context.Context {
			return metadata.AppendToOutgoingContext(ctx, name, value(try))
		}
	}
	for name, with := range map[string]func(context.Context, int) context.Context{
		"grpc-previous-rpc-attempts": numbered("grpc-previous-rpc-attempts", strconv.Itoa),
		"x-retry-attempty":           numbered("x-retry-attempty", strconv.Itoa),
		"x-envoy-attempt-count": numbered("x-envoy-attempt-count", func(try int) string {
			return strconv.Itoa(try + 1)
		}),
		"x-goog-api-client": numbered("x-goog-api-client", func(try int) string {
			return "gl-go/1 gccl-attempt-count/" + strconv.Itoa(try+1)
		}),
		"the same request under the same context": func(ctx context.Context, _ int) context.Context { return ctx },
	} {
		t.Run(name, func(t *testing.T) {
			try, sent := stacked(t)
			for range users {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				req := wrapperspb.String("order")
				for i := range tries {
					_ = try(with(ctx, i), req)
				}
				cancel()
			}
			if *sent < users || *sent > users*12/10 {
				t.Errorf("%d attempts of %d calls, want 1.2 a call at most", *sent, users)
			}
		})
	}
}

func TestCallsThatOnlyLookAlikeAreCallsOfTheirOwn(t *testing.T) {
	bounded, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	shared, reused := wrapperspb.String("everybody's"), wrapperspb.String("order ")
	for name, c := range map[string]struct {
		ctx func() context.Context
		req func() *wrapperspb.StringValue
	}{
		"other requests under one context": {func() context.Context {
			return bounded
		}, func() *wrapperspb.StringValue { return wrapperspb.String("order") }},
		"a request that everybody shares": {t.Context, func() *wrapperspb.StringValue { return shared }},
		"one request value with other content each time": {func() context.Context {
			return bounded
		}, func() *wrapperspb.StringValue {
			reused.Value += "x"
			return reused
		}},
		"a number of the hop before": {func() context.Context {
			md := metadata.Pairs("grpc-previous-rpc-attempts", "5")
			return metadata.NewOutgoingContext(metadata.NewIncomingContext(t.Context(), md), md)
		}, func() *wrapperspb.StringValue { return wrapperspb.String("order") }},
	} {
		t.Run(name, func(t *testing.T) {
			try, _ := stacked(t)
			for range 100 {
				var refusal *abate.Error
				if err := try(c.ctx(), c.req()); errors.As(err, &refusal) && refusal.Attempts == 0 {
					t.Fatal("refused before the first attempt: ", err)
				}
			}
		})
	}
}
