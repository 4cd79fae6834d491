package httpdrill

import (
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/scenarios"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// Config is one drill. Default returns one that shows a storm.
type Config struct {
	Scenario *scenario.Scenario // what is run; see Problems for which scenarios can be
	Acts     []string           // the variants to run, in this order
	Seed     uint64             // of arrivals and service times; the first seed of the simulation it is compared with
	// the file that the policy of Guarded was taken from instead of the scenario; empty for none
	Policy string

	Via     Via    // if set, it carries out the clients' policies, and the clients know nothing of them
	ViaName string // what Via starts, in words

	Watch Watchers // shown what guards and gates do, while they do it

	Progress func(Progress) // called once a second on Run's goroutine; may be nil

	unlisted bool // the file of Policy does not list the service
}

// Quickstart is the scenario of Default, a file of package scenarios.
const Quickstart = "quickstart.yaml"

// quickstart returns its text, which is part of the program.
func quickstart() []byte {
	text, err := scenarios.Files.ReadFile(Quickstart)
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err)) // a test reads it
	}
	return text
}

// Default returns the drill as the README shows it.
func Default() Config {
	s, err := scenario.Parse(Quickstart, quickstart())
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err)) // a test parses it
	}
	return New(s)
}

// New returns the drill that runs all variants of a scenario.
func New(s *scenario.Scenario) Config {
	c := Config{Scenario: s, Seed: 1}
	for i := range s.Variants {
		c.Acts = append(c.Acts, s.Variants[i].Name)
	}
	return c
}

// Guarded is the variant that Changes and the command call the guarded one: the variant of that name, or else the last.
func (c Config) Guarded() *scenario.Variant {
	if v := c.variant("guarded"); v != nil {
		return v
	}
	return &c.Scenario.Variants[len(c.Scenario.Variants)-1]
}

// variant returns the variant of a name, nil if there is none.
func (c Config) variant(name string) *scenario.Variant {
	for i := range c.Scenario.Variants {
		if v := &c.Scenario.Variants[i]; v.Name == name {
			return v
		}
	}
	return nil
}

// cast is who takes part in an act. It can only be had of a scenario without Problems.
type cast struct {
	variant  *scenario.Variant
	fleet    *scenario.Fleet
	services []scenario.Service // as the variant has them
	// numbers of the service that the clients call, and of the one behind it; back is -1 without one
	front, back int
}

func (c Config) cast(v *scenario.Variant) cast {
	a := cast{variant: v, fleet: &c.Scenario.Clients[0], services: c.Scenario.ServicesOf(v), back: -1}
	for i := range a.services {
		switch {
		case a.services[i].Name == a.fleet.Calls[0].To:
			a.front = i
		default:
			a.back = i
		}
	}
	return a
}

func (a cast) service() *scenario.Service { return &a.services[a.front] }

// clientPolicy is what the clients follow.
func (a cast) clientPolicy() policyfile.Policy {
	return a.variant.PolicyOf(a.fleet.Name, a.service().Name)
}

// work is how long a request keeps a worker, on average, while all is well.
func (a cast) work() time.Duration {
	mean := a.service().ServiceTime.Mean()
	if a.back >= 0 {
		mean += a.services[a.back].ServiceTime.Mean()
	}
	return mean
}

// capacity is how many requests per second the service can do while all is well.
func (a cast) capacity() float64 { return float64(a.workers()) / a.work().Seconds() }

// workers is how many requests all replicas of the service work on at once.
func (a cast) workers() int { return a.service().Workers * replicas(a.service()) }

// places is how many requests may wait in the service.
func (a cast) places() int { return a.service().Queue.Limit * replicas(a.service()) }

// queueTime is how long the last request of a full queue waits.
func (a cast) queueTime() time.Duration {
	return time.Duration(float64(a.places()) / a.capacity() * float64(time.Second))
}

// stormLoad is the attempts per second when every attempt fails, as far as maxRetries bounds it.
func (a cast) stormLoad() float64 { return a.fleet.Rate * float64(a.clientPolicy().MaxRetries+1) }

