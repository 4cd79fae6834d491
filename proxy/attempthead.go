package proxy

import (
	"strconv"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
	"github.com/abate-go/abate/proxy/tracing"
)

// requestHead is what an attempt tells its service: the client's fields without those about the hop before, and the
// proxy's own.
type requestHead struct {
	req    *request
	body   *content
	told   telling
	number int // of the attempt
	span   tracing.SpanID
	until  time.Duration // the end of the attempt's time
	now    time.Duration // as of the last wait before it is written
	// deadline is that of a gRPC call, as the service was told it.
	deadline time.Duration
}

// telling is what an attempt tells the service that it calls.
type telling struct {
	core.Allowance
	tells bool
}

// appendRequest writes the head for HTTP/1.1.
func (h *requestHead) appendRequest(dst []byte, e *endpoint) []byte {
	req := h.req
	host := e.authority
	if h.req.keepsHost() {
		host = req.Host
	}
	dst = h1.AppendRequest(dst, &req.Request, host, h.req.target(e))
	dst = h.appendFields(dst)
	dst = h.appendOwn(dst)
	switch b := h.body; {
	case b.chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case req.Length > 0:
		dst = append(dst, "Content-Length: "...)
		dst = append(strconv.AppendInt(dst, req.Length, 10), "\r\n"...)
	case b.empty(text(req.Method)):
		dst = append(dst, "Content-Length: 0\r\n"...)
	}
	if req.Expect && h.body.kind == streamed {
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

// appendFields writes the client's fields without those about the hop before.
func (h *requestHead) appendFields(dst []byte) []byte {
	req, rest := h.req, h.req.Fields
	for i := 0; i < len(rest) && req.mayHaveOurs(); {
		if req.ours(rest[i]) {
			dst = req.AppendFields(dst, rest[:i])
			rest, i = rest[i+1:], 0
			continue
		}
		i++
	}
	return req.AppendFields(dst, rest)
}

// appendOwn writes what the proxy adds: the attempt's number and the time it has, in Envoy's fields, which many servers
// and dashboards read; what the call tree has left; Via; and in a gateway and before a protected service who asked.
func (h *requestHead) appendOwn(dst []byte) []byte {
	n := h.number + h.req.before
	if h.req.in != nil {
		n += h.req.in.attempt - 1
	}
	omits := h.req.omits()
	if !omits {
		dst = append(dst, "X-Envoy-Attempt-Count: "...)
		dst = append(strconv.AppendInt(dst, int64(n), 10), "\r\n"...)
	}
	until := h.until
	if h.req.rpc { // as in grpc-timeout
		until = h.req.limit
	}
	if until != core.NoDeadline && !omits {
		left := (until - h.now + time.Millisecond - 1) / time.Millisecond
		dst = append(dst, "X-Envoy-Expected-Rq-Timeout-Ms: "...)
		dst = append(strconv.AppendInt(dst, max(int64(left), 1), 10), "\r\n"...)
	}
	if h.req.rpc {
		dst = h.appendRPC(dst, n)
	}
	if !omits {
		dst = h.appendAllowance(dst)
	}
	if h.req.traced.writes {
		dst = h.req.traced.appendParent(dst, h.span)
	}
	dst = append(dst, "Via: 1.1 "...)
	dst = append(append(dst, h.req.pseudonym()...), "\r\n"...)
	if h.req.in != nil {
		dst = h.req.in.appendRequest(dst)
	}
	if !h.req.keepsHost() {
		return dst
	}
	return h.req.appendForwarded(dst)
}

// appendAllowance writes what the attempt tells. Most calls are the first of their tree: their owner is the service,
// which knows its name by heart.
func (h *requestHead) appendAllowance(dst []byte) []byte {
	t := &h.told
	if !t.tells {
		return dst
	}
	dst = append(dst, "Abate-Retry-Allowance: "...)
	if t.Owner == h.req.route.service.guard.Name() {
		dst = append(strconv.AppendInt(dst, int64(t.Left), 10), h.req.route.service.owner...)
	} else {
		dst = hops.AppendAllowance(dst, t.Allowance)
	}
	return append(dst, "\r\n"...)
}

// appendRPC tells the service which attempt this is, and how much time is left of the call: see bound.
func (h *requestHead) appendRPC(dst []byte, n int) []byte {
	if n > 1 {
		dst = append(dst, "Grpc-Previous-Rpc-Attempts: "...)
		dst = append(strconv.AppendInt(dst, int64(n-1), 10), "\r\n"...)
	}
	if h.deadline = h.req.limit; h.deadline != core.NoDeadline {
		dst = append(dst, "Grpc-Timeout: "...)
		from := len(dst)
		dst = hops.AppendGRPCTimeout(dst, h.deadline-h.now)
		if rounded, ok := hops.ParseGRPCTimeout(text(dst[from:])); ok {
			h.deadline = h.now + rounded
		}
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// http2 writes the head for HTTP/2. lines is room for what the proxy adds.
func (h *requestHead) http2(q *h2.Head, lines []byte, e *endpoint) []byte {
	r := h.req
	*q = h2.Head{Method: r.Method, Scheme: schemeHTTP, Authority: e.authority, Path: r.target(e),
		Fields: q.Fields[:0], Length: r.Length}
	if e.scheme == "https" {
		q.Scheme = schemeHTTPS
	}
	if r.keepsHost() {
		q.Authority = r.Host
	}
	if q.Length == 0 && (r.rpc || !h.body.empty(text(r.Method))) {
		q.Length = -1
	}
	for _, f := range r.Fields {
		if !r.ours(f) {
			q.Fields = append(q.Fields, f)
		}
	}
	if r.Trailers {
		q.Fields = append(q.Fields, h2.Field{Name: nameTE, Value: valueTrailers})
	}
	lines = h.appendOwn(lines[:0])
	q.Fields = appendLines(q.Fields, lines)
	return lines
}

var (
	schemeHTTP, schemeHTTPS = []byte("http"), []byte("https")
	nameTE, valueTrailers   = []byte("te"), []byte("trailers")
)
