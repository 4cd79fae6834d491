package scenario

import (
	"time"

	"github.com/abate-go/abate/sim/distribution"
)

// Service answers calls. A request arrives at one of the replicas, waits in its queue for a worker, takes its service
// time, makes its own calls, and is answered.
type Service struct {
	Name string `yaml:"-"`
	// Replicas are equal; each has its own queue, workers, and guards for what it calls. Default: 1.
	Replicas int `yaml:"replicas" range:"1..100000" example:"20"`
	// Balancing is how an attempt gets its replica. "random" (default), "round-robin" and "least-queue" are what stands
	// between caller and service and does not see what becomes of attempts, as a virtual address. "least-request" is
	// what "abate proxy" does, and Envoy under that name: each caller's instance draws two replicas and takes the one
	// with fewer of its own attempts pending, tries again at another one, and leaves out those that fail, by the
	// outlierDetection of the policy of the call.
	Balancing string `yaml:"balancing" enum:"random|round-robin|least-queue|least-request" example:"least-request"`
	// Zones are where the replicas are: the first in the first zone, the second in the second, and from the first zone on
	// again; ["a", "a", "b"] has twice as many in a. A caller with zones whose calls are balanced by least-request prefers
	// replicas in its own, as "abate proxy" does. Default: nobody knows.
	Zones []string `yaml:"zones" example:"[\"a\", \"b\", \"c\"]"`
	// Workers is how many requests one replica works on at once (threads). Default: no limit.
	Workers int `yaml:"workers" range:"1..1000000" example:"50"`
	// ServiceTime is how long the work on one request takes, without the calls it makes. A distribution: "50ms",
	// "exponential 50ms", "lognormal median 50ms p99 400ms", "99% 5ms, 1% 10s", "quantiles p0 1ms p50 5ms p100 1s".
	ServiceTime distribution.Distribution `yaml:"serviceTime" example:"exponential 50ms"`
	// SlowsDown makes work slower when a replica works on many requests at once: the service time is multiplied by 1 +
	// slowsDown × (requests being worked on − 1). Default: 0.
	SlowsDown float64 `yaml:"slowsDown" range:"0..1000" example:"0.01"`
	// SlowsQueued makes work slower while requests wait, as memory and garbage collection do: the service time is
	// multiplied by 1 + slowsQueued × (requests waiting), at most by slowsQueuedMax. Default: 0.
	SlowsQueued float64 `yaml:"slowsQueued" range:"0..1000" example:"0.001"`
	// SlowsQueuedMax bounds the factor of slowsQueued. Default: 10.
	SlowsQueuedMax float64 `yaml:"slowsQueuedMax" range:"1..1000" example:"2"`
	// Queue is where requests wait for a worker.
	Queue Queue `yaml:"queue"`
	// ErrorRate is the share of requests that are answered 500 after the work, independent of load.
	ErrorRate float64 `yaml:"errorRate" range:"0..1" percent:"true" example:"1%"`
	// RetryAfter is how long a refusal (503) asks callers to wait. Default: nothing.
	RetryAfter time.Duration `yaml:"retryAfter" range:"0s..24h" example:"2s"`
	// RefusalCost is what a refusal by the service's gate (protect, in the policy) costs its workers, while all of them
	// are busy: the work that begins next takes that much longer. Default: nothing.
	RefusalCost time.Duration `yaml:"refusalCost" range:"1us..1s" example:"50us"`
	// Calls are the services that a request needs, in order, after its own work. The worker waits for them.
	Calls []Call `yaml:"calls" example:"[payment-db]"`
	// Parallel makes the calls all at once.
	Parallel bool `yaml:"parallel" example:"true"`
	// CallsFirst makes the calls before the service's own work.
	CallsFirst bool `yaml:"callsFirst" example:"true"`
	// Connections is what connecting costs, for callers with a pool and for users who hold sessions.
	Connections Connections `yaml:"connections"`
	// OptimisticLock makes all requests write the same row. A request succeeds only if no other finished since its work
	// began; else it is answered 409, which callers may retry.
	OptimisticLock bool `yaml:"optimisticLock" example:"true"`
	// Cache makes the service a cache, which callers ask before they ask another service.
	Cache Cache `yaml:"cache"`
	// Start is how a replica comes up.
	Start Start `yaml:"start"`
	// Crash is what a replica dies of. Default: it does not.
	Crash Crash `yaml:"crash"`
	// Probes ask replicas how they are. Default: nobody asks.
	Probes Probes `yaml:"probes"`
	// Autoscale adds and removes replicas. Default: replicas stay as many as they are.
	Autoscale Autoscale `yaml:"autoscale"`
}

