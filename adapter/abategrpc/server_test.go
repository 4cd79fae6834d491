package abategrpc_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

const patience = 60 * time.Second

func newGate(t testing.TB, p inbound.Protection) *inbound.Gate {
	t.Helper()
	g, err := inbound.NewGate("payments", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gateLog is an observer that remembers.
type gateLog struct {
	mu     sync.Mutex
	events []inbound.GateEvent
}

func (l *gateLog) ObserveGate(e inbound.GateEvent) {
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
}

func (l *gateLog) all(kind inbound.GateEventKind) []inbound.GateEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []inbound.GateEvent
	for _, e := range l.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// await waits for n events of a kind: the answer reaches the client before the server's interceptor is through.
func (l *gateLog) await(t testing.TB, kind inbound.GateEventKind, n int) []inbound.GateEvent {
	t.Helper()
	eventually(t, func() bool { return len(l.all(kind)) >= n })
	return l.all(kind)
}

// eventually polls, for a machine that is busy.
func eventually(t testing.TB, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal("it has not come about")
		}
	}
}

type (
	text    = wrapperspb.StringValue
	unary   = func(ctx context.Context, in *text) (*text, error)
	streams = func(ss grpc.ServerStream) error
)

// shop is a service made by hand: /shop.Payment/Charge is unary, Talk streams both ways, Watch from the server, and
// Upload from the client.
type shop struct {
	charge unary
	talk   streams
}

func (s *shop) desc() *grpc.ServiceDesc {
	one := func(srv any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
		in := new(text)
		if err := decode(in); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, req any) (any, error) {
			out, err := s.charge(ctx, req.(*text))
			if err != nil {
				return nil, err
			}
			return out, nil
		}
		if through == nil {
			return handle(ctx, in)
		}
		return through(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.Payment/Charge"}, handle)
	}
	talk := func(_ any, ss grpc.ServerStream) error { return s.talk(ss) }
	return &grpc.ServiceDesc{
		ServiceName: "shop.Payment", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Charge", Handler: one}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Talk", Handler: talk, ServerStreams: true, ClientStreams: true},
			{StreamName: "Watch", Handler: talk, ServerStreams: true},
			{StreamName: "Upload", Handler: talk, ClientStreams: true},
		},
	}
}

// serve starts a server on loopback and returns a connection to it.
func (s *shop) serve(t testing.TB, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	server.RegisterService(s.desc(), s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return dial(t, listener.Addr().String())
}

func dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry()},
		options...)
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// protect starts the shop behind a gate.
func protect(t testing.TB, p inbound.Protection, charge unary) (*grpc.ClientConn, *inbound.Gate, *gateLog) {
	t.Helper()
	log := new(gateLog)
	p.Observer = log
	g := newGate(t, p)
	s := &shop{charge: charge}
	return s.serve(t, abategrpc.ServerOptions(g)...), g, log
}

// answer is what a client sees of a unary call.
type answer struct {
	text            string
	err             error
	header, trailer metadata.MD
}

func (a answer) code() codes.Code { return status.Code(a.err) }

// charge calls the unary method with some metadata, given as names and values in turn.
func charge(ctx context.Context, conn *grpc.ClientConn, in string, md ...string) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, md...)
	out := new(text)
	a.err = conn.Invoke(ctx, "/shop.Payment/Charge", wrapperspb.String(in), out, grpc.Header(&a.header),
		grpc.Trailer(&a.trailer))
	a.text = out.Value
	return a
}

// details are those of a refusal.
func (a answer) details(t testing.TB) (info *errdetails.ErrorInfo, retry time.Duration) {
	t.Helper()
	for _, d := range status.Convert(a.err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d.RetryDelay.AsDuration()
		default:
			t.Errorf("a detail of type %T", d)
		}
	}
	if info == nil {
		t.Fatalf("%v has no ErrorInfo", a.err)
	}
	if info.Domain != abategrpc.ErrorDomain || info.Metadata["service"] != "payments" {
		t.Errorf("%v", info)
	}
	if got := a.trailer["abate-reason"]; len(got) != 1 || got[0] != info.Reason {
		t.Errorf("reason %v in the trailers, %q in the details", got, info.Reason)
	}
	return info, retry
}

