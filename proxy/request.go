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

// The pseudonyms of this process in Via (RFC 9110 §7.6.3), by which it knows a request that it has sent itself: one for calls
// that go out and one for those that come in, since a call may well do both.
var outgoing, incoming = newPseudonym(), newPseudonym()

func newPseudonym() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return "abate-" + hex.EncodeToString(id)
}

func (x *exchange) pseudonym() string {
	if x.in != nil {
		return incoming
	}
	return outgoing
}

// looped tells whether the request has been on this way through the process before.
func (x *exchange) looped() bool {
	name := x.pseudonym()
	for _, f := range x.req.Fields {
		if f.Is("via") && contains(f.Value, name) {
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

// appendRequest writes the head of attempt n to its endpoint.
func (x *exchange) appendRequest(dst []byte, a *answer, n int) []byte {
	req, e := &x.req, a.endpoint()
	host := e.authority
	if x.keepsHost() {
		host = req.Host
	}
	dst = h1.AppendRequest(dst, req, host, x.target(e))
	for i, f := range req.Fields {
		if !x.ours(f) {
			dst = h1.AppendFields(dst, req.Fields[i:i+1])
		}
	}
	dst = x.appendOwn(dst, a, n)
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
func (x *exchange) ours(f h1.Field) bool {
	if x.omits() && len(f.Name) > 0 && (f.Name[0]|0x20 == 'a' && begins(f.Name, "abate-") || f.Name[0]|0x20 == 'x' && begins(f.Name, "x-envoy-")) {
		return true
	}
	if isAllowance(f) {
		return x.in != nil || x.owner
	}
	if x.in != nil && x.in.key.aboutKey(f) {
		return true
	}
	if x.rpc && (f.Is("grpc-timeout") || f.Is("grpc-previous-rpc-attempts")) {
		return true
	}
	return len(f.Name) > 16 && (f.Name[0]|0x20) == 'x' && (f.Is("x-envoy-attempt-count") || f.Is("x-envoy-expected-rq-timeout-ms"))
}

// omits tells whether the service is told nothing that is meant for services of one's own.
func (x *exchange) omits() bool {
	return x.in == nil && x.fleet.policy.InternalHeaders == abate.OmitInternal
}

// keepsHost tells whether the service gets the Host that the client wrote.
func (x *exchange) keepsHost() bool { return x.plane.config.Gateway || x.in != nil }

// appendOwn writes what the proxy adds: the attempt's number and the time it has, in Envoy's fields, which many servers
// and dashboards read; what the call tree has left; Via; and in a gateway and before a protected service who asked.
func (x *exchange) appendOwn(dst []byte, a *answer, n int) []byte {
	if n += x.before; x.in != nil {
		n += x.in.attempt - 1
	}
	omits := x.omits()
	if !omits {
		dst = append(dst, "X-Envoy-Attempt-Count: "...)
		dst = append(strconv.AppendInt(dst, int64(n), 10), "\r\n"...)
	}
	until := a.until
	if x.rpc { // as in grpc-timeout
		until = x.limit
	}
	if until != abate.NoDeadline && !omits {
		left := (until - abate.Now() + time.Millisecond - 1) / time.Millisecond
		dst = append(dst, "X-Envoy-Expected-Rq-Timeout-Ms: "...)
		dst = append(strconv.AppendInt(dst, max(int64(left), 1), 10), "\r\n"...)
	}
	if x.rpc {
		dst = a.appendRPC(dst, n)
	}
	if !omits {
		dst = x.appendAllowance(dst, &a.told)
	}
	dst = append(dst, "Via: 1.1 "...)
	dst = append(append(dst, x.pseudonym()...), "\r\n"...)
	if x.in != nil {
		dst = x.in.appendRequest(dst)
	}
	if !x.keepsHost() {
		return dst
	}
	return x.appendForwarded(dst)
}

// appendForwarded tells the service who asked. X-Forwarded-For grows by the client; the other two are the first proxy's.
func (x *exchange) appendForwarded(dst []byte) []byte {
	from := x.client.origin()
	if from.peer.IsValid() {
		dst = append(dst, "X-Forwarded-For: "...)
		dst = append(from.peer.AppendTo(dst), "\r\n"...)
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
	switch {
	case !proto:
	case from.tls:
		dst = append(dst, "X-Forwarded-Proto: https\r\n"...)
	default:
		dst = append(dst, "X-Forwarded-Proto: http\r\n"...)
	}
	return dst
}
