package abategrpc_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
)

var kinds = map[string]*grpc.StreamDesc{
	"Talk":   {StreamName: "Talk", ServerStreams: true, ClientStreams: true},
	"Watch":  {StreamName: "Watch", ServerStreams: true},
	"Upload": {StreamName: "Upload", ClientStreams: true},
}

// open begins a stream and sends one message.
func open(t *testing.T, ctx context.Context, conn *grpc.ClientConn, kind string) grpc.ClientStream {
	t.Helper()
	ss, err := conn.NewStream(ctx, kinds[kind], "/shop.Payment/"+kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := ss.SendMsg(wrapperspb.String("x")); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return ss
}

// drain reads a stream to its end, and returns how many messages came.
func drain(ss grpc.ClientStream) (n int, err error) {
	for {
		switch err := ss.RecvMsg(new(text)); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
		n++
	}
}

// protectStreams starts the shop's streams behind a gate.
func protectStreams(t *testing.T, p inbound.Protection, talk streams) (*grpc.ClientConn, *inbound.Gate, *gateLog) {
	t.Helper()
	log := new(gateLog)
	p.Observer = log
	g := newGate(t, p)
	return (&shop{talk: talk}).serve(t, abategrpc.ServerOptions(g)...), g, log
}

func TestAStreamHoldsItsPlaceUntilItsAnswerBegins(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		begin func(grpc.ServerStream) error
		want  abate.Class
	}{
		"a message to one question": {"Watch", func(ss grpc.ServerStream) error {
			return ss.SendMsg(new(text))
		}, abate.Success},
		"a header": {"Watch", func(ss grpc.ServerStream) error {
			return ss.SendHeader(metadata.MD{})
		}, abate.Success},
		"a message in a talk": {"Talk", func(ss grpc.ServerStream) error { return ss.SendMsg(new(text)) }, abate.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			inside, begin, leave := make(chan struct{}), make(chan struct{}), make(chan struct{})
			conn, g, log := protectStreams(t, places(1, 0), func(ss grpc.ServerStream) error {
				close(inside)
				<-begin
				if err := c.begin(ss); err != nil {
					return err
				}
				<-leave
				return status.Error(codes.Unavailable, "later")
			})
			ss := open(t, t.Context(), conn, c.kind)
			<-inside
			if n := g.State().Shed.InFlight; n != 1 || len(log.all(inbound.RequestDone)) != 0 {
				t.Errorf("%d places are taken before the answer begins, want 1", n)
			}
			close(begin)
			if done := log.await(t, inbound.RequestDone, 1); done[0].Class != c.want || g.State().Shed.InFlight != 0 {
				t.Errorf("%+v, want class %v; %d places taken", done, c.want, g.State().Shed.InFlight)
			}
			close(leave)
			if _, err := drain(ss); status.Code(err) != codes.Unavailable {
				t.Error(err)
			}
			if done := log.all(inbound.RequestDone); len(done) != 1 {
				t.Errorf("done %d times", len(done))
			}
		})
	}
}

func TestTheEndOfAStreamWithoutMessagesIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		err  error
		want abate.Class
	}{
		"nothing to watch":  {"Watch", nil, abate.Success},
		"cannot be watched": {"Watch", status.Error(codes.Unavailable, "x"), abate.Failure},
		"an upload":         {"Upload", nil, abate.Ignored},
		"a broken upload":   {"Upload", status.Error(codes.DataLoss, "x"), abate.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _, log := protectStreams(t, places(1, 0), func(grpc.ServerStream) error { return c.err })
			ss := open(t, t.Context(), conn, c.kind)
			_ = ss.CloseSend()
			_, _ = drain(ss)
			if done := log.await(t, inbound.RequestDone, 1); done[0].Class != c.want {
				t.Errorf("%+v, want %v", done, c.want)
			}
		})
	}
}

