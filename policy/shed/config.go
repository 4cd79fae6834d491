package shed

import (
	"cmp"
	"time"
)

// Algorithm says where the limit of concurrent requests comes from.
type Algorithm string

const (
	// Fixed: the limit is maxConcurrency.
	Fixed Algorithm = "fixed"
	// Gradient lowers the limit when requests take longer than they do without load.
	Gradient Algorithm = "gradient"
	// Vegas bounds the requests that wait inside the service.
	Vegas Algorithm = "vegas"
	// AIMD raises the limit by one while all is well and multiplies it by a factor below one when requests are dropped.
	AIMD Algorithm = "aimd"
	// BBR bounds what is in flight by what the service has been seen to do, once requests stand in a queue inside it.
	BBR Algorithm = "bbr"
	// Unlimited is no limit, as if nothing were said: for files, whose default is another.
	Unlimited Algorithm = "none"
)

// adaptive reports whether the limit is found out.
func (a Algorithm) adaptive() bool { return a == AIMD || a == BBR || a.measures() }

// measures reports whether the limit comes from how long requests take.
func (a Algorithm) measures() bool { return a == Gradient || a == Vegas }

// Config describes which arrivals a service refuses when it cannot do them all. The zero Config is off: set concurrency
// or cpu.
type Config struct {
	// Disabled switches shedding off.
	Disabled bool `yaml:"disabled"`

	// Shadow decides and reports, but refuses nothing and makes nobody wait. It models the load that it would have
	// refused.
	Shadow bool `yaml:"shadow"`

	// Concurrency is where the limit of requests handled at once comes from: fixed (maxConcurrency), or found out by
	// bbr, gradient, vegas or aimd. None, or empty: no such limit; then only cpu refuses requests.
	Concurrency Algorithm `yaml:"concurrency" enum:"bbr|fixed|gradient|vegas|aimd|none" example:"gradient"`

	// MaxConcurrency is the limit with fixed, and the upper bound of the others. Range 1 to 1000000. Zero means the
	// default: 1000, and 1000000 with bbr.
	MaxConcurrency int `yaml:"maxConcurrency" range:"1..1000000" example:"200"`

	// MinConcurrency is the lower bound of the adaptive limits. While gradient and vegas measure, for a few moments, it
	// is half of that. Range 1 to 1000000. Zero means the default, 4.
	MinConcurrency int `yaml:"minConcurrency" range:"1..1000000" example:"4"`

	// InitialConcurrency is the value at which the adaptive limits begin; bbr begins without one. Range 1 to 1000000.
	// Zero means the default, 20.
	InitialConcurrency int `yaml:"initialConcurrency" range:"1..1000000" example:"20"`

	// MaxQueue is how many requests may wait for a slot. Range 1 to 1000000. Zero means the default: half as many as
	// may be handled at once, fewer while the service is slower than without load; with bbr, four times as many as are
	// answered within what callers wait for, and as many where no deadlines are known.
	MaxQueue int `yaml:"maxQueue" range:"1..1000000" example:"50"`

	// NoQueue lets nobody wait: without a free slot a request is refused at once.
	NoQueue bool `yaml:"noQueue"`

	// QueueTarget is how long requests may wait while the service is overloaded: the target of CoDel (RFC 8289). Bbr
	// lets them wait until their deadline, whatever this and queueInterval say.
	// Range 1ms to 1m. Zero means the default: half of the time that requests take without load, at least 5ms and at
	// most half of queueInterval.
	QueueTarget time.Duration `yaml:"queueTarget" range:"1ms..1m" example:"5ms"`

	// QueueInterval is how long requests may wait otherwise, and how long waits must be above queueTarget until the
	// service counts as overloaded. Range 1ms to 1m. Zero means the default: twice the time that requests take without
	// load, at least 100ms and twice queueTarget.
	QueueInterval time.Duration `yaml:"queueInterval" range:"1ms..1m" example:"100ms"`

	// CPU is the share of the processor time that this process may use, or its container, above which requests are
	// refused. A fraction, 0.9 is 90 %. Range 0.05 to 0.99. Zero: not looked at.
	CPU float64 `yaml:"cpu" range:"0.05..0.99" example:"0.9"`

	// MaxRetryShare is the share of retries among arriving requests above which answers ask clients not to retry. A
	// fraction of first attempts. Range 0.01 to 10. Zero means the default, 0.1.
	MaxRetryShare float64 `yaml:"maxRetryShare" range:"0.01..10" example:"0.1"`

	// MaxCallerShare is the share of the slots that one caller may hold and still wait for another when none is free.
	// It needs a queue. Range 0.01 to 1. Zero: callers are not distinguished.
	MaxCallerShare float64 `yaml:"maxCallerShare" range:"0.01..1" example:"0.5"`
}

// What QueueTarget and QueueInterval are at least when they follow from the time that requests take: those of RFC 8289.
const (
	leastTarget   = 5 * time.Millisecond
	leastInterval = 100 * time.Millisecond
)

// Enabled reports whether anything can be refused.
func (c Config) Enabled() bool {
	return !c.Disabled && (c.Concurrency != "" && c.Concurrency != Unlimited || c.CPU > 0)
}

// WithDefaults returns c with the defaults written into the fields that are zero and whose default is a number. It is
// pure, and doing it twice changes nothing. A Config that is off stays off.
func (c Config) WithDefaults() Config {
	if c.Concurrency == Unlimited {
		c.Concurrency = ""
	}
	if c.Concurrency == BBR {
		c.MaxConcurrency = cmp.Or(c.MaxConcurrency, most)
	}
	c.MaxConcurrency = cmp.Or(c.MaxConcurrency, 1000)
	c.MinConcurrency = cmp.Or(c.MinConcurrency, min(4, c.MaxConcurrency))
	c.InitialConcurrency = cmp.Or(c.InitialConcurrency, min(max(20, c.MinConcurrency), c.MaxConcurrency))
	c.MaxRetryShare = cmp.Or(c.MaxRetryShare, 0.1)
	return c
}

// clamped returns c with every value moved into its range.
func (c Config) clamped() Config {
	c.MaxConcurrency = min(max(c.MaxConcurrency, 1), most)
	c.MinConcurrency = min(max(c.MinConcurrency, 1), c.MaxConcurrency)
	c.InitialConcurrency = min(max(c.InitialConcurrency, c.MinConcurrency), c.MaxConcurrency)
	c.MaxQueue = min(max(c.MaxQueue, 0), most)
	if c.QueueTarget != 0 {
		c.QueueTarget = min(max(c.QueueTarget, time.Millisecond), time.Minute)
	}
	if c.QueueInterval != 0 {
		c.QueueInterval = min(max(c.QueueInterval, time.Millisecond), time.Minute)
	}
	if c.CPU != 0 {
		c.CPU = min(max(c.CPU, 0.05), 0.99)
	}
	c.MaxRetryShare = min(max(c.MaxRetryShare, 0.01), 10)
	c.MaxCallerShare = min(max(c.MaxCallerShare, 0), 1)
	if c.Concurrency != "" && !c.Concurrency.adaptive() {
		c.Concurrency = Fixed
	}
	return c
}
