package proxy

import (
	"net/http"
	"strconv"

	"github.com/abate-go/abate/hops"
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

// rpcCode is the status of a gRPC call that the proxy answers by itself, where it would answer another request with
// that status of HTTP.
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

// httpStatus is what metrics and the access log call the end of a gRPC call: the status of HTTP that says the same.
// All of them have 200 on the wire.
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
