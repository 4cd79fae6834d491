package drill

import (
	"fmt"
	"time"
)

// Names of the acts.
const (
	Unguarded = "unguarded"
	Guarded   = "guarded"
)

// Threshold is the share of the goodput before the outage that counts as recovered, and Hold how long it has to last.
const (
	Threshold = 0.95
	Hold      = time.Second
)

// enough is how many requests it takes, before the outage and within Hold, for a share of them to mean anything, and
// enoughTime for how long they have to be watched before it: a few answers at its begin and end are off by chance.
const (
	enough     = 20
	enoughTime = 400 * time.Millisecond
)

// Config is one drill. Default returns one that shows a storm.
type Config struct {
	Seed    uint64  // of the arrival times
	Clients int     // how many clients there are, each with a guard of its own in the guarded act
	Rate    float64 // requests offered per second, by all clients together
	Service ServiceConfig

	AttemptTimeout time.Duration // an answer to an attempt that took longer is too late to count, in both acts; unguarded clients wait no longer
	Retries        int           // how often it tries again
	RetryDelay     time.Duration // after how long

	Before time.Duration // how long the database is well
	Outage time.Duration // then hangs
	After  time.Duration // then is well again
	Within time.Duration // the guarded clients have to recover within this time after the outage

	Acts   []string // Unguarded, Guarded, in the order of play
	Policy Policy   // of the guarded act

	Progress func(Progress) // called once a second on Run's goroutine; may be nil
}

// Progress is the last second of an act.
type Progress struct {
	Act      string
	Elapsed  time.Duration
	Phase    Phase
	Offered  int // requests in the last second
	Attempts int
	Answered int // with success
	Refused  int // by the guards, without an attempt
	Waiting  int // in the service's queue now
}

// Default returns the drill as the README shows it.
func Default() Config {
	return Config{
		Seed: 1, Clients: 50, Rate: 250,
		Service: ServiceConfig{
			Workers: 20, ServiceTime: 50 * time.Millisecond, Queue: 900, DatabaseTimeout: 500 * time.Millisecond,
		},
		AttemptTimeout: time.Second, Retries: 3, RetryDelay: time.Second,
		Before: 4 * time.Second, Outage: 5 * time.Second, After: 14 * time.Second, Within: 5 * time.Second,
		Acts: []string{Unguarded, Guarded}, Policy: DefaultPolicy(),
	}
}

// Length returns how long one act takes, without the drain at its end.
func (c Config) Length() time.Duration { return c.Before + c.Outage + c.After }

// StormLoad returns the attempts per second when every attempt fails.
func (c Config) StormLoad() float64 { return c.Rate * float64(c.Retries+1) }

// Phase is a part of an act.
type Phase int

// The phases of an act, in order.
const (
	BeforeOutage Phase = iota
	DuringOutage
	AfterOutage
	phases
)

// String returns "before", "outage" or "after".
func (p Phase) String() string { return [...]string{"before", "outage", "after"}[p] }

// PhaseAt tells which phase an act is in.
func (c Config) PhaseAt(at time.Duration) Phase {
	switch {
	case at < c.Before:
		return BeforeOutage
	case at < c.Before+c.Outage:
		return DuringOutage
	}
	return AfterOutage
}

// warmUp is left out of the measurement before the outage: connections are being opened.
const warmUp = 500 * time.Millisecond

// steady returns when connections are open and the first requests have been answered: from then on until the outage,
// goodput is what it normally is.
func (c Config) steady() time.Duration { return roundUp(warmUp+c.Service.ServiceTime, fineBin) }

// bounds returns from when to when a phase is measured.
func (c Config) bounds(p Phase) (from, to time.Duration) {
	ends := [...]time.Duration{c.Before, c.Before + c.Outage, c.Length()}
	if p == BeforeOutage {
		return c.steady(), ends[p]
	}
	return ends[p-1], ends[p]
}

