package abategrpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
)

// The names of metadata. grpc-go has them in lower case.
const (
	allowanceName    = "abate-retry-allowance"
	madeName         = "abate-retries-made"
	pushbackName     = "grpc-retry-pushback-ms"
	attemptsName     = "grpc-previous-rpc-attempts"
	attemptCountName = "x-envoy-attempt-count"
	timeLeftName     = "x-envoy-expected-rq-timeout-ms"
	ratelimitedName  = "x-envoy-ratelimited"
	forwardedName    = "x-forwarded-for"
	keyName          = "idempotency-key"
	xKeyName         = "x-idempotency-key"
	replayedName     = "idempotency-replayed"
	reasonName       = "abate-reason"
)

// Values that many answers share. They are only read.
var (
	minusOne = []string{"-1"}
	yes      = []string{"true"}
)

// ErrorDomain is the domain of the google.rpc.ErrorInfo in every refusal of a Server. Its reason is the refusal's stable code: one
// of rate-limited, overloaded, deadline, client-left, unauthenticated, and for idempotency keys those that begin with "idempotency-". Its metadata
// name the gate as service, and say why an overloaded one chose this call to refuse as shed.
const ErrorDomain = "abate"

// refusal is a way to say no. Which code it has decides what clients do by themselves: UNAVAILABLE is what they repeat, and
// may; what only people can mend has a code that nobody repeats.
type refusal struct {
	code   codes.Code
	reason string
	detail string
}

var (
	rateLimited     = refusal{codes.ResourceExhausted, "rate-limited", "the rate limit of the service allows no further call now"}
	neverAllowed    = refusal{codes.ResourceExhausted, "rate-limited", "the rate limit of the service will never allow this call"}
	overloaded      = refusal{codes.Unavailable, "overloaded", "the service has more to do than it can"}
	deadlinePassed  = refusal{codes.DeadlineExceeded, "deadline", "the deadline of the call has passed"}
	clientLeft      = refusal{codes.Canceled, "client-left", "the client has left"}
	refused         = refusal{codes.Unavailable, "refused", "the service refused the call"}
	unauthenticated = refusal{codes.Unauthenticated, "unauthenticated", "the service takes calls of callers that it knows, and this one has not said who it is"}

	keyMissing       = refusal{codes.InvalidArgument, "idempotency-key-missing", "the call needs the metadata idempotency-key, with a key of 1 to 255 characters that is new for each intent and the same for its repeats"}
	keyInvalid       = refusal{codes.InvalidArgument, "idempotency-key-invalid", "the metadata idempotency-key cannot be used"}
	keyRunning       = refusal{codes.Aborted, "idempotency-running", "a call with this idempotency-key is still being done; its answer will be there later"}
	keyMismatch      = refusal{codes.FailedPrecondition, "idempotency-mismatch", "this idempotency-key was used for another call; take a new one for a new intent"}
	keyNotStored     = refusal{codes.AlreadyExists, "idempotency-not-stored", "the call with this idempotency-key has been done; its answer could not be kept"}
	keyEffectUnknown = refusal{codes.FailedPrecondition, "idempotency-effect-unknown", "an earlier try with this idempotency-key reached the service and brought no answer that could be kept; nobody can say whether it took effect, so it is not run again"}
	keyUnavailable   = refusal{codes.Unavailable, "idempotency-unavailable", "where idempotency keys are kept cannot be reached or is full, so nobody can tell whether this call was done before"}
	keyUnrecorded    = refusal{codes.Unavailable, "idempotency-unrecorded", "what this call came to could not be recorded yet; send it again with the same idempotency-key to learn it"}
	keyUnknownType   = refusal{codes.Unimplemented, "idempotency-not-protobuf", "the messages of this method are not protobuf, so calls with an idempotency-key cannot be compared and stored"}
)

// refusalOf chooses the one for what a gate refused.
func refusalOf(r *abate.Refusal) *refusal {
	switch {
	case r.Reason == abate.ErrRateLimited && r.NoRetry:
		return &neverAllowed
	case r.Reason == abate.ErrRateLimited:
		return &rateLimited
	case r.Reason == abate.ErrDeadline, r.Reason == abate.ErrOverloaded && r.Shed == shed.Expired:
		return &deadlinePassed
	case r.Reason == abate.ErrOverloaded:
		return &overloaded
	case r.Reason == context.Canceled:
		return &clientLeft
	}
	return &refused
}