// one is the value of a trailer, "" if there is none.
func (a answer) one(t testing.TB, name string) string {
	t.Helper()
	switch v := a.trailer[name]; len(v) {
	case 0:
		return ""
	case 1:
		return v[0]
	default:
		t.Errorf("%s: %v", name, v)
		return v[0]
	}
}

// places is a protection with so many places and so long a queue.
func places(n, queue int) inbound.Protection {
	return inbound.Protection{
		Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: n, MaxQueue: queue, NoQueue: queue == 0,
			QueueTarget: time.Minute, QueueInterval: time.Minute},
	}
}

func trusting(p inbound.Protection) inbound.Protection {
	p.TrustedPeers = []string{"127.0.0.1"}
	return p
}

func perMinute(n int) inbound.ArrivalLimit {
	return inbound.ArrivalLimit{
		Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: float64(n), Per: time.Minute}, Burst: n},
	}
}

func echo(_ context.Context, in *text) (*text, error) { return wrapperspb.String(in.Value), nil }

func TestTheGateLearnsWhatTheHandlerAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code codes.Code
		want abate.Class
	}{
		"an answer":           {nil, codes.OK, abate.Success},
		"not found":           {status.Error(codes.NotFound, "x"), codes.NotFound, abate.Success},
		"unavailable":         {status.Error(codes.Unavailable, "x"), codes.Unavailable, abate.Failure},
		"exhausted":           {status.Error(codes.ResourceExhausted, "x"), codes.ResourceExhausted, abate.Overload},
		"internal":            {status.Error(codes.Internal, "x"), codes.Internal, abate.Failure},
		"a plain error":       {errors.New("x"), codes.Unknown, abate.Failure},
		"a context's error":   {context.DeadlineExceeded, codes.DeadlineExceeded, abate.Failure},
		"canceled by itself":  {context.Canceled, codes.Canceled, abate.Failure},
		"a status, wrapped":   {errors.Join(status.Error(codes.NotFound, "x")), codes.NotFound, abate.Success},
		"a code nobody knows": {status.Error(99, "x"), 99, abate.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			conn, g, log := protect(t, places(1, 0), func(context.Context, *text) (*text, error) {
				return wrapperspb.String("ok"), c.err
			})
			if got := charge(t.Context(), conn, "x").code(); got != c.code {
				t.Errorf("code %v, want %v", got, c.code)
			}
			if done := log.await(t, inbound.RequestDone, 1); len(done) != 1 || done[0].Class != c.want {
				t.Errorf("%+v, want class %v", done, c.want)
			}
			if n := g.State().Shed.InFlight; n != 0 {
				t.Errorf("%d places are taken", n)
			}
		})
	}
}

func TestAnOverloadedServiceSaysSoAndWhenToCome(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	conn, _, log := protect(t, places(1, 0), func(context.Context, *text) (*text, error) {
		close(inside)
		<-leave
		return new(text), nil
	})
	var all sync.WaitGroup
	all.Go(func() { charge(context.Background(), conn, "x") })
	<-inside
	a := charge(t.Context(), conn, "x")
	close(leave)
	all.Wait()
	info, retry := a.details(t)
	if a.code() != codes.Unavailable || info.Reason != "overloaded" || info.Metadata["shed"] == "" {
		t.Errorf("%v, %v", a.err, info)
	}
	if ms := a.one(t, "grpc-retry-pushback-ms"); retry <= 0 || ms == "" || ms == "-1" {
		t.Errorf("retry after %v, pushback %q", retry, ms)
	}
	if got := status.Convert(a.err).Message(); got != "payments: the service has more to do than it can" {
		t.Error(got)
	}
	if got := log.all(inbound.RequestRefused); len(got) != 1 || got[0].Reason != abate.ErrOverloaded {
		t.Errorf("%+v", got)
	}
	if a.header.Len() != 0 && len(a.header["content-type"]) == 0 {
		t.Errorf("header %v: want trailers only", a.header)
	}
}

