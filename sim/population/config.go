package population

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/retry"
)

// Limits of a Config.
const (
	maxClients  = 20_000_000
	maxDuration = 24 * time.Hour
	maxSlots    = 1_000_000
	maxOutages  = 1000
	maxCapacity = 1e9
)

// Config is one population, its server, and what goes wrong. Times are since the start.
type Config struct {
	// Clients is how many there are, 1 to 20,000,000.
	Clients int
	// Within is the time over which the clients' single requests are spread, 0s to 24h. Zero: all at the start.
	Within time.Duration
	// Think makes the population a closed loop: the mean of the exponential time between the end of a request and the next
	// one of the same client, 1ms to 24h. Zero, the default, means one request per client.
	Think time.Duration

	// Retry is the policy of every client; see package retry for its defaults and ranges.
	Retry retry.Config
	// AttemptTimeout is how long a client waits for the answer to one attempt, 0s to 24h. Zero means no limit.
	AttemptTimeout time.Duration
	// Patience is the deadline of a request, all its attempts and delays together, 0s to 24h: an attempt under way then
	// is left, and no retry starts then or later. Zero means no limit. Only Exact knows it.
	Patience time.Duration

	// Capacity is how many attempts the server takes per second, 0.001 to 1e9. Zero or +Inf means no limit.
	Capacity float64
	// ServiceTime is how long the server works on an attempt that it has taken, 0s to 24h.
	ServiceTime time.Duration
	// QueueLimit is how many attempts may wait, up to 1e9. Zero, the default, means none; -1 means any number.
	QueueLimit int

	// Outages are when the server takes nothing, at most 1000, in order of time, not overlapping.
	Outages []Outage

	// Duration of the run, 1ms to 24h. It is rounded up to whole slots.
	Duration time.Duration
	// Slot is the grain of the Curve, and of the cohorts, 100µs to 10s. A run has at most 1,000,000 of them. Zero means
	// the default: 10ms, or the least whole number of milliseconds with which the run has few enough.
	Slot time.Duration
}

// Outage is a time in which the server takes no attempt.
type Outage struct {
	// From is when it begins, and To when it is over: 0s to 168h, To after From.
	From, To time.Duration
	// Hang leaves the attempts that arrive without an answer until it is over. By default they are refused at once.
	Hang bool
}

// withDefaults returns c with Slot and a whole number of slots. It may be invalid.
func (c Config) withDefaults() Config {
	if c.Slot == 0 {
		c.Slot = 10 * time.Millisecond
		if c.Duration > maxSlots*c.Slot && c.Duration <= maxDuration {
			c.Slot = ceil(ceil(c.Duration, maxSlots), time.Millisecond) * time.Millisecond
		}
	}
	if c.Slot > 0 && c.Duration > 0 && c.Duration <= maxDuration {
		c.Duration = ceil(c.Duration, c.Slot) * c.Slot
	}
	if c.Capacity == 0 {
		c.Capacity = math.Inf(1)
	}
	return c
}

// ceil divides and rounds up.
func ceil(d, by time.Duration) time.Duration { return (d + by - 1) / by }

// slots returns how many slots a run has.
func (c *Config) slots() int { return int(c.Duration / c.Slot) }

// prepare returns c with its defaults, or everything that is wrong with it.
func (c Config) prepare() (Config, error) {
	var v validator
	v.duration("Duration", c.Duration, time.Millisecond, maxDuration)
	c = c.withDefaults()
	v.number("Clients", float64(c.Clients), 1, maxClients, "at least one client")
	v.number("QueueLimit", float64(c.QueueLimit), -1, 1e9, "-1 for any number, 0 for none")
	if !math.IsInf(c.Capacity, 1) {
		v.number("Capacity", c.Capacity, 0.001, maxCapacity, "requests per second, or 0 for no limit")
	}
	v.duration("Within", c.Within, 0, maxDuration)
	if c.Think != 0 {
		v.duration("Think", c.Think, time.Millisecond, maxDuration)
	}
	v.duration("AttemptTimeout", c.AttemptTimeout, 0, maxDuration)
	v.duration("Patience", c.Patience, 0, maxDuration)
	v.duration("ServiceTime", c.ServiceTime, 0, maxDuration)
	v.duration("Slot", c.Slot, 100*time.Microsecond, 10*time.Second)
	if len(v.found) == 0 && c.slots() > maxSlots {
		v.add("Slot", fmt.Sprintf("%v makes %d slots of %v", c.Slot, c.slots(), c.Duration), fmt.Sprintf(
			"allowed: at most %d slots; leave Slot away or set it to at least %v", maxSlots, ceil(c.Duration, maxSlots)))
	}
	if c.Within != 0 && c.Think != 0 {
		v.add("Within", "is set together with Think",
			"a population makes one request each (Within) or is a closed loop (Think): leave one away")
	}
	v.outages(&c)
	v.retry(c.Retry)
	return c, errors.Join(v.found...)
}

// Validate returns everything that is wrong with c, joined; nil when Exact can run it. [Cohort] knows less: it returns
// an error of its own for what it cannot do.
func (c Config) Validate() error {
	_, err := c.prepare()
	return err
}

type validator struct{ found []error }

func (v *validator) add(path, problem, fix string) {
	v.found = append(v.found, &abate.FieldError{Path: path, Problem: problem, Fix: fix})
}

func (v *validator) number(path string, value, low, high float64, meaning string) {
	if !(value >= low && value <= high) {
		v.add(path, fmt.Sprintf("%v is out of range", value), fmt.Sprintf("allowed: %v to %v (%s)", low, high, meaning))
	}
}

func (v *validator) duration(path string, d, low, high time.Duration) {
	if d < low || d > high {
		v.add(path, fmt.Sprintf("%v is out of range", d), fmt.Sprintf("allowed: %v to %v", low, high))
	}
}

// retry adds the mistakes that a policy file with these retries would have.
func (v *validator) retry(c retry.Config) {
	list, _ := (abate.Policy{Retry: c}).Validate().(interface{ Unwrap() []error })
	if list == nil {
		return
	}
	for _, err := range list.Unwrap() {
		var field *abate.FieldError
		if errors.As(err, &field) {
			v.add("Retry."+field.Path, field.Problem, field.Fix)
		}
	}
}

func (v *validator) outages(c *Config) {
	if len(c.Outages) > maxOutages {
		v.add("Outages", fmt.Sprintf("has %d members", len(c.Outages)), fmt.Sprintf("allowed: at most %d", maxOutages))
		return
	}
	const latest = 168 * time.Hour
	silent := false
	for i, o := range c.Outages {
		path := fmt.Sprintf("Outages[%d]", i)
		v.duration(path+".From", o.From, 0, latest)
		v.duration(path+".To", o.To, 0, latest)
		if o.To <= o.From {
			v.add(path, fmt.Sprintf("ends at %v, not after its begin at %v", o.To, o.From), "set To after From")
		} else if i > 0 && o.From < c.Outages[i-1].To {
			v.add(path, fmt.Sprintf("begins at %v, before the one before it ends at %v", o.From, c.Outages[i-1].To),
				"put them in order, and join those that overlap")
		}
		silent = silent || o.Hang
	}
	if silent && c.QueueLimit == 0 && c.AttemptTimeout == 0 && c.Patience == 0 {
		v.add("AttemptTimeout", "is 0, and an outage that hangs would hold its clients for ever",
			"set it, for example 1s, or let attempts wait in a queue (QueueLimit)")
	}
}
