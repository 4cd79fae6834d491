package abategrpc

import (
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
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

	runningReason = []string{serving.KeyRunning.Code}
)

// ErrorDomain is the domain of the google.rpc.ErrorInfo in every refusal of a Server. Its reason is the refusal's
// stable code: one of rate-limited, overloaded, deadline, client-left, unauthenticated, and for idempotency keys
// those that begin with "idempotency-". Its metadata name the gate as service, and say why an overloaded one chose
// this call to refuse as shed.
const ErrorDomain = "abate"

// keyUnknownType is the one refusal that only this adapter has.
var keyUnknownType = serving.Problem{
	Status: 501, Code: "idempotency-not-protobuf", RPC: hops.Unimplemented,
	Detail: "the messages of this method are not protobuf, so calls with an Idempotency-Key cannot be compared and stored",
}

// The types of the details.
const (
	errorInfoType = "type.googleapis.com/google.rpc.ErrorInfo"
	retryInfoType = "type.googleapis.com/google.rpc.RetryInfo"
)

// errorOf is a refusal as a status with its details. They are written by hand, because under overload most calls end
// here, and reflection would be the dearest part of it.
func errorOf(p *serving.Problem, gate, more string, why shed.Reason, wait time.Duration) error {
	gate = strings.ToValidUTF8(gate, "\uFFFD") // else the status could not be sent
	message := gate + ": " + p.Detail
	if more != "" {
		message += ": " + more
	}
	s := &status.Status{Code: int32(p.RPC), Message: message, Details: make([]*anypb.Any, 1, 2)}
	s.Details[0] = &anypb.Any{TypeUrl: errorInfoType, Value: encodeErrorInfo(p.Code, gate, why)}
	if wait > 0 {
		s.Details = append(s.Details, &anypb.Any{TypeUrl: retryInfoType, Value: encodeRetryInfo(wait)})
	}
	return grpcstatus.ErrorProto(s)
}

// encodeErrorInfo makes a google.rpc.ErrorInfo: reason 1, domain 2, metadata 3.
func encodeErrorInfo(reason, gate string, why shed.Reason) []byte {
	b := make([]byte, 0, 96+len(gate))
	b = appendText(b, 1, reason)
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
