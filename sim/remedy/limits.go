package remedy

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/ratelimit"
)

func bulkheads(p *place) []option {
	var all []option
	now := p.policy.Bulkhead
	add := func(name string, step float64, c bulkhead.Config) {
		all = append(all, option{part: "bulkhead", name: name, was: said(p.as.Bulkhead, now.Enabled()), step: step,
			lines: []line{section("bulkhead", c, p.as.Bulkhead.Disabled)}})
	}
	if !now.Adapts() {
		add("adaptive", 2, bulkhead.Config{Limit: bulkhead.AdaptiveLimit})
	}
	if now.Enabled() && !now.Adapts() {
		for _, factor := range []float64{0.5, 2} {
			c := p.as.Bulkhead
			c.MaxConcurrentCalls = max(1, int(math.Round(float64(c.MaxConcurrentCalls)*factor)))
			add(times(factor), 1, c)
		}
		if !now.NoQueue {
			c := p.as.Bulkhead
			c.NoQueue, c.MaxQueue = true, 0
			add("no queue", 1, c)
		}
		return all
	}
	busy := p.rate * p.latency.Seconds() // calls of one caller that run at once (Little)
	for _, factor := range []float64{4, 1.5} {
		if n := int(math.Ceil(busy * factor)); busy > 0 && n < 1_000_000 {
			add(times(factor)+" busy", 2.2, bulkhead.Config{MaxConcurrentCalls: n + 1, NoQueue: true})
		}
	}
	return all
}

// attemptLimits bound what each caller sends: by what the service can do, and by what is usual.
func attemptLimits(p *place) []option {
	var all []option
	now := p.policy.RateLimit
	add := func(name string, perSecond, step float64) {
		rate, ok := rateOf(perSecond)
		if !ok || p.callers == 0 {
			return
		}
		c := p.as.RateLimit
		c.Disabled, c.Limit, c.Burst = false, rate, 0
		all = append(all, option{part: "rateLimit", name: name, was: said(p.as.RateLimit, now.Enabled()), step: step,
			lines: []line{section("rateLimit", c, p.as.RateLimit.Disabled)}})
	}
	if now.Enabled() {
		for _, factor := range []float64{0.7, 1.5} {
			add(times(factor), now.Limit.PerSecond()*factor, 1)
		}
	}
	add("95 % of the capacity", 0.95*p.capacity/float64(max(p.callers, 1)), 2)
	add("1.3 × the load", 1.3*p.rate, 2.3)
	return all
}

func throttles(p *place) []option {
	var all []option
	now := p.policy.Throttle
	for _, k := range []float64{2, 1.3} {
		if now.Enabled() && now.K == k {
			continue
		}
		c := p.as.Throttle
		c.Disabled, c.K = false, k
		all = append(all, option{part: "throttle", name: fmt.Sprintf("k %v", k), was: said(p.as.Throttle, now.Enabled()),
			step: 2, lines: []line{section("throttle", c, p.as.Throttle.Disabled)}})
	}
	if now.Enabled() {
		all = append(all, option{part: "throttle", name: "off", was: said(p.as.Throttle, true), step: 2,
			lines: []line{off("throttle")}})
	}
	return all
}

func hedges(p *place) []option {
	now := p.policy.Hedge
	if now.Enabled() {
		return []option{{part: "hedge", name: "off", was: said(p.as.Hedge, true), step: 1, lines: []line{off("hedge")}}}
	}
	return []option{{part: "hedge", name: "p95", was: "off", step: 2.5,
		lines: []line{section("hedge", hedge.Config{Quantile: 0.95}, p.as.Hedge.Disabled)}}}
}

// rateOf writes a rate in two digits, per second or per minute, and reports whether there is one.
func rateOf(perSecond float64) (ratelimit.Rate, bool) {
	const per = 60
	switch {
	case !(perSecond > 0) || perSecond > 1e8:
		return ratelimit.Rate{}, false
	case perSecond >= 1:
		return ratelimit.Rate{Tokens: digits(perSecond), Per: time.Second}, true
	case perSecond*per >= 1:
		return ratelimit.Rate{Tokens: digits(perSecond * per), Per: time.Minute}, true
	}
	return ratelimit.Rate{}, false
}

// digits rounds a number to two digits, or a whole number from 100 on to three.
func digits(x float64) float64 {
	n := 2
	if x >= 100 {
		n = 3
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', n, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// neat rounds a duration to two digits.
func neat(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Round(unit)
}

func times(factor float64) string { return "× " + strconv.FormatFloat(factor, 'g', 3, 64) }

// short writes 1m instead of 1m0s.
func short(d time.Duration) string {
	s := d.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if len(s) > len(tail) && s[len(s)-len(tail):] == tail {
			s = s[:len(s)-2]
		}
	}
	return s
}
