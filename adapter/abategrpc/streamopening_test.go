package abategrpc_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
)

// A server to which no connection comes about has the attempt's time for that: nothing can have been paused yet.
func TestAStreamThatCannotBeOpenedEndsWithItsAttempt(t *testing.T) {
	eachKind(t, func(t *testing.T, p abate.Policy) {
		conn, err := grpc.NewClient("passthrough:///shop", append(abategrpc.NewClient(guard(t, p)).DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		_, err = conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/shop.Payment/Upload")
		if took := time.Since(began); status.Code(err) != codes.DeadlineExceeded || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A server that does not take what is sent again has the attempt's time for that.
func TestAServerThatDoesNotTakeWhatIsSentAgainIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eager()
		p.MaxRetries, p.AttemptTimeout = 1, time.Second
		var n atomic.Int64
		c := abategrpc.NewClient(guard(t, p))
		c.MaxBuffered = 1 << 20
		over := make(chan struct{})
		conn, end := connectInPipes(t, c, func(_ int, ss grpc.ServerStream) error {
			if n.Add(1) == 1 {
				for range 10 {
					_ = ss.RecvMsg(new(text))
				}
				return status.Error(codes.Unavailable, "again")
			}
			<-over
			return nil
		})
		defer end()
		defer close(over)
		ss := upload(t, t.Context(), conn)
		for range 10 {
			if err := ss.SendMsg(wrapperspb.String(string(make([]byte, 20_000)))); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		err := ss.RecvMsg(new(text))
		if took := time.Since(began); status.Code(err) != codes.DeadlineExceeded || took > 2*time.Second || n.Load() != 2 {
			t.Errorf("%v after %v and %d attempts", err, took, n.Load())
		}
	})
}
