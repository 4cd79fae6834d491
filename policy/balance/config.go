package balance

import (
	"cmp"
	"time"
)

// Config says when an endpoint that fails is taken out of the choice, and for how long. The entirely zero Config is
// off: calls are balanced, and no endpoint is ejected.
type Config struct {
	// Disabled turns ejection off. Calls are still balanced over all endpoints.
	Disabled bool `yaml:"disabled"`

	// ConsecutiveFailures ejects an endpoint after this many failed attempts in a row, if another endpoint does better.
	// When all that are left fail as often, all come back. Range 1 to 1000000. Zero means the default, 5.
	ConsecutiveFailures int `yaml:"consecutiveFailures" range:"1..1000000" example:"5"`

	// BaseEjectionTime is how long an endpoint is out the first time. When it is ejected again soon it is out twice as
	// long, then three times; each base time without a failure takes one step back. Range 10ms to 1h. Zero means the
	// default, 10s.
	BaseEjectionTime time.Duration `yaml:"baseEjectionTime" range:"10ms..1h" example:"10s"`

	// MaxEjectionTime is the longest time an endpoint is out. Must not be below baseEjectionTime. Range 10ms to 24h. Zero
	// means the default, 5m, or baseEjectionTime if that is longer.
	MaxEjectionTime time.Duration `yaml:"maxEjectionTime" range:"10ms..24h" example:"5m"`

	// MaxEjectionShare is the share of the endpoints that may be out at once, rounded down: 0.5 is half of them. One may
	// be out whatever the share, and the last one never is: a service with one endpoint keeps it. Range 0.001 to 1. Zero
	// means the default, 0.5.
	MaxEjectionShare float64 `yaml:"maxEjectionShare" range:"0.001..1" example:"0.5"`

	// PanicThreshold is the share of the endpoints that must be left. When health checks and ejections leave fewer, checks
	// are not believed: those whom only a check speaks against are in the choice again, and what becomes of their attempts
	// decides. Range 0.001 to 1. Zero means the default, 0.5.
	PanicThreshold float64 `yaml:"panicThreshold" range:"0.001..1" example:"0.5"`

	// SlowStart is how long an endpoint that comes back, or is new after a reload, gets less than its share: an eighth of
	// it at first, then steadily more. For services that are slow until their caches are warm. Range 0s to 1h. Default: 0,
	// at once.
	SlowStart time.Duration `yaml:"slowStart" range:"0s..1h" example:"30s"`
}

// Enabled reports whether endpoints are ejected. The zero Config and a disabled one eject none; any other does, with
// its unset fields at their defaults.
func (c Config) Enabled() bool { return !c.Disabled && c != Config{} }

// WithDefaults returns c as [New] uses it: the defaults written into the fields that are zero, values outside their
// range moved to its nearest end, MaxEjectionTime raised to BaseEjectionTime. The zero Config, which is off, stays
// zero. It is pure, and doing it twice changes nothing.
func (c Config) WithDefaults() Config {
	if c == (Config{}) {
		return c
	}
	c.ConsecutiveFailures = within(c.ConsecutiveFailures, 5, 1, 1_000_000)
	c.BaseEjectionTime = within(c.BaseEjectionTime, 10*time.Second, 10*time.Millisecond, time.Hour)
	c.MaxEjectionTime = within(c.MaxEjectionTime, 5*time.Minute, 10*time.Millisecond, 24*time.Hour)
	c.MaxEjectionTime = max(c.MaxEjectionTime, c.BaseEjectionTime)
	c.MaxEjectionShare = within(c.MaxEjectionShare, 0.5, 0.001, 1)
	c.PanicThreshold = within(c.PanicThreshold, defaultPanic, 0.001, 1)
	c.SlowStart = within(c.SlowStart, 0, 0, time.Hour)
	return c
}

// within returns def for zero, else v moved into lo..hi. NaN becomes lo.
func within[T cmp.Ordered](v, def, lo, hi T) T {
	var zero T
	switch {
	case v == zero:
		return def
	case !(v >= lo): // also true for NaN
		return lo
	}
	return min(v, hi)
}

// mayBeOut is how many of n endpoints may be ejected at once.
func (c Config) mayBeOut(n int) int {
	if !c.Enabled() || n < 2 {
		return 0
	}
	// 0.29 × 100 is a little less than 29 in binary, and means 29.
	share := int(c.MaxEjectionShare*float64(n) + 1e-6)
	return min(max(share, 1), n-1)
}

const defaultPanic = 0.5

// panicThreshold is PanicThreshold, also where nothing is ejected.
func (c Config) panicThreshold() float64 { return cmp.Or(c.PanicThreshold, defaultPanic) }

// ejection is how long an ejection with that multiplier lasts.
func (c Config) ejection(multiplier int32) time.Duration {
	return min(c.BaseEjectionTime*time.Duration(multiplier), c.MaxEjectionTime)
}

// maxMultiplier is the first multiplier that leads to MaxEjectionTime. The count stops there: an endpoint that was down
// for a day would need another day for its record to be clean.
func (c Config) maxMultiplier() int32 {
	return int32((c.MaxEjectionTime + c.BaseEjectionTime - 1) / c.BaseEjectionTime)
}
