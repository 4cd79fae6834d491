package hops

import (
	"strconv"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// Code is a gRPC status code. The numbers are gRPC's.
type Code uint32

// The codes that decide something here.
const (
	OK                Code = 0
	Canceled          Code = 1
	Unknown           Code = 2
	DeadlineExceeded  Code = 4
	PermissionDenied  Code = 7
	ResourceExhausted Code = 8
	Unimplemented     Code = 12
	Internal          Code = 13
	Unavailable       Code = 14
	DataLoss          Code = 15
	Unauthenticated   Code = 16
)

// String is the code's name as in the specification of gRPC, such as UNAVAILABLE.
func (c Code) String() string {
	if int(c) < len(core.GRPCCodes) {
		return core.GRPCCodes[c]
	}
	return "CODE(" + strconv.FormatUint(uint64(c), 10) + ")"
}

// ParseStatus reads the value of grpc-status. What is no number is Unknown.
func ParseStatus(value string) Code {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return Unknown
	}
	return Code(n)
}

// CodeOfHTTP is the code of an answer that has no grpc-status, by its HTTP status: gRPC's own table.
func CodeOfHTTP(status int) Code {
	switch status {
	case 400:
		return Internal
	case 401:
		return Unauthenticated
	case 403:
		return PermissionDenied
	case 404:
		return Unimplemented
	case 429, 502, 503, 504:
		return Unavailable
	}
	return Unknown
}

// ServedCode returns what the code of an answer says about the service behind a gate; see ServedClass.
func ServedCode(c Code) abate.Class {
	class, _ := judge(c)
	return class
}

// judge returns what a code says about the server, and whether another attempt may succeed.
func judge(c Code) (class abate.Class, passes bool) {
	switch c {
	case ResourceExhausted:
		return abate.Overload, true
	case Unavailable, DeadlineExceeded:
		return abate.Failure, true
	case Unknown, Internal, DataLoss, Canceled:
		return abate.Failure, false
	}
	if c > Unauthenticated {
		return abate.Failure, false // nobody knows it: UNKNOWN
	}
	return abate.Success, false // it answered, and well: the rest is the caller's doing, or business
}

// ClassifyCode judges an attempt of g by the code of its answer; again reports whether the call may be sent again, see
// RepeatableCall; p and b are what the answer said about that. err is the attempt's error. What the caller did is not
// judged here.
func ClassifyCode(g *abate.Guard, c Code, again bool, p Pushback, b core.Below, err error) abate.Outcome {
	class, passes := judge(c)
	o := abate.Outcome{Class: class, Below: b, Err: err}
	if c == OK {
		o.Below.Final = false
		return o
	}
	retryable := g.RetryableCode(uint32(c), passes)
	if o.Class == abate.Success {
		if !retryable {
			o.Below.Final = false
			return o
		}
		o.Class = abate.Failure
	}
	o.Below.Final = o.Below.Final || p.Never // the callers of this one should not repeat it either
	o.NoRetry = !again || !retryable || o.Below.Final
	if o.RetryAfter = p.Wait; p.Wait > 0 {
		o.Class = abate.Overload
	}
	return o
}

// RepeatableCall reports whether a gRPC method may be called twice for one intent: the call is keyed (it has an
// idempotency key, or its method is declared idempotent), the policy's RetryMethods name the method
// ("/shop.Payment/Get", or "/shop.Payment/*" for all of a service), or its RetryOn names codes of gRPC: who does that
// has thought about it.
func RepeatableCall(p *abate.Policy, method string, keyed bool) bool {
	if keyed || p.RetriesCodes() {
		return true
	}
	for _, m := range p.RetryMethods {
		if Covers(m, method) {
			return true
		}
	}
	return false
}

// Covers reports whether pattern is the full name of a gRPC method ("/shop.Payment/Get"), or stands for all of its
// service ("/shop.Payment/*").
func Covers(pattern, method string) bool {
	n := len(pattern) - 1
	return pattern == method ||
		n > 1 && pattern[n] == '*' && pattern[n-1] == '/' && len(method) > n && method[:n] == pattern[:n]
}
