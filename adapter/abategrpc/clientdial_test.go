package abategrpc_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
)

// statsLog counts what a stats handler is told.
type statsLog struct{ begun, ended atomic.Int32 }

func (l *statsLog) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (l *statsLog) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s.(type) {
	case *stats.Begin:
		l.begun.Add(1)
	case *stats.End:
		l.ended.Add(1)
	}
}
func (l *statsLog) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (l *statsLog) HandleConn(context.Context, stats.ConnStats)                       {}

func TestInterceptorsAndStatsHandlersBelowSeeEveryAttempt(t *testing.T) {
	log := new(statsLog)
	var above, below atomic.Int32
	count := func(n *atomic.Int32) grpc.UnaryClientInterceptor {
		return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			n.Add(1)
			return invoker(ctx, method, req, reply, cc, opts...)
		}
	}
	b := stand(t, abategrpc.NewClient(guard(t, eager())), failsUntil(3), nil, grpc.WithStatsHandler(log),
		grpc.WithUnaryInterceptor(count(&above)), grpc.WithChainUnaryInterceptor(count(&below)))
	if _, err := b.call(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log.begun.Load() != 3 || log.ended.Load() != 3 || above.Load() != 1 || below.Load() != 3 {
		t.Errorf("stats %d and %d, interceptors %d and %d", log.begun.Load(), log.ended.Load(), above.Load(), below.Load())
	}
}

func TestRetriesOfAServiceConfigAreSwitchedOff(t *testing.T) {
	const config = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
		"backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	p := eager()
	p.MaxRetries = 1
	b := stand(t, abategrpc.NewClient(guard(t, p)), fails(codes.Unavailable), func(int, grpc.ServerStream) error {
		return errNo
	}, grpc.WithDefaultServiceConfig(config))
	if _, err := b.call(t.Context()); status.Code(err) != codes.Unavailable || b.calls.Load() != 2 {
		t.Errorf("error %v after %d calls", err, b.calls.Load())
	}
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	if _, err := collect(ss); status.Code(err) != codes.Unavailable || b.calls.Load() != 4 {
		t.Errorf("error %v after %d calls", err, b.calls.Load()-2)
	}
}

func TestMethodsShareTheBudgetOfTheirServer(t *testing.T) {
	p := eager()
	p.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 4}
	g := guard(t, p)
	var others []abategrpc.Guarded
	for _, m := range []string{chargeMethod, "/shop.Payment/Watch", "/shop.Payment/Talk"} {
		own, err := abategrpc.ForMethods(g, p, m)
		if err != nil {
			t.Fatal(err)
		}
		if own.Guard.Name() != "payments"+m {
			t.Errorf("the guard is called %q", own.Guard.Name())
		}
		others = append(others, own)
	}
	b := stand(t, abategrpc.NewClient(g, others...), fails(codes.Unavailable), func(int, grpc.ServerStream) error {
		return errNo
	})
	for range 5 {
		_, _ = b.call(t.Context())
		for _, kind := range []string{"Watch", "Talk"} {
			ss := b.stream(t, t.Context(), kind)
			_ = ss.SendMsg(wrapperspb.String("a")) // when the budget is empty, it may have ended already
			_, _ = collect(ss)
		}
	}
	if calls := b.calls.Load(); calls != 15+4 {
		t.Errorf("%d calls, not 15 and 4 retries", calls)
	}
}

