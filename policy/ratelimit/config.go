package ratelimit

import (
	"cmp"
	"math"
	"time"
)

// Config describes one rate limit: a token bucket for each key. The zero Config is off. Its keys stand in the policy
// file as they are here.
type Config struct {
	// Disabled switches the limit off.
	Disabled bool `yaml:"disabled"`

	// Shadow decides and reports, but refuses nothing: for watching a new limit before it bites. What it would have
	// refused takes nothing from the buckets, as if it had been refused.
	Shadow bool `yaml:"shadow"`

	// Limit is how many tokens each bucket gets in how much time, such as 1000/s, 50/m or 100/10s. 0/s closes: it
	// refuses everything. At most 1000000000 a second. Not set: no limit.
	Limit Rate `yaml:"limit" example:"1000/s"`

	// Burst is how many tokens a bucket holds, and with how many it starts: what may come at once after a pause. Range
	// 1 to 1000000000. Zero means the default: what limit grants in one second, at least 1.
	Burst int `yaml:"burst" range:"1..1000000000" example:"100"`

	// MaxKeys bounds the buckets that are kept, which take 24 bytes each or less and 48 KB beside them. A bucket is
	// forgotten only when it is full again, so that no key can win by being forgotten; while there is no place, new
	// keys share one bucket. Range 1 to 100000000. Zero means the default, 1000000.
	MaxKeys int `yaml:"maxKeys" range:"1..100000000" example:"1000000"`
}

const (
	maxTokens = 1_000_000_000
	minPer    = time.Millisecond
	maxPer    = 24 * time.Hour
)

// Enabled reports whether there is a limit.
func (c Config) Enabled() bool { return !c.Disabled && !c.Limit.IsZero() }

// WithDefaults returns c as New uses it: defaults filled in, values outside their range moved to the nearest end, a
// limit that is not a number closed. A Config without a limit stays as it is. Calling it twice changes nothing.
func (c Config) WithDefaults() Config {
	if c.Limit.IsZero() {
		return c
	}
	c.Limit.Per = min(max(c.Limit.Per, minPer), maxPer)
	if !(c.Limit.Tokens > 0) {
		c.Limit.Tokens = 0
	}
	c.Limit.Tokens = min(c.Limit.Tokens, maxTokens, float64(c.Limit.Per))
	c.Burst = cmp.Or(c.Burst, int(math.Max(c.Limit.PerSecond(), 1)))
	c.Burst = min(max(c.Burst, 1), maxTokens)
	c.MaxKeys = cmp.Or(c.MaxKeys, 1_000_000)
	c.MaxKeys = min(max(c.MaxKeys, 1), 100_000_000)
	return c
}
