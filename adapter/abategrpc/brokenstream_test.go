package abategrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/breaker"
)

// A stream counts as a success with its first message. One that fails after that is a failure, once, unless its caller
// has left or the answer is one.
func TestAStreamThatBreaksOffIsAFailureThatTheBreakerSees(t *testing.T) {
	for _, row := range []struct {
		name   string
		err    error
		leave  bool
		failed float64
	}{
		{"unavailable", errNo, false, 1},
		{"whole", nil, false, 0},
		{"not found", status.Error(codes.NotFound, "no more"), false, 0},
		{"left", nil, true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureRateThreshold: 1, MinimumNumberOfCalls: 100}})
			b := stand(t, abategrpc.NewClient(g), nil, func(_ int, ss grpc.ServerStream) error {
				if err := ss.SendMsg(wrapperspb.String("one")); err != nil {
					return err
				}
				if row.leave {
					<-ss.Context().Done()
				}
				return row.err
			})
			for range 15 {
				ctx, cancel := context.WithCancel(t.Context())
				ss := b.stream(t, ctx, "Watch")
				send(t, ss, "a")
				if err := ss.CloseSend(); err != nil {
					t.Fatal(err)
				}
				if err := ss.RecvMsg(new(text)); err != nil {
					t.Fatal(err)
				}
				if row.leave {
					cancel()
				}
				_, err := collect(ss)
				if (err == nil) != (row.err == nil && !row.leave) {
					t.Error(err)
				}
				cancel()
			}
			if got := g.State().Breaker; got.Calls != 15 || got.FailureRate != row.failed {
				t.Errorf("%d calls, %v of them failed; want 15, %v", got.Calls, got.FailureRate, row.failed)
			}
		})
	}
}

// A stream that ends because its time is up has not broken off, whoever has set the time.
func TestAStreamThatOutlivesItsTimeHasNotBrokenOff(t *testing.T) {
	for _, whose := range []string{"the policy's", "the caller's"} {
		p := abate.Policy{CircuitBreaker: breaker.Config{FailureRateThreshold: 1, MinimumNumberOfCalls: 100}}
		ctx := t.Context()
		if whose == "the policy's" {
			p.Timeout = 300 * time.Millisecond
		} else {
			limited, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			ctx = limited
		}
		g := guard(t, p)
		b := stand(t, abategrpc.NewClient(g), nil, func(_ int, ss grpc.ServerStream) error {
			if err := ss.SendMsg(wrapperspb.String("one")); err != nil {
				return err
			}
			<-ss.Context().Done()
			return ss.Context().Err()
		})
		ss := b.stream(t, ctx, "Watch")
		send(t, ss, "a")
		if _, err := collect(ss); status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
		if got := g.State().Breaker; got.Calls != 1 || got.FailureRate != 0 {
			t.Errorf("%s time: %d calls, %v of them failed", whose, got.Calls, got.FailureRate)
		}
	}
}