func TestARateLimitSaysWhenToCome(t *testing.T) {
	p := inbound.Protection{RateLimit: perMinute(1)}
	conn, _, _ := protect(t, p, echo)
	if a := charge(t.Context(), conn, "hello"); a.err != nil || a.text != "hello" || a.trailer.Len() != 0 {
		t.Errorf("%+v", a)
	}
	a := charge(t.Context(), conn, "x")
	info, retry := a.details(t)
	if a.code() != codes.ResourceExhausted || info.Reason != "rate-limited" || retry < 30*time.Second {
		t.Errorf("%v, %v, %v", a.err, info, retry)
	}
	if ms := a.one(t, "grpc-retry-pushback-ms"); len(ms) < 5 || ms == "-1" {
		t.Errorf("pushback %q", ms)
	}
}

func TestWhatWillNeverPassIsToldSo(t *testing.T) {
	g := newGate(t, trusting(inbound.Protection{RateLimit: perMinute(1)}))
	server := &abategrpc.Server{Gate: g, Cost: func(context.Context, string) float64 { return 5 }}
	conn := (&shop{charge: echo}).serve(t, server.Options()...)
	a := charge(t.Context(), conn, "x", "abate-retry-allowance", "2", "x-envoy-attempt-count", "1")
	_, retry := a.details(t)
	if a.code() != codes.ResourceExhausted || retry != 0 || a.one(t, "grpc-retry-pushback-ms") != "-1" {
		t.Errorf("%v, %v, %v", a.err, retry, a.trailer)
	}
	if a.one(t, "abate-retries-made") != "0;final" || a.one(t, "x-envoy-ratelimited") != "true" {
		t.Errorf("%v", a.trailer)
	}
}

func TestADeadlineThatHasPassedIsNotWorkedFor(t *testing.T) {
	called := false
	conn, _, log := protect(t, inbound.Protection{}, func(context.Context, *text) (*text, error) {
		called = true
		return new(text), nil
	})
	a := charge(t.Context(), conn, "x", "x-envoy-expected-rq-timeout-ms", "0")
	if info, _ := a.details(t); a.code() != codes.DeadlineExceeded || info.Reason != "deadline" || called {
		t.Errorf("%v, called: %v", a.err, called)
	}
	if got := log.all(inbound.RequestRefused); len(got) != 1 || got[0].Reason != abate.ErrDeadline {
		t.Errorf("%+v", got)
	}
}

func TestTheLeastDeadlineEndsTheHandlersContext(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		md      []string
		least   time.Duration
	}{
		"the client's own": {0, nil, patience},
		"the gate's":       {10 * time.Second, nil, 10 * time.Second},
		"Envoy's":          {time.Minute, []string{"x-envoy-expected-rq-timeout-ms", "20000"}, 20 * time.Second},
		"the least of two": {
			0, []string{"x-envoy-expected-rq-timeout-ms", "50000", "x-envoy-expected-rq-timeout-ms", "30000"}, 30 * time.Second,
		},
		"a malformed one":    {0, []string{"x-envoy-expected-rq-timeout-ms", "-5"}, patience},
		"one without sense":  {0, []string{"x-envoy-expected-rq-timeout-ms", "99999999999999999999"}, patience},
		"one beyond the day": {0, []string{"x-envoy-expected-rq-timeout-ms", "999999999999999"}, patience},
	} {
		t.Run(name, func(t *testing.T) {
			var left time.Duration
			conn, _, _ := protect(t, inbound.Protection{Timeout: c.timeout}, func(ctx context.Context, _ *text) (*text, error) {
				ends, _ := ctx.Deadline()
				left = time.Until(ends)
				return new(text), nil
			})
			if a := charge(t.Context(), conn, "x", c.md...); a.err != nil {
				t.Fatal(a.err)
			}
			if left > c.least || left < c.least/10 {
				t.Errorf("%v were left, want a little less than %v", left, c.least)
			}
		})
	}
}