// Problems returns everything that is wrong with c, one sentence each, named by the flags of the command.
func (c Config) Problems() []string {
	var found []string
	check := func(ok bool, format string, args ...any) bool {
		if !ok {
			found = append(found, fmt.Sprintf(format, args...))
		}
		return ok
	}
	whole := func(flag string, v, low, high int) bool {
		return check(v >= low && v <= high, "--%s: %d is out of range; allowed: %d to %d", flag, v, low, high)
	}
	span := func(flag string, v, low, high time.Duration) bool {
		return check(v >= low && v <= high, "--%s: %v is out of range; allowed: %v to %v", flag, v, low, high)
	}
	steps := func(flag string, v, low, high time.Duration) bool {
		return span(flag, v, low, high) && check(v%fineBin == 0, "--%s: %v is not a multiple of %v, the steps in which the drill counts", flag, v, fineBin)
	}
	whole("clients", c.Clients, 1, 1000)
	lowest := enough / Hold.Seconds()
	rate := check(c.Rate >= lowest && c.Rate <= 5000, "--rate: %v is out of range; allowed: %v to 5000 requests per second", c.Rate, lowest)
	workers := whole("capacity", c.Service.Workers, 1, 10_000)
	work := span("service-time", c.Service.ServiceTime, time.Millisecond, 10*time.Second) &&
		check(c.Service.ServiceTime < c.AttemptTimeout, "--service-time: %v is not below %v, after which an answer is too late: no request could be answered in time", c.Service.ServiceTime, c.AttemptTimeout)
	whole("queue", c.Service.Queue, 1, 1_000_000)
	before := steps("before", c.Before, time.Second, 10*time.Minute)
	steps("outage", c.Outage, 500*time.Millisecond, 10*time.Minute)
	if steps("after", c.After, 2*time.Second, 10*time.Minute) {
		span("within", c.Within, time.Second, c.After)
	}
	if rate && workers && work {
		check(c.Rate <= 0.9*c.Service.Capacity(), "--rate: %.4g/s is more than nine tenths of what the service can do (%d workers / %v = %.4g/s): it would be in trouble without any outage; lower --rate or raise --capacity",
			c.Rate, c.Service.Workers, c.Service.ServiceTime, c.Service.Capacity())
	}
	if rate && work && before {
		watched := max(c.Before-c.steady(), 0)
		seen := c.Rate * watched.Seconds()
		check(seen >= enough && watched >= enoughTime, "--before: %v is too short: goodput is measured from %v on, and to know what it normally is takes %v and %d requests, not %v and %.0f; raise --before or --rate",
			c.Before, c.steady(), enoughTime, enough, watched, seen)
	}
	return found
}

// Notes returns what a reader of a valid c should know before he believes what he sees.
func (c Config) Notes() []string {
	var found []string
	if c.StormLoad() <= c.Service.Capacity() {
		found = append(found, fmt.Sprintf("even with every request sent %d times, %.4g/s is within the capacity of %.4g/s: expect the unguarded clients to recover by themselves",
			c.Retries+1, c.StormLoad(), c.Service.Capacity()))
	}
	if c.Service.QueueTime() <= c.AttemptTimeout {
		found = append(found, fmt.Sprintf("a full queue is %s of work, within the clients' timeout of %v: answers still come in time, expect no lasting storm",
			seconds(c.Service.QueueTime().Seconds()), c.AttemptTimeout))
	}
	if note := c.Policy.patience(c.AttemptTimeout); note != "" {
		found = append(found, note)
	}
	return append(found, c.Policy.notes...)
}

// FilesNeeded returns how many file descriptors the drill may need at once: two per connection, and a connection per
// attempt in the air.
func (c Config) FilesNeeded() uint64 {
	inAir := c.StormLoad() * c.AttemptTimeout.Seconds()
	return uint64(2*(inAir+2*float64(c.Clients))) + 64
}