func TestMethodsMayHaveGuardsOfTheirOwn(t *testing.T) {
	named := func(name string) *abate.Guard {
		g, err := abate.New(name, abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen, FailureThreshold: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	all, service, method, short := named("all"), named("service"), named("method"), named("short")
	client := abategrpc.NewClient(all, abategrpc.Guarded{Methods: []string{"/a.S/*"}, Guard: service},
		abategrpc.Guarded{Methods: []string{"/a.S/Get", "/b.T/Put"}, Guard: method},
		abategrpc.Guarded{Methods: []string{"/a.S/X"}, Guard: short}, abategrpc.Guarded{
			Methods: []string{"/grpc.health.v1.Health/*"},
		})
	for name, want := range map[string]string{
		"/a.S/Get": "method", "/b.T/Put": "method", "/a.S/Other": "service", "/a.S/X": "short", "/a.SX/Get": "all",
		"/b.T/Get":                     "all",
		"/grpc.health.v1.Health/Check": "", "": "all", "/": "all", "nonsense": "all",
	} {
		for range 2 {
			err := client.Unary(t.Context(), name, nil, nil, nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					return nil
				})
			var e *abate.Error
			if errors.As(err, &e); want == "" && err != nil || want != "" && (e == nil || e.Guard != want) {
				t.Errorf("%q is under %v, not %q", name, err, want)
			}
		}
	}
	client.Select = func(name string) *abate.Guard {
		if strings.HasPrefix(name, "/b.") {
			return nil
		}
		return short
	}
	pass := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	if err := client.Unary(t.Context(), "/b.T/Put", nil, nil, nil, pass); err != nil {
		t.Errorf("Select chose none, and the error is %v", err)
	}
	var e *abate.Error
	if err := client.Unary(t.Context(), "/a.S/Get", nil, nil, nil, pass); !errors.As(err, &e) || e.Guard != "short" {
		t.Errorf("Select chose another than %v", err)
	}
}

func TestForMethodsSaysWhatIsWrong(t *testing.T) {
	g := guard(t, eager())
	for _, methods := range [][]string{nil, {""}, {"Get"}, {"shop.Payment/Get"}, {"/shop.Payment"}, {"/shop.Payment/"},
		{"/shop.Payment/a/b"}, {"//x"}, {"/a/b", "c"}} {
		if _, err := abategrpc.ForMethods(g, eager(), methods...); err == nil ||
			!strings.Contains(err.Error(), "/shop.Payment/Get") {
			t.Errorf("%q: %v", methods, err)
		}
	}
	bad := eager()
	bad.MaxRetries = -1
	var field *abate.FieldError
	if _, err := abategrpc.ForMethods(g, bad, "/shop.Payment/*"); !errors.As(err, &field) {
		t.Errorf("error %v", err)
	}
}

// refusing returns an address at which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestACallThatNeverLeftMayBeRepeatedWhateverItsMethod(t *testing.T) {
	var unsent atomic.Int32
	p := eager()
	p.RetryMethods = nil
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.AttemptBegan {
			unsent.Add(1)
		}
	})
	client := abategrpc.NewClient(guard(t, p))
	conn, err := grpc.NewClient(refusing(t),
		append(client.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Invoke(t.Context(), chargeMethod, wrapperspb.String("x"), new(text))
	if status.Code(err) != codes.Unavailable || !errors.Is(err, abate.ErrAttemptsExhausted) || unsent.Load() != 4 {
		t.Errorf("error %v after %d attempts", err, unsent.Load())
	}
	_, err = conn.NewStream(t.Context(), kinds["Talk"], "/shop.Payment/Talk")
	if status.Code(err) != codes.Unavailable || !errors.Is(err, abate.ErrAttemptsExhausted) || unsent.Load() != 8 {
		t.Errorf("stream: error %v after %d attempts", err, unsent.Load()-4)
	}
	// An interceptor below that fails by itself proves nothing: it may have made the call in another way.
	err = client.Unary(t.Context(), chargeMethod, wrapperspb.String("x"), new(text), nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return errNo })
	if !errors.Is(err, errNo) || unsent.Load() != 9 {
		t.Errorf("stub: error %v after %d attempts", err, unsent.Load()-8)
	}
}

func TestWaitForReadyWaitsForAConnection(t *testing.T) {
	for name, set := range map[string]func(*abategrpc.Client){
		"all": func(c *abategrpc.Client) { c.WaitForReady = true },
		"method": func(c *abategrpc.Client) {
			c.Methods = []abategrpc.Guarded{{Methods: []string{"/shop.Payment/*"}, Guard: c.Guard, WaitForReady: true}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			client := abategrpc.NewClient(guard(t, abate.Policy{}))
			set(client)
			var dials atomic.Int32
			conn, err := grpc.NewClient("passthrough:///x",
				append(client.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
						if dials.Add(1) == 1 {
							return nil, errors.New("not yet")
						}
						return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
					}))...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			server := grpc.NewServer()
			s := &shop{charge: echo}
			server.RegisterService(s.desc(), s)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := conn.Invoke(ctx, chargeMethod, wrapperspb.String("x"), new(text)); err != nil || dials.Load() < 2 {
				t.Errorf("error %v after %d dials", err, dials.Load())
			}
		})
	}
}

