package abategrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
)

func TestClassify(t *testing.T) {
	info := func(c codes.Code, d time.Duration) error {
		st, err := status.New(c, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	code := func(c codes.Code) error { return status.Error(c, "no") }
	for _, c := range []struct {
		err   error
		class abate.Class
		final bool
		after time.Duration
	}{
		{code(codes.Unavailable), abate.Failure, false, 0},
		{fmt.Errorf("charge: %w", code(codes.Unavailable)), abate.Failure, false, 0},
		{code(codes.DeadlineExceeded), abate.Failure, false, 0},
		{code(codes.ResourceExhausted), abate.Overload, false, 0},
		{code(codes.Unknown), abate.Failure, true, 0},
		{code(codes.Internal), abate.Failure, true, 0},
		{code(codes.DataLoss), abate.Failure, true, 0},
		{code(codes.Canceled), abate.Failure, true, 0},
		{code(codes.NotFound), abate.Success, false, 0},
		{code(codes.Unauthenticated), abate.Success, false, 0},
		{code(codes.Code(99)), abate.Failure, true, 0},
		{info(codes.Unavailable, time.Second), abate.Overload, false, time.Second},
		{info(codes.ResourceExhausted, -time.Second), abate.Overload, false, 0},
		{info(codes.NotFound, time.Second), abate.Success, false, 0},
		{context.DeadlineExceeded, abate.Failure, false, 0},
		{errors.New("connection reset"), abate.Failure, false, 0},
		{code(codes.ResourceExhausted + 0), abate.Overload, false, 0},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), abate.Ignored, true, 0},
		{status.Error(codes.Internal, "grpc: error while marshaling: x"), abate.Ignored, true, 0},
		//lint:ignore SA1019 it is what a closed connection gives
		{grpc.ErrClientConnClosing, abate.Ignored, true, 0},
	} {
		o := abategrpc.Classify(c.err)
		if o.Class != c.class || o.Class == abate.Failure && o.NoRetry != c.final || o.RetryAfter != c.after ||
			o.Err != c.err {
			t.Errorf("%v: %+v", c.err, o)
		}
	}
}

func TestClassifyServesDo(t *testing.T) {
	p := eager()
	p.Classify = abategrpc.Classify
	g := guard(t, p)
	for _, c := range []struct {
		code  codes.Code
		calls int
	}{{codes.Unavailable, 4}, {codes.Internal, 1}, {codes.NotFound, 1}} {
		calls := 0
		_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) {
			calls++
			return 0, status.Error(c.code, "no")
		})
		if calls != c.calls || status.Code(err) != c.code {
			t.Errorf("%v: error %v after %d calls", c.code, err, calls)
		}
	}
}

func TestMethodsThatAreDeclaredIdempotentAreRepeated(t *testing.T) {
	level := func(l descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodOptions {
		return &descriptorpb.MethodOptions{IdempotencyLevel: l.Enum()}
	}
	empty := proto.String(".google.protobuf.Empty")
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("abategrpc_test.proto"), Package: proto.String("declared"), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/empty.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Store"),
			Method: []*descriptorpb.MethodDescriptorProto{
				{Name: proto.String("Get"), InputType: empty, OutputType: empty,
					Options: level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS)},
				{Name: proto.String("Put"), InputType: empty, OutputType: empty,
					Options: level(descriptorpb.MethodOptions_IDEMPOTENT)},
				{Name: proto.String("Add"), InputType: empty, OutputType: empty,
					Options: level(descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN)},
				{Name: proto.String("Sub"), InputType: empty, OutputType: empty},
			}}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := protoregistry.GlobalFiles.FindFileByPath(file.Path()); err != nil { // not yet, unless the test runs twice
		if err := protoregistry.GlobalFiles.RegisterFile(file); err != nil {
			t.Fatal(err)
		}
	}
	p := eager()
	p.RetryMethods = nil
	client := abategrpc.NewClient(guard(t, p))
	for name, want := range map[string]int{"Get": 4, "Put": 4, "Add": 1, "Sub": 1, "None": 1} {
		calls := 0
		_ = client.Unary(t.Context(), "/declared.Store/"+name, nil, nil,
			nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				calls++
				return errNo
			})
		if calls != want {
			t.Errorf("%s was called %d times, not %d", name, calls, want)
		}
	}
}

func TestRefusalsBeforeAnyAttemptHaveCodes(t *testing.T) {
	client := abategrpc.NewClient(guard(t, abate.Policy{Timeout: time.Second}))
	fine := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for ctx, want := range map[context.Context]codes.Code{late: codes.DeadlineExceeded, gone: codes.Canceled} {
		err := client.Unary(ctx, chargeMethod, nil, nil, nil, fine)
		if status.Code(err) != want || !errors.Is(err, ctx.Err()) {
			t.Errorf("error %v, not %v", err, want)
		}
		_, err = client.Stream(ctx, kinds["Talk"], nil, "/shop.Payment/Talk", nil)
		if status.Code(err) != want {
			t.Errorf("stream: error %v, not %v", err, want)
		}
	}
}

func TestAGuardThatIsNotThereChangesNothing(t *testing.T) {
	var client abategrpc.Client
	err := client.Unary(t.Context(), chargeMethod, nil, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return errNo
		})
	if err != errNo {
		t.Errorf("error %v", err)
	}
	_, err = client.Stream(t.Context(), kinds["Talk"], nil, "/shop.Payment/Talk",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, errNo
		})
	if err != errNo {
		t.Errorf("error %v", err)
	}
}

// What a handler returns of a call that it made goes to its own client, who may be anybody: another call's failure is
// not for them.
func TestAStatusDoesNotShowAnotherCallsFailure(t *testing.T) {
	p := eager()
	p.MaxRetries, p.CircuitBreaker = 0, staysOpen(1)
	b := stand(t, abategrpc.NewClient(guard(t, p)), func(int, context.Context, *text) (*text, error) {
		return nil, status.Error(codes.Unavailable, "somebody else's secret")
	}, nil)
	_, _ = b.call(t.Context())
	_, err := b.call(t.Context())
	var refusal *abate.Error
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Opened, "secret") ||
		!strings.Contains(err.Error(), "secret") {
		t.Fatalf("%v", err)
	}
	if got := status.Convert(err).Message(); got != "payments: circuit open, call refused" {
		t.Errorf("%q", got)
	}
}
