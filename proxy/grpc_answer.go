package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

// The codes of gRPC that only answers of the proxy's own need.
const (
	invalidArgument    hops.Code = 3
	notFound           hops.Code = 5
	alreadyExists      hops.Code = 6
	failedPrecondition hops.Code = 9
	aborted            hops.Code = 10
	outOfRange         hops.Code = 11
)

// rpcCode is the status of a gRPC call that the proxy answers by itself, where it would answer another request with that
// status of HTTP.
func rpcCode(status int) hops.Code {
	switch status {
	case http.StatusUnauthorized:
		return hops.Unauthenticated
	case http.StatusForbidden:
		return hops.PermissionDenied
	case http.StatusNotFound:
		return hops.Unimplemented
	case http.StatusConflict:
		return aborted
	case http.StatusUnprocessableEntity:
		return failedPrecondition
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		return hops.ResourceExhausted
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return hops.DeadlineExceeded
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return hops.Unavailable
	case http.StatusLoopDetected:
		return hops.Internal
	}
	if status >= 500 {
		return hops.Internal
	}
	return invalidArgument
}

// httpStatus is what metrics and the access log call the end of a gRPC call: the status of HTTP that says the same. All of
// them have 200 on the wire.
func httpStatus(c hops.Code) int {
	switch c {
	case hops.OK:
		return http.StatusOK
	case hops.Canceled:
		return 499
	case invalidArgument, failedPrecondition, outOfRange:
		return http.StatusBadRequest
	case hops.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case notFound:
		return http.StatusNotFound
	case alreadyExists, aborted:
		return http.StatusConflict
	case hops.PermissionDenied:
		return http.StatusForbidden
	case hops.ResourceExhausted:
		return http.StatusTooManyRequests
	case hops.Unimplemented:
		return http.StatusNotImplemented
	case hops.Unavailable:
		return http.StatusServiceUnavailable
	case hops.Unauthenticated:
		return http.StatusUnauthorized
	}
	return http.StatusInternalServerError
}

// appendStatus writes the two fields that every answer of gRPC ends with, as lines.
func appendStatus(dst []byte, c hops.Code, message string) []byte {
	dst = append(dst, "Grpc-Status: "...)
	dst = append(strconv.AppendUint(dst, uint64(c), 10), "\r\nGrpc-Message: "...)
	return append(appendMessage(dst, message), "\r\n"...)
}

// maxMessage bounds the messages of the proxy's own, which may quote what a client has written.
const maxMessage = 1 << 10

// appendMessage writes text as grpc-message has it: in UTF-8, with all but visible ASCII and spaces, and %, as %XX.
func appendMessage(dst []byte, message string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < min(len(message), maxMessage); i++ {
		if c := message[i]; c < ' ' || c > '~' || c == '%' {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

const pushbackField = "Grpc-Retry-Pushback-Ms"

// pushBack is the field that tells a client of gRPC when to try again, or never; nothing if p says neither.
func pushBack(dst []byte, p hops.Pushback) []byte {
	if p == (hops.Pushback{}) {
		return dst
	}
	dst = append(append(dst, pushbackField...), ": "...)
	return append(hops.AppendPushback(dst, p), "\r\n"...)
}

// ownRPC gives the client of a gRPC call an answer of the proxy's own, for what would be an answer with that status to another
// request. It is a head and nothing else: "trailers-only".
func (x *exchange) ownRPC(status int, reason, message string, p hops.Pushback, more []byte) {
	x.reason = reason
	code := rpcCode(status)
	switch reason {
	case abatehttp.KeyNotStored.Code:
		code = alreadyExists
	case abatehttp.KeyEffectUnknown.Code:
		code = failedPrecondition
	}
	b := append(make([]byte, 0, 512), "Content-Type: application/grpc\r\n"...)
	b = h1.AppendField(appendStatus(b, code, message), reasonField, reason)
	if report := x.appendRPCReport(nil, code); contains(report, pushbackField) {
		b = append(b, report...)
	} else {
		b = pushBack(append(b, report...), p)
	}
	x.respond(head{status: http.StatusOK, extra: append(b, more...)})
	x.client.end(nil)
	x.code, x.status = code, status
}

// turnAwayRPC is turnAway for a gRPC call.
func (x *exchange) turnAwayRPC(r *abate.Refusal, status int, code string) {
	x.ownRPC(status, code, x.service()+": "+code, hops.Pushback{Never: r.NoRetry, Wait: r.RetryAfter}, nil)
}

// refuseAtGateRPC is refuseAtGate for a gRPC call.
func (x *exchange) refuseAtGateRPC(p *abatehttp.Problem, detail string, wait time.Duration) {
	message := p.Detail
	if detail != "" {
		message += ": " + detail
	}
	x.ownRPC(p.Status, p.Code, x.service()+": "+message, hops.Pushback{Wait: wait}, nil)
}

// problemRPC is problem for a gRPC call.
func (x *exchange) problemRPC(p *problem, never bool) {
	back := hops.Pushback{Never: never}
	if !never {
		back.Wait = p.wait
	}
	x.ownRPC(p.Status, p.Reason, p.Detail, back, nil)
}

// addTail has fields, as lines, go to the client with the status of a gRPC answer: in its trailer, or in the only head that
// it has. A pushback among them replaces the service's.
func (x *exchange) addTail(a *answer, lines []byte) (extra []byte) {
	pushes := contains(lines, pushbackField)
	if a.resp.Length == 0 { // trailers-only
		if pushes {
			a.resp.Fields = withoutPushback(a.resp.Fields)
		}
		return lines
	}
	x.tail = append(x.tail, lines...)
	return nil
}

// ending is the trailer of a, as the client gets it: a gRPC answer ends with it.
func (x *exchange) ending(a *answer) []h1.Field {
	fields := a.trailer()
	if !x.rpc {
		return fields
	}
	own := append(x.last[:0], fields...)
	switch {
	case x.in != nil:
		own = x.in.outgoing(own)
	case !x.owner: // what is not the proxy's affair goes on
		for _, f := range a.closingFields() {
			if isMade(f) {
				own = append(own, f)
			}
		}
	}
	if contains(x.tail, pushbackField) {
		own = withoutPushback(own)
	}
	own = appendLines(own, x.tail)
	x.last = own[:0]
	return own
}

// withoutPushback takes the field out, in place.
func withoutPushback(fields []h1.Field) []h1.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !f.Is("grpc-retry-pushback-ms") {
			kept = append(kept, f)
		}
	}
	return kept
}
