package abategrpc_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/hedge"
)

// hasty sends a second copy after a millisecond.
func hasty() abate.Policy {
	return abate.Policy{Hedge: hedge.Config{Delay: time.Millisecond}, RetryMethods: []string{"/shop.Payment/*"}}
}

func TestAHedgeWinsAndTheLoserIsCancelled(t *testing.T) {
	lost := make(chan struct{})
	b := stand(t, abategrpc.NewClient(guard(t, hasty())), func(n int, ctx context.Context, _ *text) (*text, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("h", strconv.Itoa(n)))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("t", strconv.Itoa(n)))
		if n == 1 {
			<-ctx.Done()
			close(lost)
			return nil, ctx.Err()
		}
		return wrapperspb.String("copy " + strconv.Itoa(n)), nil
	}, nil)
	var header, trailer metadata.MD
	out := wrapperspb.String("stale")
	err := b.conn.Invoke(t.Context(), chargeMethod, wrapperspb.String("x"), out, grpc.Header(&header),
		grpc.Trailer(&trailer))
	if err != nil || out.Value != "copy 2" || header.Get("h")[0] != "2" || trailer.Get("t")[0] != "2" {
		t.Errorf("%q, error %v, header %v, trailer %v", out.Value, err, header, trailer)
	}
	<-lost
	if said := b.said("grpc-previous-rpc-attempts"); strings.Join(said, "") != "1" { // in whichever order they came
		t.Errorf("the copies said %q", said)
	}
}

// The caller gets his messages back with the answer, whatever a copy that has lost still does with its own. It is for
// -race.
func TestCopiesTouchNeitherRequestNorReplyOfTheCaller(t *testing.T) {
	p := hasty()
	p.Hedge.MaxHedges = 3
	client := abategrpc.NewClient(guard(t, p))
	var copies atomic.Int32
	slow := func(ctx context.Context, _ string, req, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		n := copies.Add(1)
		pause := time.NewTimer(time.Duration(5-n) * 700 * time.Microsecond) // about as long as the copies come apart
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done(): // and it does not stop at once
		}
		reply.(*text).Value = req.(*text).Value + " done"
		return ctx.Err()
	}
	for i := range 200 {
		copies.Store(0)
		req, reply := wrapperspb.String(strconv.Itoa(i)), new(text)
		if err := client.Unary(t.Context(), chargeMethod, req, reply, nil, slow); err != nil {
			t.Fatal(err)
		}
		if reply.Value != strconv.Itoa(i)+" done" {
			t.Fatalf("call %d got %q", i, reply.Value)
		}
		req.Value, reply.Value = "", ""
	}
}

func TestRepliesOfAHedgeReplaceTheCallers(t *testing.T) {
	var n atomic.Int32
	client := abategrpc.NewClient(guard(t, hasty()))
	two := func(ctx context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		l := reply.(*structpb.ListValue)
		if n.Add(1) == 1 { // fills in half of it, and hangs
			l.Values = append(l.Values, structpb.NewStringValue("half"))
			<-ctx.Done()
			return ctx.Err()
		}
		l.Values = append(l.Values, structpb.NewNumberValue(1), structpb.NewNumberValue(2))
		return nil
	}
	reply := new(structpb.ListValue)
	if err := client.Unary(t.Context(), chargeMethod, wrapperspb.String("x"), reply, nil, two); err != nil {
		t.Fatal(err)
	}
	if len(reply.Values) != 2 || reply.Values[0].GetNumberValue() != 1 {
		t.Errorf("reply %v", reply)
	}
}

// watchedText is a reply that is told when nobody but its copy may look at it.
type watchedText struct {
	*text
	busy  atomic.Bool
	asked atomic.Int32 // while it was
}

func (w *watchedText) ProtoReflect() protoreflect.Message {
	if w.busy.Load() {
		w.asked.Add(1)
	}
	return w.text.ProtoReflect()
}

// A codec resets the message that it reads an answer into: who asks it anything meanwhile races with that.
func TestNobodyLooksAtAReplyThatACopyIsReadInto(t *testing.T) {
	client := abategrpc.NewClient(guard(t, hasty()))
	reply := &watchedText{text: wrapperspb.String("stale")}
	err := client.Unary(t.Context(), chargeMethod, wrapperspb.String("x"), reply,
		nil, func(ctx context.Context, _ string, _, to any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			if w, ok := to.(*watchedText); ok { // the first copy
				w.busy.Store(true)
				defer w.busy.Store(false)
				<-ctx.Done()
				return ctx.Err()
			}
			to.(*text).Value = "the second"
			return nil
		})
	if err != nil || reply.Value != "the second" || reply.asked.Load() != 0 {
		t.Errorf("%q, error %v; it was asked %d times", reply.Value, err, reply.asked.Load())
	}
}

func TestWhatMustNotBeRepeatedIsNotHedged(t *testing.T) {
	p := hasty()
	p.RetryMethods = nil
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := abategrpc.NewClient(guard(t, p)).Unary(ctx, chargeMethod, wrapperspb.String("x"), new(text), nil,
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				calls++
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			})
		if status.Code(err) != codes.DeadlineExceeded || calls != 1 {
			t.Errorf("error %v after %d calls", err, calls)
		}
	})
}

// plain is a codec whose messages are strings: no copy of one can be made without knowing it.
type plain struct{}

func (plain) Marshal(v any) ([]byte, error)   { return []byte(*v.(*string)), nil }
func (plain) Unmarshal(b []byte, v any) error { *v.(*string) = string(b); return nil }
func (plain) Name() string                    { return "plain" }

func init() { encoding.RegisterCodec(plain{}) } // at no other time may one be registered

func TestOtherCodecsAreRetriedAndNotHedged(t *testing.T) {
	p := hasty()
	p.Retry = eager().Retry
	var calls atomic.Int32
	client := abategrpc.NewClient(guard(t, p))
	reply := ""
	err := client.Unary(t.Context(), chargeMethod, new(string), &reply, nil,
		func(ctx context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			if calls.Add(1) < 3 {
				pause := time.NewTimer(30 * time.Millisecond)
				<-pause.C // long enough for a hedge
				return status.Error(codes.Unavailable, "no")
			}
			*reply.(*string) = "yes"
			return nil
		})
	if err != nil || reply != "yes" || calls.Load() != 3 {
		t.Errorf("%q, error %v, after %d calls", reply, err, calls.Load())
	}
}

func TestACallWhoseCopiesAllFailReturnsTheFailure(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, hasty())), func(_ int, _ context.Context, _ *text) (*text, error) {
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
		return nil, errNo
	}, nil)
	for range 50 {
		var trailer metadata.MD
		if _, err := b.call(t.Context(), grpc.Trailer(&trailer)); status.Code(err) != codes.Unavailable {
			t.Fatalf("error %v", err)
		}
	}
}
