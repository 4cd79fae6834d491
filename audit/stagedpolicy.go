package audit

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

func off() pairs { return pairs{"disabled", true} }

// on is the beginning of a section that acts: what it does not say it inherits from bare defaults, where it is off.
func on(settings ...any) pairs { return append(pairs{"disabled", false}, settings...) }

// bare is a policy that does nothing.
func bare() pairs {
	return pairs{"maxRetries", 0, "retryOwner", "none", "retryBudget", off(), "circuitBreaker", off(), "bulkhead", off()}
}

// methods are the kind of request that a call is played with.
func methods(c *topology.Call) topology.Methods {
	if c.Unsafe.Or(false) {
		return topology.Unsafe
	}
	return topology.Safe
}

// idle reports whether a layer passes calls that end with o on as if it were not there.
func (s *staging) idle(l *topology.Layer, o topology.Outcome, c *topology.Call) bool {
	tries := l.Tries(o, methods(c))
	return tries.N == 1 && tries.Known && l.PerTry.Or(0) <= 0 && l.Overall.Or(0) <= 0 &&
		l.Breaker.FailureRatio.IsZero() && l.Breaker.Consecutive.IsZero()
}

// settings are one layer's policy, for calls that end with o.
func (s *staging) settings(l *topology.Layer, o topology.Outcome, c *topology.Call) pairs {
	tries := l.Tries(o, methods(c))
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
		return on("ratio", min(1, max(0.0001, ratio)), "reserve", l.Budget.PerSecond.Or(0))
	}
	if share, ok := l.Budget.Share.Get(); ok && share > 0 {
		s.assume("the budget of %s, %g retries in flight for a request in flight, lets as many through for a call",
			cmp.Or(l.Name, l.Product), share)
		return on("ratio", min(1, max(0.0001, share)), "reserve", 0)
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
	return on("ratio", max(0.0001, math.Round(ratio*1e4)/1e4))
}

func breaker(b *topology.Breaker) pairs {
	ratio, byRatio := b.FailureRatio.Get()
	row, inRow := b.Consecutive.Get()
	if !byRatio && !inRow {
		return off()
	}
	out := on("kind", "thresholds")
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
