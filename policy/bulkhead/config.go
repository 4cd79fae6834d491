package bulkhead

import "time"

// Order says which waiting caller gets the next permit.
type Order string

// The orders of the queue.
const (
	Adaptive Order = "adaptive" // oldest first; newest first when not all will be served in time
	FIFO     Order = "fifo"     // oldest first
	LIFO     Order = "lifo"     // newest first
)

// Limit says where the number of permits comes from.
type Limit string

// The kinds of limit.
const (
	FixedLimit    Limit = "fixed"    // MaxConcurrentCalls
	AdaptiveLimit Limit = "adaptive" // learned from answers
)

// Config is one bulkhead. The zero Config is off: any number of calls may run.
type Config struct {
	// Disabled turns the bulkhead off: any number of calls may run at once.
	Disabled bool `yaml:"disabled"`

	// MaxConcurrentCalls is how many calls may run at once. Range 0 to 1000000. Zero means
	// unlimited: the bulkhead is off, unless limit is "adaptive".
	MaxConcurrentCalls int `yaml:"maxConcurrentCalls" range:"0..1000000" example:"25"`

	// Limit says how many permits there are: "fixed" (default) is maxConcurrentCalls,
	// "adaptive" any number, or maxConcurrentCalls if that is set, until answers come late
	// one after the other, or do not come; then as many as the service answers in half of
	// the time that a call has, but no fewer than were usual before, or 4.
	Limit Limit `yaml:"limit" enum:"fixed|adaptive" example:"adaptive"`

	// MaxQueue is how many more callers may wait for a permit. Range 0 to 1000000. Zero
	// means any number: time alone bounds the queue. Retries may wait whatever it says.
	MaxQueue int `yaml:"maxQueue" range:"0..1000000" example:"50"`

	// NoQueue refuses a call at once when all permits are taken. Retries wait all the same:
	// their calls have been let in once.
	NoQueue bool `yaml:"noQueue"`

	// MaxWait is how long a caller may wait for a permit before it is refused. Range 1ms
	// to 1h. Zero means as long as its deadline leaves time for a typical attempt; without
	// a deadline as long as attemptTimeout, without that 1s.
	MaxWait time.Duration `yaml:"maxWait" range:"1ms..1h" example:"1s"`

	// Order says which waiting caller gets the next permit: "adaptive" (default) takes the
	// oldest first, and the newest first once the oldest has used half of its time or
	// somebody has left without a permit, until nobody waits any more; "fifo" always takes
	// the oldest, "lifo" always the newest. Retries go before first attempts.
	Order Order `yaml:"order" enum:"adaptive|fifo|lifo" example:"adaptive"`

	// HoldDuringBackoff keeps the permit of a call while it waits before a retry. Without it
	// the permit is let go, and the retry takes another one.
	HoldDuringBackoff bool `yaml:"holdDuringBackoff"`

	// HoldDuringBody keeps the permit of a call until its answer has been read or closed, by
	// callers that know of it: HTTP clients, the proxy, gRPC streams. Without it the permit
	// is let go when the answer begins.
	HoldDuringBody bool `yaml:"holdDuringBody"`
}

// Enabled reports whether the bulkhead limits anything.
func (c Config) Enabled() bool {
	return !c.Disabled && (c.MaxConcurrentCalls > 0 || c.Limit == AdaptiveLimit)
}

// Adapts reports whether the limit is learned.
func (c Config) Adapts() bool { return !c.Disabled && c.Limit == AdaptiveLimit }

// Ineffective calls idle with each setting that has no effect without a limit or beside another one, whether
// it is set, and what to do about it.
func (c Config) Ineffective(idle func(key string, set bool, fix string)) {
	if c.Disabled {
		return
	}
	if c.Enabled() {
		idle("maxQueue", c.MaxQueue != 0 && c.NoQueue, "remove it, or remove noQueue")
		return
	}
	const fix = "set maxConcurrentCalls, for example 100"
	idle("limit", c.Limit != "", fix)
	idle("maxQueue", c.MaxQueue != 0, fix)
	idle("noQueue", c.NoQueue, fix)
	idle("maxWait", c.MaxWait != 0, fix)
	idle("order", c.Order != "", fix)
	idle("holdDuringBackoff", c.HoldDuringBackoff, fix)
	idle("holdDuringBody", c.HoldDuringBody, fix)
}

// WithDefaults returns c with the defaults written into the fields that are zero and
// where zero makes no sense: Limit and Order. A Config without a limit is off and stays
// as it is. It is pure, and doing it twice changes nothing.
func (c Config) WithDefaults() Config {
	if c.MaxConcurrentCalls <= 0 && c.Limit != AdaptiveLimit {
		return c
	}
	if c.Limit == "" {
		c.Limit = FixedLimit
	}
	if c.Order == "" {
		c.Order = Adaptive
	}
	return c
}

// Patience returns until when a call may wait that begins to wait now, on the clock of now: MaxWait, and no
// longer than leaves the time that an attempt typically takes. never is the deadline of a call without one,
// and attempt how long an attempt may take, 0 if nobody has said.
func (c Config) Patience(now, deadline, never, typical, attempt time.Duration) time.Duration {
	wait := min(c.MaxWait, time.Hour)
	switch {
	case wait > 0:
	case deadline != never:
		return deadline - typical
	case attempt > 0:
		wait = attempt
	default:
		wait = time.Second
	}
	if deadline != never {
		return min(now+wait, deadline-typical)
	}
	return now + wait
}
