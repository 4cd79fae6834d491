package pacing

import "time"

// Config says how fast attempts may follow each other. The zero Config is off. Other zero fields mean the default
// written at the field.
type Config struct {
	// Disabled switches the pacing off.
	Disabled bool `yaml:"disabled"`

	// Adaptive lets attempts begin freely until one fails, and after that in rounds: one attempt in the first, more in
	// each round as long as they succeed, fewer once the other side refuses some for load. Callers wait for their round,
	// and for an open circuit to let the next probe through. It has no effect beside perSecond, which is a pace by number.
	Adaptive bool `yaml:"adaptive"`

	// PerSecond is how many attempts each instance sends in a second once all is well. Range 0.01 to 1000000. Zero: no
	// pacing.
	PerSecond float64 `yaml:"perSecond" range:"0.01..1000000" example:"10"`

	// Burst is how many may be sent at once after a pause, but not by an instance that has just begun or whose circuit
	// has just closed. Range 1 to 1000000. Zero means the default, 1.
	Burst int `yaml:"burst" range:"1..1000000" example:"2"`

	// Jitter is how much the time between two tokens is drawn at random: each is drawn between (1 - jitter) and (1 +
	// jitter) times what the pace asks for, so that the mean pace stays the same. Range 0.001 (practically none) to 1.
	// Zero means the default, 0.5.
	Jitter float64 `yaml:"jitter" range:"0.001..1" example:"0.5"`

	// RampUp is how long the pace takes to grow from rampUpFrom to all of perSecond, linearly, each time the circuit
	// lets attempts through again after it was open. A guard that has seen no outage begins with the full pace. Range 0
	// to 1h. Zero: the full pace at once.
	RampUp time.Duration `yaml:"rampUp" range:"0s..1h" example:"5s"`

	// RampUpFrom is the share of perSecond with which the ramp-up begins. A fraction, 0.1 is 10 %. It matters only
	// together with rampUp. Range 0.001 to 1. Zero means the default, 0.1.
	RampUpFrom float64 `yaml:"rampUpFrom" range:"0.001..1" example:"0.1"`

	// MaxWait is how long an attempt may wait for its token, jitter included. An attempt that would have to wait
	// longer, or too long for its deadline, is refused at once. With adaptive it is how long a call may wait, counted from
	// its beginning; one that begins when the other side has been away for longer than it would wait is refused at once.
	// Range 1ms to 1h. Zero means the default, 1s, or 5s with adaptive.
	MaxWait time.Duration `yaml:"maxWait" range:"1ms..1h" example:"1s"`
}

// Enabled reports whether there is a pace of either kind.
func (c Config) Enabled() bool { return c.Paces() || c.Adapts() }

// Paces reports whether there is a pace by number, which a Pacer keeps.
func (c Config) Paces() bool { return !c.Disabled && c.PerSecond > 0 }

// Adapts reports whether the pace is adaptive, which an Opener keeps.
func (c Config) Adapts() bool { return !c.Disabled && c.Adaptive && !(c.PerSecond > 0) }

// Ineffective calls idle with each setting that has no effect without PerSecond or RampUp, whether it is set, and
// what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	if c.Disabled {
		return
	}
	off := c.PerSecond == 0
	const fix = "set perSecond, for example perSecond: 10"
	idle("burst", off && c.Burst != 0, fix)
	idle("jitter", off && c.Jitter != 0, fix)
	idle("rampUp", off && c.RampUp != 0, fix)
	idle("maxWait", off && !c.Adaptive && c.MaxWait != 0, fix)
	switch {
	case off:
		idle("rampUpFrom", c.RampUpFrom != 0, fix)
	case c.RampUp == 0:
		idle("rampUpFrom", c.RampUpFrom != 0, "set rampUp, for example rampUp: 5s")
	}
}

// WithDefaults returns c as New uses it: defaults filled in, values outside their range moved to the nearest end. A
// Config without a pace stays as it is. Calling it twice changes nothing.
func (c Config) WithDefaults() Config {
	if !(c.PerSecond > 0) {
		c.PerSecond = 0
		if c.Adaptive {
			c.MaxWait = within(c.MaxWait, 5*time.Second, time.Millisecond, time.Hour)
		}
		return c
	}
	c.PerSecond = within(c.PerSecond, 0, 0.01, 1e6)
	c.Burst = within(c.Burst, 1, 1, 1_000_000)
	c.Jitter = within(c.Jitter, 0.5, 0.001, 1)
	c.RampUp = within(c.RampUp, 0, 0, time.Hour)
	if c.RampUp > 0 {
		c.RampUpFrom = within(c.RampUpFrom, 0.1, 0.001, 1)
	}
	c.MaxWait = within(c.MaxWait, time.Second, time.Millisecond, time.Hour)
	return c
}

// within is v, or fallback for zero and what is not a number, moved into low..high.
func within[T int | float64 | time.Duration](v, fallback, low, high T) T {
	if v == 0 || v != v {
		return fallback
	}
	return min(max(v, low), high)
}
