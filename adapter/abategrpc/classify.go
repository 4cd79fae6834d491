package abategrpc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

// Classify is a Policy.Classify for functions under abate.Do that call gRPC clients without this package's
// interceptors: UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED are retried, UNKNOWN, INTERNAL, DATA_LOSS and
// CANCELLED are failures that are not, and the other codes are good answers to bad questions, for which the call ends
// at once. A google.rpc.RetryInfo among the details makes the failure an overload and is a lower bound for the wait. An
// error that is no status is a failure that is retried.
func Classify(err error) abate.Outcome {
	st, ok := status.FromError(err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			st = status.FromContextError(err)
		} else {
			return abate.Outcome{Class: abate.Failure, Err: err}
		}
	}
	return verdict(plainGuard(), st, evidence{again: true}, err)
}

// plainGuard has no opinion about codes.
var plainGuard = sync.OnceValue(func() *abate.Guard {
	g, err := abate.New("grpc", abate.Policy{})
	if err != nil {
		panic(err)
	}
	return g
})

// evidence is what is known of an attempt besides its status.
type evidence struct {
	again   bool // the call may be repeated
	unsent  bool // it has certainly not reached the server
	trailer metadata.MD
}

// judge classifies an attempt that ended with err, nil for success. What the caller has cancelled is not judged here.
func judge(g *abate.Guard, e evidence, err error) abate.Outcome {
	switch {
	case err == nil && len(e.trailer) == 0:
		return abate.Outcome{}
	case err == nil:
		o := abate.Outcome{Below: hops.MostMade(e.trailer[madeName])}
		o.Below.Final = false
		return o
	}
	return verdict(g, statusOf(err), e, err)
}

func verdict(g *abate.Guard, st *status.Status, e evidence, err error) abate.Outcome {
	if callersFault(st, e.unsent, err) {
		return abate.Outcome{Class: abate.Ignored, NoRetry: true, Unsent: e.unsent, Err: err}
	}
	p := hops.ParsePushback(e.trailer[pushbackName])
	p.Wait = max(p.Wait, pauseIn(st))
	b := hops.MostMade(e.trailer[madeName])
	b.Final = b.Final || p.Never // who may not be asked again by us should not be asked again by our callers
	code := hops.Code(st.Code())
	running := st.Code() == codes.Aborted && slices.Equal(e.trailer[reasonName], runningReason)
	if running {
		code = hops.Unavailable // an earlier copy with the same key is at work: not an answer, and it will be there later
	}
	o := hops.ClassifyCode(g, code, e.again || e.unsent, p, b, err)
	o.Unsent, o.Neutral = e.unsent, running
	o.Below.Final = o.Below.Final && o.Class != abate.Success
	return o
}

// statusOf is status.Convert, which also knows the errors of contexts.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	return status.FromContextError(err)
}

// pauseIn returns the pause that a google.rpc.RetryInfo asks for, the longest of several, 0 without one.
func pauseIn(st *status.Status) (longest time.Duration) {
	if len(st.Proto().GetDetails()) == 0 {
		return 0
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay().IsValid() {
			longest = max(longest, info.GetRetryDelay().AsDuration())
		}
	}
	return longest
}

// unsendable is how grpc-go begins the errors about messages that are too large to send or take, or cannot be written.
// They have no types. Some may come from the server, for the same reason: another attempt finds the same, and nobody
// has too much to do.
var unsendable = []string{
	"grpc: error while marshaling", "trying to send message larger than max",
	"grpc: trying to send message larger than max",
	"grpc: message too large", "grpc: received message larger than max",
	"grpc: received message after decompression larger than max",
	"grpc: message after decompression larger than max",
}

// callersFault reports whether an attempt failed for something that the caller did, and that says nothing about the
// dependency.
func callersFault(st *status.Status, unsent bool, err error) bool {
	switch st.Code() {
	case codes.Canceled:
		//lint:ignore SA1019 there is no other way to know that the caller has closed the connection
		return errors.Is(err, grpc.ErrClientConnClosing)
	case codes.Internal, codes.ResourceExhausted:
		if unsent && st.Code() == codes.Internal { // bad metadata, an unknown codec or compressor
			return true
		}
		for _, begin := range unsendable {
			if strings.HasPrefix(st.Message(), begin) {
				return true
			}
		}
	}
	return false
}

// callError is the end of a call in which the policy had a say: an *abate.Error as an error of gRPC.
type callError struct{ end *abate.Error }

// wrap makes what Run returned an error of gRPC.
func wrap(err error) error {
	if abate.Reason(err) == nil {
		return err
	}
	var e *abate.Error
	errors.As(err, &e)
	return &callError{e}
}

func (e *callError) Error() string { return e.end.Error() }

// Unwrap lets errors.Is and errors.As see the *abate.Error and all that is in it.
func (e *callError) Unwrap() error { return e.end }

// GRPCStatus is what status.Code and status.FromError see: the last attempt's status, with its details, if there was
// one. It goes to the client of a handler that returns it, so it does not tell of the other calls that opened a
// circuit.
func (e *callError) GRPCStatus() *status.Status {
	switch {
	case e.end.Reason == context.Canceled:
		return status.New(codes.Canceled, e.Error())
	case e.end.Err != nil:
		if st := statusOf(e.end.Err); st.Code() != codes.OK {
			return st
		}
	}
	public := *e.end
	public.Opened = ""
	return status.New(codeOfReason(e.end.Reason), public.Error())
}

// codeOfReason is the code of a call that a guard has refused.
func codeOfReason(reason error) codes.Code {
	switch {
	case errors.Is(reason, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case reason == context.Canceled:
		return codes.Canceled
	case reason == abate.ErrRateLimited:
		return codes.ResourceExhausted
	}
	return codes.Unavailable
}
