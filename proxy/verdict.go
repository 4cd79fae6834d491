package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// headWait is how long the head of a gRPC answer waits for its first message while the call could still be repeated:
// servers send both together, unless the call fails in between. A client that wants the head before it goes on gets
// it then.
var headWait = 10 * time.Millisecond

// overdue reports whether err is how the service ended a call whose deadline had passed: servers of gRPC, grpc-go's
// among them, then cancel the stream.
func (a *answer) overdue(err error) bool {
	var end *h2.StreamError
	return a.req.rpc && errors.As(err, &end) && end.Peer && end.Code == h2.Cancel && core.Now() >= a.head.deadline
}

// verdict is the status of a gRPC answer, and what stands beside it.
type verdict struct {
	known    bool
	code     hops.Code
	message  string // lies in the answer
	pushback hops.Pushback
	below    core.Below
}

// read takes the verdict from the fields that an answer ends with: its trailer, or its only head. Without a status, and
// with several that differ, it is UNKNOWN.
func (v *verdict) read(fields []h1.Field) {
	v.known, v.code = true, hops.Unknown
	v.below = calltree.MadeIn(fields)
	stated := ""
	var waits []string
	for _, f := range fields {
		switch {
		case f.Is("grpc-status"):
			if value := text(f.Value); stated == "" {
				stated, v.code = value, hops.ParseStatus(value)
			} else if value != stated {
				v.code = hops.Unknown
			}
		case f.Is("grpc-message"):
			v.message = text(f.Value)
		case f.Is("grpc-retry-pushback-ms"):
			waits = append(waits, text(f.Value))
		}
	}
	v.pushback = hops.ParsePushback(waits)
}

// statusError is a call that the service answered with a status that is not OK.
type statusError struct {
	code    hops.Code
	message string
}

func (e *statusError) Error() string {
	if e.message == "" {
		return "the service answered " + e.code.String()
	}
	return "the service answered " + e.code.String() + ": " + e.message
}

// awaitVerdict looks at the beginning of a gRPC answer, of which the head is there. If it has a message, the verdict
// comes after that, and the answer must go on to the client; it may be the head alone that must, if no message comes
// soon.
func (a *answer) awaitVerdict(mayRepeat bool) error {
	v, r := &a.verdict, &a.resp
	if r.Status != http.StatusOK {
		v.read(r.Fields)
		v.code = hops.CodeOfHTTP(r.Status)
		return nil
	}
	if r.Length == 0 {
		v.read(r.Fields)
		return nil
	}
	wait := time.Duration(0)
	if mayRepeat {
		wait = headWait
	}
	switch err := a.peek(min(a.until, later(core.Now(), wait))); {
	case err == nil && a.h2.complete && a.h2.first == nil:
		v.read(a.closingFields())
	case err != nil && !errors.Is(err, h2.ErrTimeUp):
		return err
	}
	return nil
}

// closingFields is the trailer with what services tell each other: trailer leaves that out.
func (a *answer) closingFields() []h1.Field {
	if a.h2.s != nil {
		return a.h2.s.Trailer()
	}
	return a.trailer()
}

// rpcCodeOf is the status of a call whose answer ended with err: gRPC's own table for the codes of HTTP/2.
func rpcCodeOf(err error) hops.Code {
	var reset *h2.StreamError
	var conn *h2.ConnError
	switch {
	case timedOut(err):
		return hops.DeadlineExceeded
	case errors.As(err, &reset) && !reset.Peer && reset.Code == h2.ProtocolError && !errors.As(err, &conn):
		return hops.Internal
	case errors.As(err, &reset) && reset.Peer && reset.Cause == nil:
		switch reset.Code {
		case h2.RefusedStream:
			return hops.Unavailable
		case h2.Cancel:
			return hops.Canceled
		case h2.EnhanceYourCalm:
			return hops.ResourceExhausted
		case h2.InadequateSecurity:
			return hops.PermissionDenied
		}
		return hops.Internal
	}
	return hops.Unavailable
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
