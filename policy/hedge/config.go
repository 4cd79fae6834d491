package hedge

import "time"

// Config says when a slow attempt gets a second copy. The zero Config sends none, and so does the default: on 300
// random systems (package sim/harm) a Quantile of 0.95 leaves 14.0 % worse off by more than 2 % where retries alone do
// so in 6.2 %, and healthy ones that are nearly full lose most.
type Config struct {
	// Disabled turns hedging off, whatever else is set.
	Disabled bool `yaml:"disabled"`

	// Delay is how long after one copy the next is sent, 1ms to 1h. With quantile set it
	// is only used until enough latencies are known. Zero, the default, means no
	// fixed delay: there is no hedging until quantile has one.
	Delay time.Duration `yaml:"delay" range:"1ms..1h" example:"50ms"`

	// Quantile learns the delay: an attempt is hedged when it has taken longer than this
	// share of recent successful attempts, 0.5 to 0.999. At 0.95 about one attempt in 20 is
	// hedged. Zero, the default, means that delay alone decides.
	Quantile float64 `yaml:"quantile" range:"0.5..0.999" example:"0.95"`

	// MinDelay is the least delay that quantile may choose, 0s to 1h. Zero means the
	// default, 1ms. It does not change delay.
	MinDelay time.Duration `yaml:"minDelay" range:"0s..1h" example:"5ms"`

	// MaxHedges is how many extra copies one attempt may have, 1 to 3. Zero means the
	// default, 1.
	MaxHedges int `yaml:"maxHedges" range:"1..3" example:"1"`
}

// Enabled reports whether there can be hedges: not Disabled, and a Delay or a
// Quantile is set.
func (c Config) Enabled() bool { return !c.Disabled && (c.Delay > 0 || c.Quantile > 0) }

// Ineffective calls idle with each setting that has no effect without Delay and Quantile, whether it is set, and
// what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	if c.Disabled || c.Enabled() {
		return
	}
	const fix = "set delay or quantile, for example delay: 200ms"
	idle("maxHedges", c.MaxHedges != 0, fix)
	idle("minDelay", c.MinDelay != 0, fix)
}

// WithDefaults returns c with the default in each zero field that has one:
// MinDelay and MaxHedges. A policy that is off is left as it is. A second call changes nothing.
func (c Config) WithDefaults() Config {
	if !c.Enabled() {
		return c
	}
	if c.MinDelay == 0 {
		c.MinDelay = time.Millisecond
	}
	if c.MaxHedges == 0 {
		c.MaxHedges = 1
	}
	return c
}

// bounded returns c, which has its defaults, with every field in its range or, where
// zero means "not set", zero. A policy that is off has all of them zero.
func (c Config) bounded() Config {
	if !c.Enabled() {
		return Config{Disabled: c.Disabled}
	}
	if c.Delay > 0 {
		c.Delay = clamp(c.Delay, time.Millisecond, time.Hour)
	} else {
		c.Delay = 0
	}
	if c.Quantile > 0 {
		c.Quantile = clamp(c.Quantile, 0.5, 0.999)
	} else { // negative, or not a number
		c.Quantile = 0
	}
	c.MinDelay = clamp(c.MinDelay, 0, time.Hour)
	c.MaxHedges = clamp(c.MaxHedges, 1, 3)
	return c
}

// clamp returns the value nearest to v between low and high.
func clamp[T int | float64 | time.Duration](v, low, high T) T {
	return max(low, min(v, high))
}
