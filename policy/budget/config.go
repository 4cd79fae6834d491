package budget

import (
	"math"
	"time"
)

// Kind says what earns an extra attempt.
type Kind string

// The kinds of budget.
const (
	Ratio    Kind = "ratio"    // a fixed share of the first attempts
	Adaptive Kind = "adaptive" // a share that shrinks while attempts fail
	Tokens   Kind = "tokens"   // a bucket filled by time and by successes
)

// Config is one budget. The entirely zero Config is off: nothing is limited.
type Config struct {
	// Disabled turns the budget off: retries and hedges are limited only per call.
	Disabled bool `yaml:"disabled"`

	// Kind says what earns an extra attempt: "ratio" (default) allows a fixed share
	// of the first attempts, "adaptive" a share that follows the success rate,
	// "tokens" a bucket that time and successes fill.
	Kind Kind `yaml:"kind" enum:"ratio|adaptive|tokens" example:"ratio"`

	// Ratio is the number of extra attempts that each first attempt earns: 0.1 allows
	// retries and hedges together to add 10 % of load. Kind "ratio" only. Range 0.0001
	// to 1, exact to a millionth. Zero means the default, 0.1.
	Ratio float64 `yaml:"ratio" range:"0.0001..1" example:"0.1"`

	// MinRatio is the ratio while every attempt fails. Kind "adaptive" only: the ratio
	// is minRatio + (maxRatio - minRatio) × success rate of the attempts in the window.
	// Must not be above maxRatio. Range 0.0001 to 1. Zero means the default, 0.02, or
	// maxRatio if that is smaller.
	MinRatio float64 `yaml:"minRatio" range:"0.0001..1" example:"0.02"`

	// MaxRatio is the ratio while every attempt succeeds; the added load never exceeds
	// it. Kind "adaptive" only. Range 0.0001 to 1. Zero means the default, 0.2, or
	// minRatio if that is larger.
	MaxRatio float64 `yaml:"maxRatio" range:"0.0001..1" example:"0.2"`

	// Window is how long an unused deposit stays valid, and the time over which
	// "adaptive" measures the success rate. Kinds "ratio" and "adaptive". Range 1s to
	// 1h. Zero means the default, 10s.
	Window time.Duration `yaml:"window" range:"1s..1h" example:"10s"`

	// Reserve is how many extra attempts the service may make beyond the ratio: a bank
	// that starts full and that only deposits refill, so that an outage draws it once.
	// It is divided by clients. Kinds "ratio" and "adaptive". Range 0 to 1000000. Zero
	// means none: the first retry has to be earned.
	Reserve float64 `yaml:"reserve" range:"0..1000000" example:"10"`

	// Clients is the number of instances of this service that share reserve, maxTokens
	// and refillPerSecond: each takes an equal part, so that the fleet together stays
	// within what is written here. Range 1 to 1000000. Zero means the default, 1.
	Clients int `yaml:"clients" range:"1..1000000" example:"1"`

	// Fleet makes the budget one for all instances together, through the Redis of the policy file: one reserve for all
	// of them, and what one does not use another may. While that Redis cannot be reached, each instance has what its
	// own first attempts earn, and no reserve. Kinds "ratio" and "adaptive".
	Fleet bool `yaml:"fleet"`

	// MaxTokens is the size of the bucket, which starts full. It is divided by clients.
	// Kind "tokens" only. Range 1 to 1000000. Zero means the default, 10.
	MaxTokens float64 `yaml:"maxTokens" range:"1..1000000" example:"10"`

	// RefillPerSecond is how many tokens per second come back whatever happens. It is
	// divided by clients. Kind "tokens" only. Range 0 to 1000000. Zero means none.
	RefillPerSecond float64 `yaml:"refillPerSecond" range:"0..1000000" example:"0.5"`

	// CostPerRetry is how many tokens one extra attempt takes, multiplied by the cost of
	// its error class (transientCost, overloadCost). Kind "tokens" only. Range 0.01 to
	// 1000. Zero means the default, 1.
	CostPerRetry float64 `yaml:"costPerRetry" range:"0.01..1000" example:"1"`

	// DepositPerSuccess is how many tokens each successful attempt puts back. Kind
	// "tokens" only. Range 0 to 1000. Zero means none, or 0.1 where refillPerSecond is
	// zero too, because nothing would ever refill the bucket.
	DepositPerSuccess float64 `yaml:"depositPerSuccess" range:"0..1000" example:"0.1"`

	// TransientCost is how much a retry after a failure draws, and how much a hedge
	// draws. Above 1 it makes such attempts rarer than the ratio allows. Range 1 to
	// 1000. Zero means the default, 1.
	TransientCost float64 `yaml:"transientCost" range:"1..1000" example:"1"`

	// OverloadCost is how much a retry draws after the server said that it is overloaded
	// or that the caller is too fast. Range 1 to 1000. Zero means the default, 1.
	OverloadCost float64 `yaml:"overloadCost" range:"1..1000" example:"1"`
}

