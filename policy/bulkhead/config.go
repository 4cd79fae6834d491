package bulkhead

import "time"

// Order says which waiting caller gets the next permit.
type Order string

// The orders of the queue.
const (
	Adaptive Order = "adaptive" // oldest first; newest first while the queue is more than half full
	FIFO     Order = "fifo"     // oldest first
	LIFO     Order = "lifo"     // newest first
)

// Config is one bulkhead. The zero Config is off: any number of calls may run.
type Config struct {
	// Disabled turns the bulkhead off: any number of calls may run at once.
	Disabled bool `yaml:"disabled"`

	// MaxConcurrentCalls is how many calls may run at once, back-off included. Range 0 to
	// 1000000. Zero means unlimited: the bulkhead is off.
	MaxConcurrentCalls int `yaml:"maxConcurrentCalls" range:"0..1000000" example:"25"`

	// MaxQueue is how many more callers may wait for a permit. Range 0 to 1000000. Zero
	// means none: when all permits are taken a call is refused at once.
	MaxQueue int `yaml:"maxQueue" range:"0..1000000" example:"50"`

	// MaxWait is how long a caller may wait for a permit before it is refused. Range 1ms
	// to 1h. Zero means the default, 1s.
	MaxWait time.Duration `yaml:"maxWait" range:"1ms..1h" example:"1s"`

	// Order says which waiting caller gets the next permit: "adaptive" (default) takes the
	// oldest first, and the newest first while the queue is more than half full; "fifo"
	// always takes the oldest, "lifo" always the newest.
	Order Order `yaml:"order" enum:"adaptive|fifo|lifo" example:"adaptive"`
}

// Enabled reports whether the bulkhead limits anything.
func (c Config) Enabled() bool { return !c.Disabled && c.MaxConcurrentCalls > 0 }

// Ineffective calls idle with each setting that has no effect without MaxConcurrentCalls, whether it is set, and
// what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	if c.Disabled || c.MaxConcurrentCalls != 0 {
		return
	}
	const fix = "set maxConcurrentCalls, for example 100"
	idle("maxQueue", c.MaxQueue != 0, fix)
	idle("maxWait", c.MaxWait != 0, fix)
	idle("order", c.Order != "", fix)
}

// WithDefaults returns c with the defaults written into the fields that are zero and
// where zero makes no sense: MaxWait and Order. A Config without a limit is off and stays
// as it is. It is pure, and doing it twice changes nothing.
func (c Config) WithDefaults() Config {
	if c.MaxConcurrentCalls <= 0 {
		return c
	}
	if c.MaxWait == 0 {
		c.MaxWait = time.Second
	}
	if c.Order == "" {
		c.Order = Adaptive
	}
	return c
}