// The ways to choose a replica.
const (
	RandomReplica = "random"
	RoundRobin    = "round-robin"
	LeastQueue    = "least-queue"
	LeastRequest  = "least-request"
)

// Queue is the waiting line of one replica.
type Queue struct {
	// Limit is how many requests may wait. Default: any number.
	Limit int `yaml:"limit" range:"1..1000000000" example:"1000"`
	// None: nobody may wait; a request that finds no free worker is refused.
	None bool `yaml:"none" example:"true"`
	// Work bounds the queue by the work in it instead of limit: the requests waiting, times their mean service time,
	// divided by the workers. Default: no bound.
	Work time.Duration `yaml:"work" range:"1ms..24h" example:"250ms"`
	// WhenFull is what a request gets that finds the queue full: an "error" at once (default; 503), or "silence" until
	// its caller gives up.
	WhenFull string `yaml:"whenFull" enum:"error|silence" example:"error"`
	// Order in which requests are taken: "fifo" (default), "lifo" (newest first), "codel" (oldest first, but those that
	// waited too long are refused while the queue does not drain; RFC 8289).
	Order string `yaml:"order" enum:"fifo|lifo|codel" example:"codel"`
	// Target is the wait that codel tolerates. Default: 5ms.
	Target time.Duration `yaml:"target" range:"1ms..1h" example:"5ms"`
	// Interval is how long codel tolerates waits above target. Default: 100ms.
	Interval time.Duration `yaml:"interval" range:"1ms..1h" example:"100ms"`
	// DropExpired drops a request, when it comes to the head of the queue, whose caller has given up by then: the
	// deadline travels with the request.
	DropExpired bool `yaml:"dropExpired" example:"true"`
}

// The words of Queue, and of Connections.
const (
	ErrorWhenFull   = "error"
	SilenceWhenFull = "silence"
	WaitWhenFull    = "wait"
	FIFO            = "fifo"
	LIFO            = "lifo"
	CoDel           = "codel"
)

// Connections is what connecting to a replica costs.
type Connections struct {
	// Max is how many connections a replica holds. Default: no limit.
	Max int `yaml:"max" range:"1..10000000" example:"100"`
	// WhenFull is what happens to who connects to a replica that holds max: an "error" at once (default; too many
	// connections), or a "wait" until one is closed.
	WhenFull string `yaml:"whenFull" enum:"error|wait" example:"wait"`
	// Backlog is how many may wait until theirs is made, or until one is closed; further ones get an error. Default: any
	// number.
	Backlog int `yaml:"backlog" range:"1..10000000" example:"128"`
	// Cost is what one new connection costs the replica, of one core. Default: nothing.
	Cost distribution.Distribution `yaml:"cost" example:"20ms"`
	// Cores is how many connections are made at once. Default: 1.
	Cores int `yaml:"cores" range:"1..100000" example:"4"`
}

// Capacity returns how many requests per second the service can answer with all its replicas, by its own work alone;
// +Inf when nothing limits it.
func (s *Service) Capacity() float64 {
	mean := s.ServiceTime.Mean().Seconds()
	if s.Workers == 0 || mean == 0 {
		return inf
	}
	return float64(max(s.Replicas, 1)) * float64(s.Workers) / mean
}
