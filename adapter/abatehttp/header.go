package abatehttp

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/shed"
)

const priorityHeader = "Abate-Priority"

// priorityValues are the values of that header, in the order of shed.Priorities, shared by all requests.
var priorityValues = func() (all [len(shed.Priorities)][]string) {
	for i, p := range shed.Priorities {
		all[i] = []string{p.String()}
	}
	return all
}()

// counts are the values of the attempt count. They are shared by all requests: one less thing to allocate for each.
var counts = func() (c [32]string) {
	for i := range c {
		c[i] = strconv.Itoa(i + 1)
	}
	return c
}()

// header copies the caller's header and adds the attempt's number, counted from 1, the whole milliseconds that the
// attempt has, and what is left of the call tree's retries; late tells that it began some time ago. Values that came
// with the request do not pass: they were about the hop before this one. Only the map is new. The lists in it are
// shared, and cut so that adding to one makes a copy. The priority of the work goes on to the next hop; without one,
// the caller's own header does.
func (c *call) header(a *attempt, ctx context.Context, s core.Sending, late bool) http.Header {
	t, from, n := c.transport, c.source.Header, s.Number+c.earlier
	h := make(http.Header, len(from)+3)
	for name, values := range from {
		h[name] = values[:len(values):len(values)]
	}
	if s.Announce {
		h[hops.Allowance] = t.allowances.format(s.Allowance)
	} else if from[hops.Allowance] != nil && !c.passesOn(ctx) {
		delete(h, hops.Allowance)
	}
	if n <= len(counts) {
		h[hops.AttemptCount] = counts[n-1 : n : n]
	} else {
		h[hops.AttemptCount] = []string{strconv.Itoa(n)}
	}
	if left, ok := timeLeft(ctx, late); ok {
		a.timeLeft[0] = t.timeouts.format(left)
		h[hops.TimeLeft] = a.timeLeft[:]
	} else {
		delete(h, hops.TimeLeft)
	}
	if p, ok := core.PriorityOf(ctx); ok {
		h[priorityHeader] = priorityValues[p-shed.Sheddable]
	}
	return h
}

// passesOn reports whether an allowance that came with the request goes to the next hop as it is: only if nothing is
// repeated here and nobody has read it, so that this hop is not one of those that share it.
func (c *call) passesOn(ctx context.Context) bool {
	p := c.guard.Describe()
	return p.MaxRetries == 0 && !p.Hedge.Enabled() && p.RetryOwner != core.OwnerNone && core.CallTreeOf(ctx) == nil
}

// timeLeft is how long the attempt may still take. One that begins now needs no clock for that.
func timeLeft(ctx context.Context, late bool) (time.Duration, bool) {
	if limit, ok := core.TimeLimit(ctx); ok && !late {
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

// allowanceCache remembers the values of Abate-Retry-Allowance that were written last: there are few.
type allowanceCache struct {
	last [8]atomic.Pointer[allowanceText]
}

type allowanceText struct {
	allowance core.Allowance
	values    [1]string
}

// format writes a as the values of the header. They are shared by all requests.
func (c *allowanceCache) format(a core.Allowance) []string {
	slot := &c.last[uint(a.Left+len(a.Owner))%uint(len(c.last))]
	last := slot.Load()
	if last == nil || last.allowance != a {
		last = &allowanceText{allowance: a, values: [1]string{string(hops.AppendAllowance(nil, a))}}
		slot.Store(last)
	}
	return last.values[:]
}