// breaks reports whether the clients have circuit breakers.
func (a cast) breaks() bool { return a.clientPolicy().CircuitBreaker.Enabled() }

// unbounded reports whether only maxRetries bounds what the clients add to the load.
func (a cast) unbounded() bool {
	return !a.clientPolicy().RetryBudget.Enabled() && !a.breaks()
}

// expectations of an act: those of the scenario and those of the variant.
func (c Config) expectations(v *scenario.Variant) []expect.Expectation {
	return append(append([]expect.Expectation(nil), c.Scenario.Expect...), v.Expect...)
}

// showsStorm reports a variant that is there to show a collapse.
func (c Config) showsStorm(v *scenario.Variant) bool {
	for _, x := range c.expectations(v) {
		if x.WantsCollapse() {
			return true
		}
	}
	return false
}

// within is how long an act may take to recover by its expectations; false if they do not say.
func (c Config) within(v *scenario.Variant) (time.Duration, bool) {
	for _, x := range c.expectations(v) {
		if x.Measure == "recovery" && (x.Op == expect.Below || x.Op == expect.AtMost) {
			return time.Duration(x.Value * float64(time.Second)), true
		}
	}
	return 0, false
}

// trouble reports whether something is wrong at a time of an act.
func (c Config) trouble(at time.Duration) bool {
	begin, end := c.Scenario.Trouble()
	return at >= begin && at < end
}

// Notes returns what a reader of a drill without Problems should know before he believes what he sees.
func (c Config) Notes() []string {
	var found []string
	add := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		for _, f := range found {
			if f == text {
				return
			}
		}
		found = append(found, text)
	}
	for _, name := range c.Acts {
		v := c.variant(name)
		a, p := c.cast(v), c.cast(v).clientPolicy()
		if c.showsStorm(v) && a.stormLoad() <= a.capacity() {
			add("even with every request sent %d times, %.4g/s is within the capacity of %.4g/s: expect %s to recover by itself",
				p.MaxRetries+1, a.stormLoad(), a.capacity(), name)
		}
		if c.showsStorm(v) && p.AttemptTimeout > 0 && a.queueTime() <= p.AttemptTimeout {
			add("a full queue is %s of work, within the clients' timeout of %v: answers still come in time, expect no "+
				"lasting storm",
				drill.Seconds(a.queueTime().Seconds()), p.AttemptTimeout)
		}
		if p.AttemptTimeout == 0 && p.Timeout == 0 && a.fleet.Patience == 0 {
			add("the policy of %s sets no attemptTimeout for %s: its clients wait as long as the service lets them, and an "+
				"answer counts however late it comes", name, a.service().Name)
		}
		if p.Fallback.Enabled() {
			add("the fallback of %s is left out: a degraded answer is not goodput", name)
		}
	}
	if c.Via != nil {
		add("the clients know nothing of policies: each sends its requests once, to %s, which carries out the policy of "+
			"the act", c.ViaName)
	}
	if c.unlisted {
		add("%s does not list %s, so its defaults apply", c.Policy, c.cast(c.Guarded()).service().Name)
	}
	return found
}

// FilesNeeded returns how many file descriptors a drill without Problems may need at once: two per connection, and a
// connection per attempt in the air.
func (c Config) FilesNeeded() uint64 {
	var most float64
	for _, name := range c.Acts {
		a := c.cast(c.variant(name))
		p := a.clientPolicy()
		inAir := float64(a.workers() + a.places()) // more cannot be in the service
		if p.AttemptTimeout > 0 {
			inAir = math.Min(inAir, a.stormLoad()*p.AttemptTimeout.Seconds())
		}
		inAir += a.stormLoad()/10 + float64(a.workers()) +
			float64(4*max(a.fleet.Instances, 1)*replicas(a.service()))
		most = math.Max(most, inAir)
	}
	return uint64(2*most) + 64
}
