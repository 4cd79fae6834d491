package retry

import (
	"cmp"
	"time"
)

// Config says how often and how patiently a call is retried. The zero Config
// makes no retries. Other zero fields mean the default written at the field.
type Config struct {
	// MaxRetries is how many retries a call may make after its first attempt,
	// 0 to 100. Zero, the default, means no retries.
	MaxRetries int `yaml:"maxRetries" range:"0..100" example:"3"`

	// Backoff is how the delay grows: "exponential" (the default), "linear", "fixed",
	// or "none", which retries at once.
	Backoff Backoff `yaml:"backoff" enum:"exponential|linear|fixed|none" example:"exponential"`

	// InitialDelay is the interval before the first retry, 1ms to 1h. Jitter is drawn
	// from it. Zero means the default, 100ms. It should not be above maxDelay.
	InitialDelay time.Duration `yaml:"initialDelay" range:"1ms..1h" example:"100ms"`

	// MaxDelay is the longest delay, jitter included, 1ms to 24h. Only a server's
	// Retry-After may ask for more. Zero means the default, 10s.
	MaxDelay time.Duration `yaml:"maxDelay" range:"1ms..24h" example:"10s"`

	// Multiplier is the growth of an exponential interval from one retry to the next,
	// 1 to 100. Zero means the default, 2. Other kinds of backoff do not use it, nor does
	// decorrelated jitter.
	Multiplier float64 `yaml:"multiplier" range:"1..100" example:"2.0"`

	// Jitter is how a delay is drawn from its interval d: "full" draws from almost 0 to d,
	// "equal" from d/2 to d, "decorrelated" from initialDelay to three times the previous
	// delay, "factor" from d ± jitterFactor, "none" is exactly d. The default is "full", or
	// "factor" when jitterFactor is set.
	Jitter Jitter `yaml:"jitter" enum:"full|equal|decorrelated|factor|none" example:"full"`

	// JitterFactor is the share of the interval that jitter "factor" adds or takes away,
	// 0 to 1: 0.5 draws from half to one and a half times the interval, moved down
	// where that would pass maxDelay. Zero means the default, 0.5, with jitter
	// "factor"; other kinds of jitter do not use it.
	JitterFactor float64 `yaml:"jitterFactor" range:"0..1" example:"0.5"`

	// MaxElapsed is how long after the start of the call a retry may still start, 1ms to
	// 24h. A retry whose delay would end later is not made. Zero, the default, means no
	// limit but the call's deadline.
	MaxElapsed time.Duration `yaml:"maxElapsed" range:"1ms..24h" example:"30s"`

	// MaxRetryAfter is the longest Retry-After of a server that is waited for, 1ms to 24h.
	// A longer one ends the call. Zero means the default, 30s.
	MaxRetryAfter time.Duration `yaml:"maxRetryAfter" range:"1ms..24h" example:"30s"`

	// RetryAfterJitter is how much of a server's Retry-After is added to it at most, at
	// random, 0 to 1. It is never taken away. Zero means the default, 0.25: after
	// "Retry-After: 4" clients come back between 4 s and 5 s later.
	RetryAfterJitter float64 `yaml:"retryAfterJitter" range:"0..1" example:"0.25"`
}

// WithDefaults returns c with the default in each zero field that has one.
// MaxRetries and MaxElapsed keep their zero, which means none and no limit.
// A second call changes nothing.
//
// An InitialDelay of 100 ms and full jitter rest on random systems (package sim/harm, 300 that nobody tuned on, under
// the default budget and no breaker): one system in twenty is worse off by 3 % or more than without retries, after 1 s
// by 20 %, without jitter by 7 %; 20 ms is as safe and mends less. The others are custom.
func (c Config) WithDefaults() Config {
	c.Backoff = cmp.Or(c.Backoff, ExponentialBackoff)
	c.InitialDelay = cmp.Or(c.InitialDelay, 100*time.Millisecond)
	c.MaxDelay = cmp.Or(c.MaxDelay, 10*time.Second)
	c.Multiplier = cmp.Or(c.Multiplier, 2)
	if c.Jitter == "" {
		c.Jitter = FullJitter
		if c.JitterFactor > 0 {
			c.Jitter = FactorJitter
		}
	}
	if c.Jitter == FactorJitter && c.JitterFactor == 0 {
		c.JitterFactor = 0.5
	}
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, 30*time.Second)
	c.RetryAfterJitter = cmp.Or(c.RetryAfterJitter, 0.25)
	return c
}

// bounded returns c, which has its defaults, with every field in its range. A
// number moves to the nearest end. Words that are not in the list, and NaN, have
// no nearest end and become the default.
func (c Config) bounded() Config {
	switch c.Backoff {
	case ExponentialBackoff, LinearBackoff, FixedBackoff, NoBackoff:
	default:
		c.Backoff = ExponentialBackoff
	}
	switch c.Jitter {
	case FullJitter, EqualJitter, DecorrelatedJitter, FactorJitter, NoJitter:
	default:
		c.Jitter = FullJitter
	}
	c.MaxRetries = clamp(c.MaxRetries, 0, maxRetries)
	c.InitialDelay = clamp(c.InitialDelay, time.Millisecond, time.Hour)
	c.MaxDelay = clamp(c.MaxDelay, time.Millisecond, 24*time.Hour)
	c.Multiplier = clamp(number(c.Multiplier, 2), 1, 100)
	c.JitterFactor = clamp(number(c.JitterFactor, 0.5), 0, 1)
	if c.MaxElapsed != 0 {
		c.MaxElapsed = clamp(c.MaxElapsed, time.Millisecond, 24*time.Hour)
	}
	c.MaxRetryAfter = clamp(c.MaxRetryAfter, time.Millisecond, 24*time.Hour)
	c.RetryAfterJitter = clamp(number(c.RetryAfterJitter, 0.25), 0, 1)
	return c
}

// clamp returns the value nearest to v between low and high.
func clamp[T int | float64 | time.Duration](v, low, high T) T {
	return max(low, min(v, high))
}

// number returns v, or instead when v is not a number.
func number(v, instead float64) float64 {
	if v != v {
		return instead
	}
	return v
}