func TestAHandlerThatNoticesTheEndAnswersSo(t *testing.T) {
	conn, _, log := protect(t, inbound.Protection{Timeout: 20 * time.Millisecond, Shed: places(1, 0).Shed},
		func(ctx context.Context, _ *text) (*text, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	if a := charge(t.Context(), conn, "x"); a.code() != codes.DeadlineExceeded {
		t.Error(a.err)
	}
	if done := log.await(t, inbound.RequestDone, 1); done[0].Class != abate.Failure {
		t.Errorf("%+v", done)
	}
}

func TestAPanicGivesThePlaceBackAndGoesOn(t *testing.T) {
	var caught any
	recover := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if caught = recover(); caught != nil {
				err = status.Error(codes.Internal, "panic")
			}
		}()
		return next(ctx, req)
	}
	log := new(gateLog)
	p := places(1, 0)
	p.Observer = log
	g := newGate(t, p)
	s := &shop{charge: func(context.Context, *text) (*text, error) { panic("boom") }}
	conn := s.serve(t, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(recover)}, abategrpc.ServerOptions(g)...)...)
	if a := charge(t.Context(), conn, "x"); a.code() != codes.Internal || caught != "boom" {
		t.Errorf("%v, caught %v", a.err, caught)
	}
	if done := log.await(t, inbound.RequestDone, 1); done[0].Class != abate.Failure || g.State().Shed.InFlight != 0 {
		t.Errorf("%+v, %d places taken", done, g.State().Shed.InFlight)
	}
}

func TestAClientThatLeavesTeachesNothing(t *testing.T) {
	inside := make(chan struct{})
	conn, g, log := protect(t, places(1, 0), func(ctx context.Context, _ *text) (*text, error) {
		close(inside)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { charge(ctx, conn, "x") })
	<-inside
	cancel()
	if done := log.await(t, inbound.RequestDone, 1); done[0].Class != abate.Ignored {
		t.Errorf("%+v", done)
	}
	all.Wait()
	if n := g.State().Shed.InFlight; n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

func TestWhoWaitsInTheQueueAndLeavesIsForgotten(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	conn, g, log := protect(t, places(1, 5), func(context.Context, *text) (*text, error) {
		inside <- struct{}{}
		<-leave
		return new(text), nil
	})
	var all sync.WaitGroup
	all.Go(func() { charge(context.Background(), conn, "x") })
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	all.Go(func() {
		if a := charge(ctx, conn, "x"); a.code() != codes.Canceled {
			t.Error(a.err)
		}
	})
	eventually(t, func() bool { return g.State().Shed.Queued == 1 })
	cancel()
	if got := log.await(t, inbound.RequestRefused, 1); got[0].Reason != context.Canceled {
		t.Errorf("%+v", got)
	}
	all.Go(func() {
		if a := charge(context.Background(), conn, "later"); a.err != nil {
			t.Error(a.err)
		}
	})
	eventually(t, func() bool { return g.State().Shed.Queued == 1 })
	close(leave)
	<-inside
	all.Wait()
}

// seen is a stats handler that counts how calls end.
type seen struct {
	mu   sync.Mutex
	ends map[codes.Code]int
}

func (s *seen) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (s *seen) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (s *seen) HandleConn(context.Context, stats.ConnStats)                       {}
func (s *seen) HandleRPC(_ context.Context, e stats.RPCStats) {
	if end, ok := e.(*stats.End); ok {
		s.mu.Lock()
		s.ends[status.Code(end.Error)]++
		s.mu.Unlock()
	}
}

func TestStatsHandlersSeeWhatIsRefused(t *testing.T) {
	s := &seen{ends: make(map[codes.Code]int)}
	g := newGate(t, inbound.Protection{RateLimit: perMinute(1)})
	conn := (&shop{charge: echo}).serve(t, append(abategrpc.ServerOptions(g), grpc.StatsHandler(s))...)
	charge(t.Context(), conn, "x")
	charge(t.Context(), conn, "x")
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.ends[codes.OK] == 1 && s.ends[codes.ResourceExhausted] == 1
	})
}
