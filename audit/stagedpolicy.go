package audit

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

func off() pairs { return pairs{"disabled", true} }

// bare is a policy that does nothing.
func bare() pairs {
	return pairs{"maxRetries", 0, "retryOwner", "none", "retryBudget", off(), "circuitBreaker", off(), "bulkhead", off()}
}

// settings are one layer's policy, for calls that end with o.
func (s *staging) settings(l *topology.Layer, o topology.Outcome, c *topology.Call) pairs {
	methods := topology.Safe
	if c.Unsafe.Or(false) {
		methods = topology.Unsafe
	}
	tries := l.Tries(o, methods)
	if !tries.Known {
		s.assume("%s tries %d times: a value of it could not be read", cmp.Or(l.Name, l.Product), tries.N)
	}
	out := pairs{"maxRetries", min(tries.N-1, 100), "retryOwner", "none"}
	if d := l.PerTry.Or(0); d > 0 {
		out = append(out, "attemptTimeout", d.String())
	}
	if d := l.Overall.Or(0); d > 0 {
		out = append(out, "timeout", d.String())
	}
	if tries.N > 1 {
		out = append(out, backoff(&l.Backoff)...)
	}
	out = append(out, "retryBudget", s.budget(l, c), "circuitBreaker", breaker(&l.Breaker), "bulkhead", off())
	return out
}

func backoff(b *topology.Backoff) pairs {
	first := b.First.Or(0)
	if first < time.Millisecond {
		return pairs{"backoff", "none"}
	}
	out := pairs{"initialDelay", first.String(), "backoff", "fixed"}
	if m := b.Multiplier.Or(1); m > 1 {
		out = pairs{"initialDelay", first.String(), "backoff", "exponential", "multiplier", min(m, 100)}
	}
	if m := b.Max.Or(0); m >= first {
		out = append(out, "maxDelay", m.String())
	}
	switch word := b.Jitter.Or("none"); {
	case word == "none", word == "full", word == "equal":
		out = append(out, "jitter", word)
	case strings.HasPrefix(word, "±"):
		least, most := b.Wait(1)
		out = append(out, "jitter", "factor", "jitterFactor", math.Round(1000*float64(most-least)/2/float64(first))/1000)
	default:
		out = append(out, "jitter", "full")
	}
	return out
}

// budget turns what caps a layer's retries into a share of its calls.
func (s *staging) budget(l *topology.Layer, c *topology.Call) pairs {
	if ratio, ok := l.Budget.Ratio.Get(); ok && ratio > 0 {
		return pairs{"ratio", min(1, max(0.0001, ratio)), "reserve", l.Budget.PerSecond.Or(0)}
	}
	if share, ok := l.Budget.Share.Get(); ok && share > 0 {
		s.assume("the budget of %s, %g retries in flight for a request in flight, lets as many through for a call",
			cmp.Or(l.Name, l.Product), share)
		return pairs{"ratio", min(1, max(0.0001, share)), "reserve", 0}
	}
	limit, ok := l.Budget.Concurrent.Get()
	rate := s.rates[c.To]
	if !ok || limit >= 1000 || rate <= 0 {
		return off()
	}
	// Of m retries in flight each lasts its wait and its try, so m/(wait + try) a second is the most.
	_, wait := l.Backoff.Wait(1)
	lasts := max(time.Millisecond, wait/2+min(l.PerTry.Or(0), time.Second))
	ratio := float64(limit) / lasts.Seconds() / rate
	if ratio >= 1 {
		return off()
	}
	s.assume("the cap of %d concurrent retries of %s lets %.2g retries through for a call", limit,
		cmp.Or(l.Name, l.Product), ratio)
	return pairs{"ratio", max(0.0001, math.Round(ratio*1e4)/1e4)}
}

func breaker(b *topology.Breaker) pairs {
	ratio, byRatio := b.FailureRatio.Get()
	row, inRow := b.Consecutive.Get()
	if !byRatio && !inRow {
		return off()
	}
	out := pairs{"kind", "thresholds", "whileOpen", "refuse"}
	if inRow {
		out = append(out, "failureThreshold", row)
	}
	if byRatio {
		out = append(out, "failureRateThreshold", ratio)
	}
	if n := b.MinimumCalls.Or(0); n > 0 {
		out = append(out, "minimumNumberOfCalls", n)
	}
	switch {
	case b.WindowCalls.Or(0) > 0:
		out = append(out, "slidingWindow", b.WindowCalls.V)
	case b.Window.Or(0) > 0:
		out = append(out, "slidingWindow", b.Window.V.String())
	}
	if d := b.OpenFor.Or(0); d > 0 {
		out = append(out, "waitDurationInOpenState", d.String())
	}
	return out
}
