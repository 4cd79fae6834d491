package abategrpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
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
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
)

// inPipes is a server of gRPC at the other end of pipes, in virtual time.
type inPipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func (p *inPipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *inPipes) Close() error   { p.once.Do(func() { close(p.ended) }); return nil }
func (p *inPipes) Addr() net.Addr { return &net.IPAddr{} }

// standInPipes is stand over pipes. end has to be called before the bubble ends.
func standInPipes(t *testing.T, g *abate.Guard, talk talks) (conn *grpc.ClientConn, end func()) {
	t.Helper()
	return connectInPipes(t, abategrpc.NewClient(g), talk)
}

func connectInPipes(t *testing.T, c *abategrpc.Client, talk talks) (conn *grpc.ClientConn, end func()) {
	t.Helper()
	p := &inPipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	s := &shop{talk: func(ss grpc.ServerStream) error { return talk(0, ss) }}
	server := grpc.NewServer(grpc.InitialWindowSize(1 << 16)) // and it does not grow
	server.RegisterService(s.desc(), s)
	go func() { _ = server.Serve(p) }()
	conn, err := grpc.NewClient("passthrough:///shop", append(c.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			mine, its := net.Pipe()
			select {
			case p.conns <- its:
				return mine, nil
			case <-p.ended:
				return nil, net.ErrClosed
			}
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		_ = conn.Close()
		server.Stop()
	}
}

// eachKind plays a test with each kind of circuit breaker, as wary as can be.
func eachKind(t *testing.T, play func(t *testing.T, p abate.Policy)) {
	p := abate.Policy{AttemptTimeout: time.Second, Bulkhead: bulkhead.Config{Limit: bulkhead.AdaptiveLimit}}
	for _, c := range []breaker.Config{{Kind: breaker.Adaptive}, {FailureThreshold: 1, SlowCallRateThreshold: 0.01,
		MinimumNumberOfCalls: 1, SlowCallDurationThreshold: time.Second, WaitDurationInOpenState: time.Hour}} {
		p.CircuitBreaker = c
		t.Run(string(c.Kind), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { play(t, p) }) })
	}
}

func upload(t *testing.T, ctx context.Context, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	ss, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/shop.Payment/Upload")
	if err != nil {
		t.Error(err)
	}
	return ss
}

// all takes what comes to its end, and answers.
func all(_ int, ss grpc.ServerStream) error {
	for {
		err := ss.RecvMsg(new(text))
		if errors.Is(err, io.EOF) {
			return ss.SendMsg(wrapperspb.String("x"))
		} else if err != nil {
			return err
		}
	}
}

// A caller that pauses between its messages is no slow server: not for the attempt's time, nor for whoever learns.
func TestACallerThatPausesIsNotASlowServer(t *testing.T) {
	eachKind(t, func(t *testing.T, p abate.Policy) {
		var mu sync.Mutex
		var ended []abate.Event
		p.Observer = abate.ObserverFunc(func(e abate.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == core.AttemptEnded {
				ended = append(ended, e)
			}
		})
		g := guard(t, p)
		conn, end := standInPipes(t, g, all)
		defer end()
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				ss := upload(t, t.Context(), conn)
				for range 3 {
					<-time.After(time.Minute)
					if err := ss.SendMsg(wrapperspb.String("a")); err != nil {
						t.Error(err)
					}
				}
				<-time.After(time.Minute)
				_ = ss.CloseSend()
				if err := ss.RecvMsg(new(text)); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		for _, e := range ended {
			if e.Class != abate.Success || e.Latency > 100*time.Millisecond {
				t.Errorf("it counts as %v after %v: %v", e.Class, e.Latency, e.Err)
			}
		}
		if s := g.State(); len(ended) != 20 || s.Breaker.State != breaker.Closed || s.Bulkhead.Limit != 0 ||
			s.Bulkhead.InFlight != 0 || s.Bulkhead.Sending != 0 {
			t.Errorf("%d ends, %+v", len(ended), s)
		}
	})
}

// Whose time is up in a pause of his own has said nothing about the server.
func TestAPauseThatOutlivesTheCallIsNoFailure(t *testing.T) {
	for _, own := range []bool{false, true} {
		eachKind(t, func(t *testing.T, p abate.Policy) {
			ctx := t.Context()
			if p.Timeout = 5 * time.Second; own {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				p.Timeout = 0
			}
			g := guard(t, p)
			conn, end := standInPipes(t, g, all)
			defer end()
			ss := upload(t, ctx, conn)
			if err := ss.SendMsg(wrapperspb.String("a")); err != nil {
				t.Error(err)
			}
			<-time.After(10 * time.Second)
			_ = ss.CloseSend()
			if err := ss.RecvMsg(new(text)); status.Code(err) != codes.DeadlineExceeded {
				t.Error(err)
			}
			synctest.Wait()
			if s := g.State(); s.Breaker.State != breaker.Closed || s.Bulkhead.InFlight != 0 || s.Bulkhead.Sending != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A server that hangs when its caller has sent all, or that takes no more, is found out in the attempt's time.
func TestAServerThatHangsInAStreamOfRequestsIsFoundOut(t *testing.T) {
	for name, takes := range map[string]bool{"it takes all": true, "it takes nothing": false} {
		eachKind(t, func(t *testing.T, p abate.Policy) {
			g := guard(t, p)
			over := make(chan struct{})
			conn, end := standInPipes(t, g, func(_ int, ss grpc.ServerStream) error {
				for takes && ss.RecvMsg(new(text)) == nil {
				}
				<-over
				return nil
			})
			defer end()
			defer close(over)
			ss, began := upload(t, t.Context(), conn), time.Now()
			<-time.After(time.Minute)
			for n := 0; n < 10 || !takes; n++ {
				if err := ss.SendMsg(wrapperspb.String(string(make([]byte, 10_000)))); err != nil {
					break
				}
			}
			_ = ss.CloseSend()
			err := ss.RecvMsg(new(text))
			if took := time.Since(began) - time.Minute; status.Code(err) != codes.DeadlineExceeded || took != time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			if s := g.State().Breaker.State; p.CircuitBreaker.Kind != breaker.Adaptive && s != breaker.Open {
				t.Errorf("%s: the circuit is %v", name, s)
			}
		})
	}
}
