package engine

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

// failures is what a caller sees of each kind of failed attempt: the error that a real client would get, so that
// retryOn in a policy means the same here.
var failures = [EndKinds]struct {
	status int
	err    error
}{
	RefusedConnection: {0, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
	Reset:             {0, &net.OpError{Op: "read", Err: syscall.ECONNRESET}},
	QueueFull:         {503, errors.New("503 Service Unavailable")},
	ServerError:       {500, errors.New("500 Internal Server Error")},
	Conflict:          {409, errors.New("409 Conflict")},
	BadGateway:        {502, errors.New("502 Bad Gateway")},
	TimedOut:          {0, context.DeadlineExceeded},
	Overloaded:        {503, errors.New("503 Service Unavailable, overloaded")},
	RateLimited:       {429, errors.New("429 Too Many Requests")},
	Expired:           {504, errors.New("504 Gateway Timeout, deadline")},
	NoConnection:      {0, &net.OpError{Op: "dial", Err: errors.New("too many connections")}},
}

// served is what an answer says to a gate about the service behind it. That its time was up when its turn came, the
// service answers as a gateway does whose time is up.
func served(end EndKind) abate.Class { return servedAs[end] }

var servedAs = func() (all [EndKinds]abate.Class) {
	for end := range EndKinds {
		all[end] = hops.ServedClass(failures[end].status)
	}
	all[TimedOut] = all[Expired]
	return all
}()

// errNoConnection is what an attempt gets that the guard for connections refused one.
var errNoConnection = errors.New("no connection: refused by the policy for connections")

// endOf returns how a call ended: by its last attempt, or by a policy before there was one.
func endOf(err error, attempts int, last EndKind) EndKind {
	if err == nil {
		return Answered
	}
	if attempts > 0 {
		return last
	}
	for _, r := range refusedBy {
		if r.reason == err { // the reason itself: every caller here is terse
			return r.end
		}
	}
	return TimedOut
}
