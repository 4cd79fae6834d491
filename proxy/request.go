package proxy

import (
	"crypto/rand"
	"encoding/hex"
	randv2 "math/rand/v2"
	"strconv"
	"time"
	"unsafe"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// text is b as a string without a copy. It is good as long as b does not change: for look-ups and comparisons.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// pick chooses the endpoint of the attempt.
func (a *answer) pick(now time.Duration) {
	x := a.x
	if !a.alone {
		x.copies.Lock()
		defer x.copies.Unlock()
	}
	a.chosen = a.fleet.balancer.Pick(now, randv2.Uint64(), x.tried)
	a.picked = true
	x.tried = a.chosen
}

// pseudonym names this process in Via (RFC 9110 §7.6.3), so that it knows a request that it has sent itself.
var pseudonym = func() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return "abate-" + hex.EncodeToString(id)
}()

// looped tells whether this process has sent the request.
func (x *exchange) looped() bool {
	for _, f := range x.req.Fields {
		if f.Is("via") && contains(f.Value, pseudonym) {
			return true
		}
	}
	return false
}

func contains(b []byte, s string) bool {
	for i := 0; i+len(s) <= len(b); i++ {
		if string(b[i:i+len(s)]) == s {
			return true
		}
	}
	return false
}

// appendRequest writes the head of attempt n to e.
func (x *exchange) appendRequest(dst []byte, e *endpoint, n int, until time.Duration) []byte {
	req := &x.req
	host := e.authority
	if x.proxy.config.Gateway {
		host = req.Host
	}
	dst = h1.AppendRequest(dst, req, host, x.target(e))
	for i, f := range req.Fields {
		if !ours(f) {
			dst = h1.AppendFields(dst, req.Fields[i:i+1])
		}
	}
	dst = x.appendOwn(dst, n, until)
	switch b := &x.body; {
	case b.chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case req.Length > 0:
		dst = append(dst, "Content-Length: "...)
		dst = append(strconv.AppendInt(dst, req.Length, 10), "\r\n"...)
	case b.empty(text(req.Method)):
		dst = append(dst, "Content-Length: 0\r\n"...)
	}
	if req.Expect && x.body.kind == streamed {
		dst = append(dst, "Expect: 100-continue\r\n"...)
	}
	switch {
	case req.Upgrade != nil:
		dst = append(dst, "Connection: Upgrade\r\nUpgrade: "...)
		dst = append(append(dst, req.Upgrade...), "\r\n"...)
	case req.Trailers:
		dst = append(dst, "Connection: TE\r\nTE: trailers\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// empty tells whether a request without a body has to say so: RFC 9110 §8.6.
func (b *content) empty(method string) bool {
	return b.kind == noContent && (method == "POST" || method == "PUT" || method == "PATCH")
}

// target is the path and query for e: the base path of its URL goes before them, unless the request was addressed to the
// upstream itself and has it already.
func (x *exchange) target(e *endpoint) []byte {
	if e.base == "" || x.route.Upstream || x.req.Path[0] != '/' {
		return x.req.Path
	}
	return append([]byte(e.base), x.req.Path...)
}

// ours tells whether a field of the request is about the hop before, and replaced.
func ours(f h1.Field) bool {
	return len(f.Name) > 16 && (f.Name[0]|0x20) == 'x' && (f.Is("x-envoy-attempt-count") || f.Is("x-envoy-expected-rq-timeout-ms"))
}

// appendOwn writes what the proxy adds: the attempt's number and the time it has, in Envoy's fields, which many servers
// and dashboards read; Via; and in a gateway who asked.
func (x *exchange) appendOwn(dst []byte, n int, until time.Duration) []byte {
	dst = append(dst, "X-Envoy-Attempt-Count: "...)
	dst = append(strconv.AppendInt(dst, int64(n), 10), "\r\n"...)
	if until != abate.NoDeadline {
		left := (until - abate.Now() + time.Millisecond - 1) / time.Millisecond
		dst = append(dst, "X-Envoy-Expected-Rq-Timeout-Ms: "...)
		dst = append(strconv.AppendInt(dst, max(int64(left), 1), 10), "\r\n"...)
	}
	dst = append(dst, "Via: 1.1 "...)
	dst = append(append(dst, pseudonym...), "\r\n"...)
	if !x.proxy.config.Gateway {
		return dst
	}
	return x.appendForwarded(dst)
}

// appendForwarded tells the service who asked. X-Forwarded-For grows by the client; the other two are the first proxy's.
func (x *exchange) appendForwarded(dst []byte) []byte {
	if ip := x.client.address(); ip != "" {
		dst = append(dst, "X-Forwarded-For: "...)
		dst = append(append(dst, ip...), "\r\n"...)
	}
	host, proto := true, true
	for _, f := range x.req.Fields {
		host = host && !f.Is("x-forwarded-host")
		proto = proto && !f.Is("x-forwarded-proto")
	}
	if host {
		dst = append(dst, "X-Forwarded-Host: "...)
		dst = append(append(dst, x.req.Host...), "\r\n"...)
	}
	if proto {
		dst = append(dst, "X-Forwarded-Proto: http\r\n"...)
	}
	return dst
}

// grpc tells whether the request needs HTTP/2 all the way.
func (x *exchange) grpc() bool {
	if !x.client.multiplexed() {
		return false
	}
	for _, f := range x.req.Fields {
		if f.Is("content-type") {
			return len(f.Value) >= 16 && string(f.Value[:16]) == "application/grpc"
		}
	}
	return false
}
