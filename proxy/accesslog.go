package proxy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/abate-go/abate"
)

// throttle lets so many lines a second through and counts the others: an outage must not become a storm of log lines too.
type throttle struct {
	mu      sync.Mutex
	second  time.Duration
	lines   int
	dropped int
}

// linesPerSecond bounds the records of failed requests. With LogAll there is no bound.
const linesPerSecond = 100

// admit tells whether a line may be written, and how many have not been since the last one that was.
func (t *throttle) admit(now time.Duration) (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if second := now / time.Second; second != t.second {
		t.second, t.lines = second, 0
	}
	if t.lines >= linesPerSecond {
		t.dropped++
		return 0, false
	}
	t.lines++
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}

// maxLogged bounds what a line shows of a request's path and of its host, which its client makes as long as it likes.
const maxLogged = 1 << 10

func shown(b []byte) string { return string(b[:min(len(b), maxLogged)]) }

// log writes the request to the access log: all of them, or those that failed. The query is left out: it may hold secrets.
func (x *exchange) log(err error) {
	c := &x.plane.config
	failed := err != nil || x.status >= 500 || x.status == 0 || x.reason != ""
	if c.AccessLog == nil || !failed && !c.LogAll {
		return
	}
	dropped := 0
	if !c.LogAll {
		var ok bool
		if dropped, ok = x.plane.lines.admit(abate.Now()); !ok {
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
		slog.Int("status", x.status), slog.Int64("bytes", x.bytes), slog.Float64("tookMs", milliseconds(max(x.ended-x.began, 0))),
	}
	if x.route.Guard != nil {
		attrs = append(attrs, slog.String("service", x.service()), slog.String("route", x.route.Label), slog.Int("attempts", x.sent))
	}
	if x.in != nil {
		attrs = append(attrs, slog.String("gate", x.service()), slog.String("caller", shown([]byte(x.in.caller))))
	}
	if x.fleet != nil && x.tried >= 0 {
		attrs = append(attrs, slog.String("endpoint", x.fleet.endpoints[x.tried].url))
	}
	if x.rpc && x.status != 0 {
		attrs = append(attrs, slog.String("grpcStatus", x.code.String()))
	}
	if x.reason != "" {
		attrs = append(attrs, slog.String("reason", x.reason))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("linesDropped", dropped))
	}
	return attrs
}
