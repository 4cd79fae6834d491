package scenario

import (
	"time"

	"github.com/abate-go/abate/sim/distribution"
)

// Fleet is a group of clients that offer load: programs (instances), each with guards of its own, or users.
type Fleet struct {
	Name string `yaml:"-"`
	// Rate is the load of an open loop, in requests per second by all instances together: it does not slow down when
	// answers do.
	Rate float64 `yaml:"rate" range:"0.000001..100000000" example:"10000"`
	// Arrivals is how the requests of an open loop follow each other: "poisson" (default; independent), "even" (one per
	// period and instance), "jittered" (one per period and instance, at a random moment within it).
	Arrivals string `yaml:"arrivals" enum:"poisson|even|jittered" example:"poisson"`
	// Curve is a load that changes: the rate from each moment on, in order of time, from the start of the run. It
	// replaces rate. A recorded curve is a list of its points.
	Curve []Point `yaml:"curve"`
	// Between is what happens between the points of curve: "steps" (default) or "ramps".
	Between string `yaml:"between" enum:"steps|ramps" example:"ramps"`
	// Daily makes rate the mean of a daily curve.
	Daily Daily `yaml:"daily"`

	// Users is a closed loop: so many users, who each think, send a request, and wait for its end before they think again.
	Users int `yaml:"users" range:"1..20000000" example:"1000"`
	// Think is how long a user thinks between two requests.
	Think distribution.Distribution `yaml:"think" example:"exponential 5s"`
	// Session makes every user hold a connection, to the service that it calls, for as long as it can: opening one is the
	// request. It replaces think.
	Session Session `yaml:"session"`
	// Once sends so many requests and no more, spread evenly over the time given by within.
	Once int `yaml:"once" range:"1..20000000" example:"1000"`
	// Within is the time over which the requests of once are spread. Default: all at the same moment, the start of the
	// run.
	Within time.Duration `yaml:"within" range:"0s..168h" example:"2m"`
	// Method says how clients (users or once) that are too many for a guard each are simulated: "exact" (default) runs
	// every client; "cohort" counts them in groups and checks itself against an exact run at smaller size.
	Method string `yaml:"method" enum:"exact|cohort" example:"cohort"`

	// Instances is how many processes the clients are; each has a guard for each service it calls, and requests are
	// spread over them. Default: 1.
	Instances int `yaml:"instances" range:"1..1000000" example:"50"`
	// Zones are where the instances are, in turn, as those of a service.
	Zones []string `yaml:"zones" example:"[\"a\", \"b\", \"c\"]"`
	// Patience is how long a client waits for an answer, over all attempts. An answer that comes later is late, not
	// goodput. Default: for ever.
	Patience time.Duration `yaml:"patience" range:"1ms..24h" example:"10s"`
	// Calls are the services that a request needs, in order.
	Calls []Call `yaml:"calls" example:"[payment-service]"`
	// Parallel makes the calls all at once.
	Parallel bool `yaml:"parallel" example:"true"`
	// Topic makes the clients a consumer group: its load is written to a Kafka topic, and its instances handle the
	// messages.
	Topic Topic `yaml:"topic"`
}

// The kinds of arrivals.
const (
	Poisson  = "poisson"
	Even     = "even"
	Jittered = "jittered"
	Steps    = "steps"
	Ramps    = "ramps"
	Exact    = "exact"
	Cohort   = "cohort"
)

// Open reports whether the fleet is an open loop.
func (f *Fleet) Open() bool { return f.Users == 0 && f.Once == 0 }

// Point is one point of a load curve.
type Point struct {
	// At is when the rate holds, from the start of the run.
	At time.Duration `yaml:"at" range:"0s..168h" example:"1m"`
	// Rate in requests per second.
	Rate float64 `yaml:"rate" range:"0..100000000" example:"500"`
}

// Daily is the shape of a day: a sine around the rate.
type Daily struct {
	// Swing is how far the rate goes above and below its mean, as a share of it; 0 means no daily shape.
	Swing float64 `yaml:"swing" range:"0..1" percent:"true" example:"40%"`
	// Peak is when in the day the load is highest. Default: 14h.
	Peak time.Duration `yaml:"peak" range:"0s..24h" example:"14h"`
	// Starts is the time of the day at the start of the run. Default: midnight.
	Starts time.Duration `yaml:"starts" range:"0s..24h" example:"12h"`
}

// Call is one service that a request needs. A plain name means the defaults.
type Call struct {
	// To is the service called.
	To string `yaml:"to" short:"true" example:"payment-db"`
	// Times is how often it is called, one after the other. Default: 1.
	Times int `yaml:"times" range:"1..1000" example:"3"`
	// Share of the requests that make this call. Default: all.
	Share float64 `yaml:"share" range:"0.000001..1" percent:"true" example:"30%"`
	// Optional calls may fail: the request goes on without.
	Optional bool `yaml:"optional" example:"true"`
	// Latency of the network, one way. Default: none.
	Latency distribution.Distribution `yaml:"latency" example:"exponential 1ms"`
	// AcrossZones is what the network adds to latency, one way, where caller and replica are in different zones. Default:
	// nothing.
	AcrossZones distribution.Distribution `yaml:"acrossZones" example:"1ms"`
	// Pool is how many connections each caller's instance holds at most; an attempt holds one from its beginning to its
	// end. Default: no limit, and connecting costs nothing.
	Pool int `yaml:"pool" range:"1..1000000" example:"20"`
	// Connect is the service of the policy under which the pool opens connections, for example one with preset:
	// connections; each instance has a guard of its own for it. Variants whose policy does not list it open them at
	// once, as pools do.
	Connect string `yaml:"connect" example:"payment-db connections"`
	// Priority says how much the call matters to a service behind a gate: CRITICAL_PLUS, CRITICAL, SHEDDABLE_PLUS or
	// SHEDDABLE. Default: that of the request for which it is made, else priority.default of the gate.
	Priority string `yaml:"priority" enum:"CRITICAL_PLUS|CRITICAL|SHEDDABLE_PLUS|SHEDDABLE" example:"SHEDDABLE"`
	// Naive callers do not use Abate's headers. They send no deadline, attempt number, priority or retry allowance, and
	// ignore what an answer says of Retry-After, of retries already made, or of not retrying. Their policy still
	// decides their retries. See naive of a variant for all calls of a client or service.
	Naive bool `yaml:"naive" example:"true"`
	// Else are the services to call instead when this call fails, in order: a cache, then a database; one region, then
	// another. Each has the policy of its own name, with its own timeouts. A cache that does not have what it was asked
	// for (see cache of a service) counts as failed here, and only here.
	Else []Else `yaml:"else" example:"[payment-db]"`
}

// Often returns how often the call is made per request, on average.
func (c *Call) Often() float64 {
	times, share := float64(max(c.Times, 1)), c.Share
	if share == 0 {
		share = 1
	}
	return times * share
}