func TestAServerThatStopsIsAskedAgain(t *testing.T) {
	for name, stop := range map[string]func(*grpc.Server){
		"Stop": (*grpc.Server).Stop, "GracefulStop": (*grpc.Server).GracefulStop,
	} {
		t.Run(name, func(t *testing.T) {
			p := eager()
			p.Backoff, p.InitialDelay = "fixed", 5*time.Millisecond
			p.MaxRetries = 100
			inside, out := make(chan *backend, 1), make(chan struct{})
			var b, next *backend
			var address atomic.Pointer[string]
			b = stand(t, abategrpc.NewClient(guard(t, p)), func(int, context.Context, *text) (*text, error) {
				inside <- nil
				<-out
				return wrapperspb.String("first"), nil
			}, nil, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", *address.Load())
			}))
			address.Store(&b.address)
			next = stand(t, abategrpc.NewClient(nil), func(int, context.Context, *text) (*text, error) {
				return wrapperspb.String("second"), nil
			}, nil)
			go func() {
				<-inside
				address.Store(&next.address)
				if name == "GracefulStop" {
					close(out)
				}
				stop(b.server)
			}()
			got, err := b.call(t.Context())
			want := "second"
			if name == "GracefulStop" {
				want = "first" // it was done; those that come after it go to the next server
			} else {
				close(out)
			}
			if err != nil || got != want {
				t.Errorf("%q, error %v", got, err)
			}
			if got, err := b.call(t.Context()); err != nil || got != "second" && name == "Stop" {
				t.Errorf("and then %q, error %v", got, err)
			}
		})
	}
}

// staysOpen is a circuit that opens at so many failures and lets nothing through for an hour, however long the machine
// stands still.
func staysOpen(failures int) breaker.Config {
	return breaker.Config{
		FailureThreshold: failures, WaitDurationInOpenState: time.Hour, MaxWaitDurationInOpenState: time.Hour,
	}
}

func TestTheBreakerOpensAndRefuses(t *testing.T) {
	p := eager()
	p.CircuitBreaker = staysOpen(2)
	g := guard(t, p)
	b := stand(t, abategrpc.NewClient(g), fails(codes.Unavailable), func(int, grpc.ServerStream) error { return errNo })
	_, _ = b.call(t.Context())
	if s := g.State().Breaker.State; s != breaker.Open || b.calls.Load() != 2 {
		t.Fatalf("the breaker is %v after %d calls", s, b.calls.Load())
	}
	if _, err := b.call(t.Context()); status.Code(err) != codes.Unavailable || !errors.Is(err, abate.ErrCircuitOpen) {
		t.Errorf("error %v", err)
	}
	if _, err := b.conn.NewStream(t.Context(), kinds["Watch"], "/shop.Payment/Watch"); status.Code(err) !=
		codes.Unavailable || !errors.Is(err, abate.ErrCircuitOpen) {
		t.Errorf("stream: error %v", err)
	}
	if b.calls.Load() != 2 {
		t.Errorf("%d calls", b.calls.Load())
	}
}

func TestBusinessErrorsDoNotOpenTheBreaker(t *testing.T) {
	p := eager()
	p.CircuitBreaker = breaker.Config{FailureThreshold: 1}
	g := guard(t, p)
	client := abategrpc.NewClient(g)
	b := stand(t, client, fails(codes.NotFound), nil)
	for range 5 {
		_, _ = b.call(t.Context())
	}
	for _, mistake := range []func() error{
		func() error {
			_, err := b.call(metadata.AppendToOutgoingContext(t.Context(), "bad header", "x"))
			return err
		},
		func() error { _, err := b.call(t.Context(), grpc.MaxCallSendMsgSize(1)); return err },
		func() error { return b.conn.Invoke(t.Context(), chargeMethod, "no message", new(text)) },
		func() error { _, err := b.call(t.Context(), grpc.UseCompressor("nonsense")); return err },
	} {
		if err := mistake(); err == nil {
			t.Error("no error")
		}
	}
	_ = b.conn.Close()
	if _, err := b.call(t.Context()); status.Code(err) != codes.Canceled {
		t.Errorf("a closed connection: %v", err)
	}
	if s := g.State().Breaker.State; s != breaker.Closed || b.calls.Load() != 5 {
		t.Errorf("the breaker is %v after %d calls", s, b.calls.Load())
	}
}

func TestABudgetOfAMethodsOwnIsKeptWhereTheServerHasNone(t *testing.T) {
	p := eager()
	p.Budget = budget.New(budget.Config{Kind: budget.Tokens, MaxTokens: 1})
	own, err := abategrpc.ForMethods(guard(t, eager()), p, chargeMethod)
	if err != nil || own.Guard.Budget() != p.Budget {
		t.Errorf("%p, not %p; %v", own.Guard.Budget(), p.Budget, err)
	}
}