func TestAStreamIsRefusedBeforeItsHandler(t *testing.T) {
	conn, _, _ := protectStreams(t, inbound.Protection{RateLimit: perMinute(1)}, func(ss grpc.ServerStream) error {
		return ss.SendMsg(new(text))
	})
	if n, err := drain(open(t, t.Context(), conn, "Watch")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	ss := open(t, t.Context(), conn, "Talk")
	_, err := drain(ss)
	a := answer{err: err, trailer: ss.Trailer()}
	if _, retry := a.details(t); a.code() != codes.ResourceExhausted || retry <= 0 ||
		a.one(t, "grpc-retry-pushback-ms") == "" {
		t.Error(a.err, a.trailer)
	}
}

func TestAStreamThatIsAbandonedGivesItsPlaceBack(t *testing.T) {
	inside := make(chan struct{})
	conn, g, log := protectStreams(t, places(1, 0), func(ss grpc.ServerStream) error {
		close(inside)
		<-ss.Context().Done()
		return ss.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	open(t, ctx, conn, "Talk")
	<-inside
	cancel()
	if done := log.await(t, inbound.RequestDone, 1); done[0].Class != abate.Ignored || g.State().Shed.InFlight != 0 {
		t.Errorf("%+v", done)
	}
}

// costlessStream is a stream that counts what is sent.
type costlessStream struct {
	grpc.ServerStream
	ctx  context.Context
	sent int
}

func (s *costlessStream) Context() context.Context { return s.ctx }
func (s *costlessStream) SendMsg(any) error        { s.sent++; return nil }
func (s *costlessStream) SetTrailer(metadata.MD)   {}

func TestTheGatesTimeLimitHoldsForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := abategrpc.StreamServerInterceptor(newGate(t, inbound.Protection{Timeout: 500 * time.Millisecond}))
		ss, began := &costlessStream{ctx: arriving()}, time.Now()
		err := watch(nil, ss, &grpc.StreamServerInfo{FullMethod: "/shop.Payment/Watch", IsServerStream: true},
			func(_ any, ss grpc.ServerStream) error {
				_ = ss.SendMsg(new(text))
				<-ss.Context().Done()
				return ss.Context().Err()
			})
		if took := time.Since(began); ss.sent != 1 || !errors.Is(err, context.DeadlineExceeded) ||
			took != 500*time.Millisecond {
			t.Errorf("%d messages, %v after %v", ss.sent, err, took)
		}
	})
}

func TestAStreamReportsToo(t *testing.T) {
	conn, _, _ := protectStreams(t, trusting(inbound.Protection{}), func(ss grpc.ServerStream) error {
		a, limited := core.CallTreeOf(ss.Context()).Allowance()
		if !limited || a.Left != 3 || a.Owner != "edge" {
			t.Errorf("%+v, %v", a, limited)
		}
		return nil
	})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "abate-retry-allowance", `3;owner="edge"`)
	ss := open(t, ctx, conn, "Watch")
	if _, err := drain(ss); err != nil {
		t.Fatal(err)
	}
	if got := ss.Trailer()["abate-retries-made"]; len(got) != 1 || got[0] != "0" {
		t.Error(got)
	}
}

func TestAPanicInAStreamGivesThePlaceBack(t *testing.T) {
	log := new(gateLog)
	p := places(1, 0)
	p.Observer = log
	g := newGate(t, p)
	caught := make(chan any, 1)
	outer := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			caught <- recover()
			err = status.Error(codes.Internal, "panic")
		}()
		return next(srv, ss)
	}
	s := &shop{talk: func(grpc.ServerStream) error { panic("boom") }}
	conn := s.serve(t, append([]grpc.ServerOption{grpc.ChainStreamInterceptor(outer)}, abategrpc.ServerOptions(g)...)...)
	if _, err := drain(open(t, t.Context(), conn, "Talk")); status.Code(err) != codes.Internal || <-caught != "boom" {
		t.Error(err)
	}
	if done := log.await(t, inbound.RequestDone, 1); done[0].Class != abate.Failure || g.State().Shed.InFlight != 0 {
		t.Errorf("%+v", done)
	}
}

func TestTheGatesTimeLimitEndsAWaitForTheClient(t *testing.T) {
	p := places(1, 0)
	p.Timeout = 20 * time.Millisecond
	conn, _, _ := protectStreams(t, p, func(ss grpc.ServerStream) error {
		for {
			if err := ss.RecvMsg(new(text)); err != nil {
				if again := ss.RecvMsg(new(text)); status.Code(again) != codes.DeadlineExceeded {
					t.Errorf("reading again: %v", again)
				}
				return err
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 { // the first has given its place back
		if _, err := drain(open(t, ctx, conn, "Talk")); status.Code(err) != codes.DeadlineExceeded || ctx.Err() != nil {
			t.Errorf("%v, the client's own limit: %v", err, ctx.Err())
		}
	}
}