// turnAway is the refusal of the gate, for the client.
func (x *exchange) turnAway() error {
	r := x.arrival.Refusal()
	why := refusalOf(r)
	x.tellRefusal(why, r.RetryAfter, r.NoRetry)
	return why.err(x.gate.Name(), "", r.Shed, r.RetryAfter)
}

// refuse is a refusal that is not the gate's own.
func (x *exchange) refuse(why *refusal, detail string, wait time.Duration) error {
	x.tellRefusal(why, wait, false)
	return why.err(x.gate.Name(), detail, shed.None, wait)
}

// tellRefusal puts into the trailers what every client can read.
func (x *exchange) tellRefusal(why *refusal, wait time.Duration, never bool) {
	md := make(metadata.MD, 4)
	md[reasonName] = []string{why.reason}
	switch {
	case never:
		md[pushbackName] = minusOne
		if x.envoy {
			md[ratelimitedName] = yes
		}
	case wait > 0:
		md[pushbackName] = []string{string(hops.AppendPushback(nil, hops.Pushback{Wait: wait}))}
	}
	if x.asked {
		md[madeName] = []string{string(hops.AppendMade(nil, abate.Below{Final: never}))}
	}
	x.trail(md)
}

// isRunning tells whether a server said that another try with the key of the call is running.
func isRunning(reason []string) bool { return len(reason) == 1 && reason[0] == keyRunning.reason }

// The types of the details.
const (
	errorInfoType = "type.googleapis.com/google.rpc.ErrorInfo"
	retryInfoType = "type.googleapis.com/google.rpc.RetryInfo"
)

// err is the status with its details. They are written by hand, because under overload most calls end here, and reflection would be
// the dearest part of it.
func (r *refusal) err(gate, more string, why shed.Reason, wait time.Duration) error {
	gate = strings.ToValidUTF8(gate, "\uFFFD") // else the status could not be sent
	message := gate + ": " + r.detail
	if more != "" {
		message += ": " + more
	}
	s := &status.Status{Code: int32(r.code), Message: message, Details: make([]*anypb.Any, 1, 2)}
	s.Details[0] = &anypb.Any{TypeUrl: errorInfoType, Value: r.encodeErrorInfo(gate, why)}
	if wait > 0 {
		s.Details = append(s.Details, &anypb.Any{TypeUrl: retryInfoType, Value: encodeRetryInfo(wait)})
	}
	return grpcstatus.ErrorProto(s)
}

// encodeErrorInfo makes a google.rpc.ErrorInfo: reason 1, domain 2, metadata 3.
func (r *refusal) encodeErrorInfo(gate string, why shed.Reason) []byte {
	b := make([]byte, 0, 96+len(gate))
	b = appendText(b, 1, r.reason)
	b = appendText(b, 2, ErrorDomain)
	b = appendEntry(b, "service", gate)
	if why != shed.None {
		b = appendEntry(b, "shed", why.String())
	}
	return b
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// appendEntry appends an entry of the map.
func appendEntry(b []byte, key, value string) []byte {
	size := protowire.SizeTag(1) + protowire.SizeBytes(len(key)) + protowire.SizeTag(2) + protowire.SizeBytes(len(value))
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.BytesType), uint64(size))
	return appendText(appendText(b, 1, key), 2, value)
}

// encodeRetryInfo makes a google.rpc.RetryInfo: retry_delay 1, a google.protobuf.Duration of seconds 1 and nanos 2.
func encodeRetryInfo(wait time.Duration) []byte {
	seconds, nanos := uint64(wait/time.Second), uint64(wait%time.Second)
	size := protowire.SizeTag(1) + protowire.SizeVarint(seconds) + protowire.SizeTag(2) + protowire.SizeVarint(nanos)
	b := make([]byte, 0, 2+size)
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.BytesType), uint64(size))
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), seconds)
	return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), nanos)
}

// refusalForKey chooses the one for a call that is being done, or has been. wait is how long to stay away.
func (x *exchange) refusalForKey(b *idempotency.Begun) (why *refusal, wait time.Duration) {
	switch {
	case b.State == idempotency.Running:
		return &keyRunning, x.gate.ComeBack()
	case b.State == idempotency.Mismatch:
		return &keyMismatch, 0
	case b.Response.EffectUnknown():
		return &keyEffectUnknown, 0
	}
	return &keyNotStored, 0
}
