package abatehttp

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/inbound"
)

// limitHeaders show the rate limit on every answer: those of the IETF's draft, and those that were used before. The
// names are in the form in which http.Header keeps them.
var limitHeaders = [...]string{
	"Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

// showLimit puts what the rate limit says on the answer, whatever that will be.
func (x *exchange) showLimit() {
	d, ok := x.Arrival.Limit()
	if !ok {
		return
	}
	var room [64]byte
	limit := string(AppendRateLimit(room[:0], d))
	_, numbers, _ := strings.Cut(limit, ";r=")
	remaining, reset, _ := strings.Cut(numbers, ";t=")
	p := x.Gate.Describe()
	if p.RateLimit.Reset == "epoch" && reset != "" {
		at, _ := XRateLimitReset(&p.RateLimit, d, time.Now())
		reset = strconv.FormatInt(at, 10)
	}
	texts := x.handler.limits.of(p, d.Limit)
	x.values = [...]string{limit, texts.policy, texts.limit, remaining, reset}
	header := x.out.Header()
	for i, name := range limitHeaders {
		if x.values[i] != "" { // a closed limit has no reset
			header[name] = x.values[i : i+1 : i+1]
		}
	}
}

// limitTexts remembers what it has written out last: the limit is the same for most requests.
type limitTexts struct{ last atomic.Pointer[limitText] }

type limitText struct {
	protection *inbound.Protection
	quota      int64
	policy     string
	limit      string
}

func (c *limitTexts) of(p *inbound.Protection, quota int64) *limitText {
	last := c.last.Load()
	if last == nil || last.protection != p || last.quota != quota {
		last = &limitText{p, quota, string(AppendRateLimitPolicy(nil, p.RateLimit.Config)), strconv.FormatInt(quota, 10)}
		c.last.Store(last)
	}
	return last
}
