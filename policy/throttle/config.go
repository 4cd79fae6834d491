package throttle

import "time"

// Config describes client-side throttling. The zero Config is off, and so is the default: on 300 random systems
// (package sim/harm) a K of 2 leaves 17.6 % worse off by more than 2 %, and none better by a tenth.
type Config struct {
	// Disabled switches the throttle off.
	Disabled bool `yaml:"disabled"`

	// Shadow decides and reports, but refuses nothing. It counts as if it did: answers to requests that it would have
	// refused are left out.
	Shadow bool `yaml:"shadow"`

	// K is how many requests are sent for each that the dependency accepts before some are refused here. Range 1.01 to
	// 100; 2 is usual. Zero: off.
	K float64 `yaml:"k" range:"1.01..100" example:"2"`

	// Window is the time over which requests and accepts are counted. It should be at least five times what a slow
	// answer takes. Range 1s to 10m. Zero means the default, 30s.
	Window time.Duration `yaml:"window" range:"1s..10m" example:"30s"`

	// MaxRejection is the largest share that is refused, so that some requests always find out whether the dependency
	// is back. Range 0.01 to 0.99. Zero means the default, 0.9.
	MaxRejection float64 `yaml:"maxRejection" range:"0.01..0.99" example:"0.9"`

	// MinimumNumberOfCalls is how many requests the window must hold before anything is refused. Range 1 to 1000000.
	// Zero means the default, 20.
	MinimumNumberOfCalls int `yaml:"minimumNumberOfCalls" range:"1..1000000" example:"20"`
}

// Enabled reports whether the throttle does anything.
func (c Config) Enabled() bool { return !c.Disabled && c.K > 0 }

// Ineffective calls idle with each setting that has no effect without K, whether it is set, and what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	if c.Disabled || c.K != 0 {
		return
	}
	const fix = "set k, for example k: 2"
	idle("shadow", c.Shadow, fix)
	idle("window", c.Window != 0, fix)
	idle("maxRejection", c.MaxRejection != 0, fix)
	idle("minimumNumberOfCalls", c.MinimumNumberOfCalls != 0, fix)
}

// WithDefaults returns c as New uses it: defaults filled in, values outside their range moved to the nearest end. A
// Config without K is off and stays as it is. Calling it twice changes nothing.
func (c Config) WithDefaults() Config {
	if !(c.K > 0) {
		return c
	}
	c.K = min(max(c.K, 1.01), 100)
	c.Window = within(c.Window, 30*time.Second, time.Second, 10*time.Minute)
	c.MaxRejection = within(c.MaxRejection, 0.9, 0.01, 0.99)
	c.MinimumNumberOfCalls = within(c.MinimumNumberOfCalls, 20, 1, 1_000_000)
	return c
}

// within is v between low and high; zero and what is not a number are the default.
func within[T int | float64 | time.Duration](v, byDefault, low, high T) T {
	if v == 0 || v != v {
		return byDefault
	}
	return min(max(v, low), high)
}
