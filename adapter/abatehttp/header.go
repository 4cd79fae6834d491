package abatehttp

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/shed"
)

// The headers of Envoy, which many servers, proxies and dashboards already read.
const (
	attemptCountHeader = "X-Envoy-Attempt-Count"
	timeLeftHeader     = "X-Envoy-Expected-Rq-Timeout-Ms"
)

// counts are the values of the attempt count. They are shared by all requests: one less thing to allocate for each.
var counts = func() (c [32]string) {
	for i := range c {
		c[i] = strconv.Itoa(i + 1)
	}
	return c
}()

// header copies the caller's header and adds the attempt's number, counted from 1, and the whole milliseconds that the
// attempt has; late tells that it began some time ago. Values that came with the request do not pass: they were about the
// hop before this one. Only the map is new. The lists in it are shared, and cut so that adding to one makes a copy. The
// priority of the work goes on to the next hop; without one, the caller's own header does.
func (t *Transport) header(a *attempt, from http.Header, ctx context.Context, n int, late bool) http.Header {
	h := make(http.Header, len(from)+2)
	for name, values := range from {
		h[name] = values[:len(values):len(values)]
	}
	if n <= len(counts) {
		h[attemptCountHeader] = counts[n-1 : n : n]
	} else {
		h[attemptCountHeader] = []string{strconv.Itoa(n)}
	}
	if left, ok := timeLeft(ctx, late); ok {
		a.timeLeft[0] = t.timeouts.format(left)
		h[timeLeftHeader] = a.timeLeft[:]
	} else {
		delete(h, timeLeftHeader)
	}
	if p, ok := PriorityOf(ctx); ok {
		h[priorityHeader] = priorityValues[p-shed.Sheddable]
	}
	return h
}

// timeLeft is how long the attempt may still take. One that begins now needs no clock for that.
func timeLeft(ctx context.Context, late bool) (time.Duration, bool) {
	if limit, ok := abate.TimeLimit(ctx); ok && !late {
		return limit, true
	}
	deadline, ok := ctx.Deadline()
	return time.Until(deadline), ok
}

// millisCache remembers the last number it has written out: most first attempts have the same time left.
type millisCache struct{ last atomic.Pointer[millis] }

type millis struct {
	n    int64
	text string
}

// format writes d in milliseconds, rounded up and never 0: to many servers 0 means "no limit".
func (c *millisCache) format(d time.Duration) string {
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	n = max(n, 1)
	last := c.last.Load()
	if last == nil || last.n != n {
		last = &millis{n, strconv.FormatInt(n, 10)}
		c.last.Store(last)
	}
	return last.text
}
