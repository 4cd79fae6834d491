package bench_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate/adapter/abategrpc"
)

// BenchmarkGRPCLoopback is one unary call to a grpc-go server on the loopback interface, in this process: the time and
// the allocations are both sides'. Every call has a time limit, as every call should: it costs a timer on each side and
// a field on the wire. impl=plain is grpc-go without any retrier, and its caller sets the limit; else a policy does.
// abate tells the server how many retries the call has left, in one field of metadata: impl=abate-silent does not, and
// impl=plain-field is grpc-go whose caller sends such a field.
func BenchmarkGRPCLoopback(b *testing.B) {
	addr := echoServer(b)
	for _, c := range echoClients(b, addr) {
		if c.impl != "abate-field" { // it differs from abate in what it is compared with
			run(b, "impl="+c.impl, c.call)
		}
	}
}

// echoClient is one way to make the call.
type echoClient struct {
	impl string
	call maker
	// plain is the call that its cost is compared with: grpc-go alone, with a time limit if this one has any, and with
	// a field of metadata for abate-field.
	plain maker
}

func echoClients(b *testing.B, addr string) []echoClient {
	conn := func(opts ...grpc.DialOption) *grpc.ClientConn {
		return dialEcho(b, addr, append(opts, grpc.WithDisableRetry())...)
	}
	abated := func(policies string) *grpc.ClientConn {
		return dialEcho(b, addr, abategrpc.DialOptions(guard(b, grpcPolicy(policies)))...)
	}
	silent := abategrpc.NewClient(guard(b, grpcPolicy("timeout")))
	silent.OmitHeaders = true
	failsafe := failsafegrpc.NewUnaryClientInterceptor(failsafeStack[any]("five")...)
	bare := context.Background()
	field := metadata.AppendToOutgoingContext(bare, "abate-retry-allowance", `0;owner="payment-service"`)
	limited, unlimited := callEcho(bare, conn(), 20*time.Second), callEcho(bare, conn(), 0)
	withField := callEcho(field, conn(), 20*time.Second)
	return []echoClient{
		{"abate", callEcho(bare, abated("timeout"), 0), limited},
		{"abate-field", callEcho(bare, abated("timeout"), 0), withField},
		{"abate-silent", callEcho(bare, dialEcho(b, addr, silent.DialOptions()...), 0), limited},
		{"abate-untimed", callEcho(bare, abated("untimed"), 0), unlimited},
		{"plain", callEcho(bare, conn(), 20*time.Second), limited},
		{"plain-field", withField, limited},
		{"plain-untimed", callEcho(bare, conn(), 0), unlimited},
		{"failsafe-five", callEcho(bare, conn(grpc.WithUnaryInterceptor(failsafe)), 0), limited},
	}
}

// callEcho makes an operation that sends one call, with a time limit of its caller's unless that is 0.
func callEcho(parent context.Context, conn *grpc.ClientConn, limit time.Duration) maker {
	return func() func() error {
		req, reply := wrapperspb.String("4711"), new(wrapperspb.StringValue)
		return func() error {
			ctx := parent
			if limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			return conn.Invoke(ctx, echoMethod, req, reply)
		}
	}
}

func dialEcho(b *testing.B, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn
}

// echoServer is a server that answers with what it was asked.
func echoServer(b *testing.B) (addr string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				message := new(wrapperspb.StringValue)
				err := decode(message)
				return message, err
			}}},
	}, nil)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	b.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return l.Addr().String()
}
