package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/abate-go/abate/core"
)

// log writes the request to the access log: all of them, or those that failed. The query is left out: it may hold
// secrets.
func (x *exchange) log(err error) {
	c := &x.req.plane.config
	failed := err != nil || x.reply.status >= 500 || x.reply.status == 0 || x.reply.reason != ""
	if c.AccessLog == nil || !failed && !c.LogAll {
		return
	}
	dropped := 0
	if !c.LogAll {
		var ok bool
		if dropped, ok = x.req.plane.lines.admit(core.Now()); !ok {
			return
		}
	}
	c.AccessLog.LogAttrs(context.Background(), slog.LevelInfo, "request", x.attributes(err, dropped)...)
}

// milliseconds is d as a number that reads the same in text and JSON, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (x *exchange) attributes(err error, dropped int) []slog.Attr {
	path := x.req.Path
	for i, b := range path {
		if b == '?' {
			path = path[:i]
			break
		}
	}
	attrs := []slog.Attr{
		slog.String("method", shown(x.req.Method)), slog.String("host", shown(x.req.Host)), slog.String("path", shown(path)),
		slog.Int("status", x.reply.status), slog.Int64("bytes", x.reply.bytes),
		slog.Float64("tookMs", milliseconds(max(x.ended-x.req.began, 0))),
	}
	if from := x.req.client.origin(); from.peer.IsValid() {
		attrs = append(attrs, slog.String("client", from.peer.String()))
	}
	if id := x.req.traceID(); id != "" {
		attrs = append(attrs, slog.String("traceId", id))
	}
	if x.req.route.Guard != nil {
		attrs = append(attrs, slog.String("service", x.req.service()), slog.String("route", x.req.route.Label),
			slog.Int("attempts", x.call.tries.sent))
	}
	if x.req.in != nil {
		attrs = append(attrs, slog.String("gate", x.req.service()), slog.String("caller", shown([]byte(x.req.in.caller))))
	} else if name := x.req.client.origin().name; name != "" {
		attrs = append(attrs, slog.String("caller", shown([]byte(name))))
	}
	if last := x.call.tries.last; last != nil {
		attrs = append(attrs, slog.String("endpoint", last.url))
	}
	attrs = x.appendUpstream(attrs)
	if x.req.rpc && x.reply.status != 0 {
		attrs = append(attrs, slog.String("grpcStatus", x.reply.code.String()))
	}
	if x.reply.reason != "" {
		attrs = append(attrs, slog.String("reason", x.reply.reason))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("linesDropped", dropped))
	}
	return attrs
}

// appendUpstream says what the service answered to the last attempt, which need not be what the client got.
func (x *exchange) appendUpstream(attrs []slog.Attr) []slog.Attr {
	a := x.call.got
	if a == nil {
		a = &x.call.first
	}
	if status := ownStatus(a); status != 0 {
		attrs = append(attrs, slog.Int("upstreamStatus", status))
	}
	if x.req.rpc && a.verdict.known {
		attrs = append(attrs, slog.String("upstreamGrpcStatus", a.verdict.code.String()))
	}
	return attrs
}
