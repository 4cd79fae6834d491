package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// headWait is how long the head of a gRPC answer waits for its first message while the call could still be repeated: servers
// send both together, unless the call fails in between. A client that wants the head before it goes on gets it then.
var headWait = 10 * time.Millisecond

// grpcType is how the Content-Type of gRPC begins.
var grpcType = []byte("application/grpc")

// asksRPC tells whether the request is a gRPC call: it needs HTTP/2 all the way, and its answer ends with a status of its own.
func (x *exchange) asksRPC() bool {
	if !x.client.multiplexed() {
		return false
	}
	for _, f := range x.req.Fields {
		if f.Is("content-type") {
			return isRPC(f.Value)
		}
	}
	return false
}

// isRPC tells whether a media type is gRPC's. That of gRPC-Web is not: its status is part of the content.
func isRPC(mediaType []byte) bool {
	n := len(grpcType)
	return len(mediaType) >= n && bytes.EqualFold(mediaType[:n], grpcType) && (len(mediaType) == n || strings.IndexByte("+; ", mediaType[n]) >= 0)
}

// beginRPC reads what a gRPC call says about itself.
func (x *exchange) beginRPC() {
	x.delivered, x.tail, x.limit, x.before = false, x.tail[:0], abate.NoDeadline, 0
	if x.rpc = x.asksRPC(); !x.rpc {
		return
	}
	for _, f := range x.req.Fields { // what cannot be read is as if it were not there
		if f.Is("grpc-timeout") {
			if d, ok := hops.ParseGRPCTimeout(text(f.Value)); ok {
				x.limit = min(x.limit, later(x.began, d))
			}
		}
	}
}

// bound has the deadline of a gRPC call be the least of its client's, the gate's, and the policy's timeout, as the timeout of a
// service config is: a stream ends at it too. attemptTimeout is no part of it: what that bounds is the wait for the answer's
// beginning, and a stream may go on behind that.
func (x *exchange) bound(policy *abate.Policy, now, until time.Duration) {
	if x.limit = min(x.limit, until); policy.Timeout > 0 {
		x.limit = min(x.limit, later(now, policy.Timeout))
	}
}