// Enabled reports whether the budget limits anything. The zero Config and a disabled
// one do not; any other does, with its unset fields at their defaults.
func (c Config) Enabled() bool { return !c.Disabled && c != Config{} }

// Ineffective calls idle with each setting that has no effect with its Kind, whether it is set, and what to do about
// it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	idle("fleet", c.Fleet && c.Kind == Tokens,
		"remove it, or choose the kind ratio or adaptive: a bucket of tokens is each instance's own")
}

// WithDefaults returns c with the defaults of its kind written into the fields that are
// zero and where zero makes no sense. The fields of other kinds stay as they are, and so
// does the zero Config, which is off. It is pure, and doing it twice changes nothing.
//
// A ratio of 0.1 rests on random systems (package sim/harm, 300 that nobody tuned on, three retries, a reserve of 10,
// no breaker): one system in twenty is worse off by 3 % or more than without retries, of 0.2 by 24 %, without a budget
// by 48 %; 0.03 does less harm at its worst and mends a third less. The rest is custom.
func (c Config) WithDefaults() Config {
	if c == (Config{}) {
		return c
	}
	c.Kind = orDefault(c.Kind, Ratio)
	c.Clients = orDefault(c.Clients, 1)
	c.TransientCost = orDefault(c.TransientCost, 1)
	c.OverloadCost = orDefault(c.OverloadCost, 1)
	if c.Kind == Tokens {
		c.MaxTokens = orDefault(c.MaxTokens, 10)
		c.CostPerRetry = orDefault(c.CostPerRetry, 1)
		if !(c.RefillPerSecond > 0) {
			c.DepositPerSuccess = orDefault(c.DepositPerSuccess, 0.1)
		}
		return c
	}
	c.Window = orDefault(c.Window, 10*time.Second)
	if c.Kind == Adaptive {
		c.MaxRatio = orDefault(c.MaxRatio, max(0.2, c.MinRatio))
		c.MinRatio = orDefault(c.MinRatio, min(0.02, c.MaxRatio))
	} else {
		c.Ratio = orDefault(c.Ratio, 0.1)
	}
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// between moves v to the nearest end of lo..hi. What is not a number becomes lo, the
// careful end of every range here.
func between(v, lo, hi float64) float64 {
	if v > hi {
		return hi
	}
	if v >= lo {
		return v
	}
	return lo
}

// one is a token in the fixed point of this package. Floating point would lose small
// deposits in a large sum, and the whole number 1/ratio would turn 15 % into 17 %.
const one = 1_000_000

// microDown converts what is given to the caller. It rounds down, unless only the
// representation of a decimal such as 0.29 keeps v from being a whole number.
func microDown(v float64) int64 {
	if near := math.Round(v * one); math.Abs(near-v*one) < 1e-3 {
		return int64(near)
	}
	return int64(math.Floor(v * one))
}

// microUp converts what is charged to the caller.
func microUp(v float64) int64 { return -microDown(-v) }
