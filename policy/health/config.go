package health

import (
	"cmp"
	"time"
)

// Kinds of questions.
const (
	HTTP = "http"
	GRPC = "grpc"
	TCP  = "tcp"
)

// Config says how endpoints are asked how they are. The zero Config is off: nobody asks.
type Config struct {
	// Disabled turns checks off, also where the defaults of a policy file have them.
	Disabled bool `yaml:"disabled"`

	// Kind is what is asked: http sends a GET over HTTP/1.1, and every status from 200 to 299 is a yes; grpc calls
	// grpc.health.v1.Health/Check, and SERVING is a yes; tcp makes a connection. Empty means that nobody asks.
	Kind string `yaml:"kind" enum:"http|grpc|tcp" example:"http"`

	// Path is what http asks for, behind the path of the upstream. Default: "/".
	Path string `yaml:"path" example:"/healthz"`

	// Service is the name that grpc asks about. Default: the server as a whole.
	Service string `yaml:"service" example:"payments.v1.Payments"`

	// Interval is how long an endpoint is left alone after an answer that is no news, and that takes it out or brings it
	// back. One that stays healthy is asked less often, see maxInterval. Where the answer is not what is believed, a
	// quarter of it passes. Each wait is up to a quarter shorter or longer by chance. Range 100ms to 1h. Zero means the
	// default, 5s.
	Interval time.Duration `yaml:"interval" range:"100ms..1h" example:"5s"`

	// MaxInterval is the longest time between two questions to an endpoint that stays healthy: each passed check in a row
	// doubles the wait up to it, and calls that were answered raise it to that at once. Calls that fail have it asked
	// within an interval. Must not be below interval. Range
	// 100ms to 24h. Zero means the default, eight times interval.
	MaxInterval time.Duration `yaml:"maxInterval" range:"100ms..24h" example:"40s"`

	// Timeout is how long an answer may take, connection included. Must not be above interval. Range 1ms to 1h. Zero means
	// the default, 1s, or interval if that is shorter.
	Timeout time.Duration `yaml:"timeout" range:"1ms..1h" example:"1s"`

	// UnhealthyThreshold is how many failed checks in a row take an endpoint out; the first check of all counts alone.
	// Range 1 to 1000. Zero means the default, 2.
	UnhealthyThreshold int `yaml:"unhealthyThreshold" range:"1..1000" example:"2"`

	// HealthyThreshold is how many passed checks in a row bring it back. Range 1 to 1000. Zero means the default, 2.
	HealthyThreshold int `yaml:"healthyThreshold" range:"1..1000" example:"2"`
}

// Enabled reports whether endpoints are asked.
func (c Config) Enabled() bool { return c.Kind != "" && !c.Disabled }

// Ineffective calls idle with each setting that has no effect without Kind, or with this one, whether it is set, and
// what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	const on, other = "set kind, for example kind: http", "remove it, or choose another kind"
	switch {
	case c.Disabled:
	case c.Kind == "":
		idle("path", c.Path != "", on)
		idle("service", c.Service != "", on)
		idle("interval", c.Interval != 0, on)
		idle("maxInterval", c.MaxInterval != 0, on)
		idle("timeout", c.Timeout != 0, on)
		idle("unhealthyThreshold", c.UnhealthyThreshold != 0, on)
		idle("healthyThreshold", c.HealthyThreshold != 0, on)
	default:
		idle("path", c.Path != "" && c.Kind != HTTP, other)
		idle("service", c.Service != "" && c.Kind != GRPC, other)
	}
}

// WithDefaults returns c as [New] uses it: the defaults written into the fields that are zero, values outside their
// range moved to its nearest end, MaxInterval raised to Interval and Timeout lowered to it. A Config that is off
// becomes zero, but for Disabled. It is pure, and doing it twice changes nothing.
func (c Config) WithDefaults() Config {
	if !c.Enabled() {
		return Config{Disabled: c.Disabled}
	}
	if c.Kind == HTTP {
		c.Path = cmp.Or(c.Path, "/")
	}
	c.Interval = within(c.Interval, 5*time.Second, 100*time.Millisecond, time.Hour)
	c.MaxInterval = max(within(c.MaxInterval, 8*c.Interval, 100*time.Millisecond, 24*time.Hour), c.Interval)
	c.Timeout = min(within(c.Timeout, time.Second, time.Millisecond, time.Hour), c.Interval)
	c.UnhealthyThreshold = within(c.UnhealthyThreshold, 2, 1, 1000)
	c.HealthyThreshold = within(c.HealthyThreshold, 2, 1, 1000)
	return c
}

// within returns def for zero, else v moved into lo..hi.
func within[T ~int | ~int64](v, def, lo, hi T) T {
	if v == 0 {
		return def
	}
	return min(max(v, lo), hi)
}