// appendRPC tells the service which attempt this is, and how much time is left of the call: see bound.
func (a *answer) appendRPC(dst []byte, n int) []byte {
	if n > 1 {
		dst = append(dst, "Grpc-Previous-Rpc-Attempts: "...)
		dst = append(strconv.AppendInt(dst, int64(n-1), 10), "\r\n"...)
	}
	if a.deadline = a.x.limit; a.deadline != abate.NoDeadline {
		dst = append(dst, "Grpc-Timeout: "...)
		now, from := abate.Now(), len(dst)
		dst = hops.AppendGRPCTimeout(dst, a.deadline-now)
		if rounded, ok := hops.ParseGRPCTimeout(text(dst[from:])); ok {
			a.deadline = now + rounded
		}
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// overdue reports whether err is how the service ended a call whose deadline had passed: servers of gRPC, grpc-go's among them,
// then cancel the stream.
func (a *answer) overdue(err error) bool {
	var end *h2.StreamError
	return a.x.rpc && errors.As(err, &end) && end.Peer && end.Code == h2.Cancel && abate.Now() >= a.deadline
}

// method is the path of the request without its query: of a gRPC call, its method.
func (x *exchange) method() string {
	path := text(x.req.Path)
	if query := strings.IndexByte(path, '?'); query >= 0 {
		path = path[:query]
	}
	return path
}

// verdict is the status of a gRPC answer, and what stands beside it.
type verdict struct {
	known    bool
	code     hops.Code
	message  string // lies in the answer
	pushback hops.Pushback
	below    abate.Below
}

// read takes the verdict from the fields that an answer ends with: its trailer, or its only head. Without a status, and
// with several that differ, it is UNKNOWN.
func (v *verdict) read(fields []h1.Field) {
	v.known, v.code = true, hops.Unknown
	v.below = madeIn(fields)
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

// awaitVerdict looks at the beginning of a gRPC answer, of which the head is there. If it has a message, the verdict comes
// after that, and the answer must go on to the client; it may be the head alone that must, if no message comes soon.
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
	switch err := a.peek(min(a.until, later(abate.Now(), wait))); {
	case err == nil && a.h2.complete && a.h2.first == nil:
		v.read(a.closingFields())
	case err != nil && !errors.Is(err, h2.ErrTimeUp):
		return err
	}
	return nil
}

// deliver gives the client a gRPC answer as it comes, and judges the attempt by how it ended. There is no way back: the client
// has the head, and messages.
func (x *exchange) deliver(a *answer) abate.Step {
	x.got, x.delivered = a, true
	x.body.commit()
	x.step = abate.Step{}
	x.pass(a, nil)
	if x.step.Action == 0 { // it did not come to its end
		x.step = x.call.AttemptDone(abate.Now(), 0, x.judgeDelivered(a))
	}
	return x.step
}

// judgeDelivered judges an answer that the client has got, as far as it came.
func (x *exchange) judgeDelivered(a *answer) (o abate.Outcome) {
	switch v := &a.verdict; {
	case a.broke != nil && !errors.Is(a.broke, errGone) && !x.client.gone():
		o = abate.Outcome{Class: abate.Failure, NoRetry: true, Err: a.broke}
	case !v.known:
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: errGone}
	default:
		o = x.judgeRPC(a, false)
	}
	x.hear(&o, a, a.broke)
	a.result = results[o.Class]
	return o
}

// judgeRPC judges an attempt by its status.
func (x *exchange) judgeRPC(a *answer, again bool) abate.Outcome {
	v := &a.verdict
	o := hops.ClassifyCode(x.route.Guard, v.code, again, v.pushback, v.below, nil)
	if o.Class != abate.Success {
		o.Err = &statusError{v.code, strings.Clone(v.message[:min(len(v.message), maxLogged)])}
	}
	return o
}

// closingFields is the trailer with what services tell each other: trailer leaves that out.
func (a *answer) closingFields() []h1.Field {
	if a.h2.s != nil {
		return a.h2.s.Trailer()
	}
	return a.trailer()
}

// closing is what the proxy adds to the end of a gRPC answer whose verdict is known, as lines.
func (x *exchange) closing(a *answer) []byte {
	if !a.verdict.known {
		return nil
	}
	if x.in != nil {
		x.in.below = more(x.in.below, a.verdict.below)
	}
	return x.appendRPCReport(nil, a.verdict.code)
}

// appendRPCReport adds what the client is told about the attempts that were made for its call, and whether it had better not try again.
func (x *exchange) appendRPCReport(dst []byte, c hops.Code) []byte {
	failed := hops.ServedCode(c) != abate.Success
	b, _ := x.report()
	b.Final = b.Final && failed
	if b.Said {
		dst = appendMade(dst, b)
	}
	in := x.in
	if b.Final || failed && in != nil && in.asked && (in.machine.Refusal().NoRetry || in.machine.NoRetry(abate.Now())) {
		dst = pushBack(dst, hops.Pushback{Never: true})
	}
	return dst
}

// conclude reads the verdict of a gRPC answer, which has come to its end.
func (x *exchange) conclude(a *answer) {
	if v := &a.verdict; x.rpc {
		if !v.known {
			v.read(a.closingFields())
			if x.delivered { // before the client is told what was made
				x.step = x.call.AttemptDone(abate.Now(), 0, x.judgeDelivered(a))
			}
			x.tail = append(x.tail, x.closing(a)...)
		}
		x.code, x.status = v.code, httpStatus(v.code)
	}
}

// breakOff ends an answer that the service did not end. The client must not take it for complete; one of gRPC gets the
// status that says why.
func (x *exchange) breakOff(a *answer, err error) {
	if !x.rpc || a.resp.Length == 0 || a.verdict.known || errors.Is(err, errGone) {
		x.client.abort()
		return
	}
	code, message := rpcCodeOf(err), x.reason
	if a.overdue(err) {
		code = hops.DeadlineExceeded
	}
	if x.discreet() {
		message = "the answer broke off"
	}
	x.code, x.status = code, httpStatus(code)
	b := appendStatus(nil, code, message)
	b = x.appendRPCReport(h1.AppendField(b, reasonField, "broken-off"), code)
	x.client.end(appendLines(nil, b))
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
