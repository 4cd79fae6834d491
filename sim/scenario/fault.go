package scenario

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/distribution"
)

var inf = math.Inf(1)

// Fault is one thing that goes wrong. Exactly one of the kinds names its target, a service or (surge, restart,
// operator) a fleet.
type Fault struct {
	// At is when it begins, from the start of the run.
	At time.Duration `yaml:"at" range:"0s..168h" example:"30s"`
	// For is how long it lasts. A restart is down for as long. Operator actions last until the end unless for is given.
	For time.Duration `yaml:"for" range:"0s..168h" example:"30s"`

	// Outage: the service does not answer.
	Outage string `yaml:"outage" example:"payment-db"`
	// Slowdown: work of the service takes longer, by factor or add.
	Slowdown string `yaml:"slowdown" example:"payment-db"`
	// Errors: the service answers 500, for the share rate of requests.
	Errors string `yaml:"errors" example:"payment-db"`
	// Capacity: the service has only factor times its workers.
	Capacity string `yaml:"capacity" example:"payment-db"`
	// Loss: requests to the service, or answers from it, are lost on the way, for the share rate of attempts.
	Loss string `yaml:"loss" example:"payment-db"`
	// Restart: instances of the service or fleet lose their queues, work, connections and guards, and are down for a
	// while.
	Restart string `yaml:"restart" example:"payment-service"`
	// Deploy: a bad version rolls out over the time rollout: instance by instance gets slower by factor and fails with
	// rate, until it is rolled back at the end.
	Deploy string `yaml:"deploy" example:"payment-service"`
	// Surge: the fleet offers factor times its load.
	Surge string `yaml:"surge" example:"checkout"`
	// Flush: replicas of a cache lose all that they hold, at one moment.
	Flush string `yaml:"flush" example:"cache"`
	// Redis: the instances of the service or fleet cannot reach the Redis through which they share their retry budgets,
	// what their breakers find out, or the rate limit of their gates.
	Redis string `yaml:"redis" example:"checkout"`
	// Operator: somebody acts on the service or fleet: see action.
	Operator string `yaml:"operator" example:"checkout"`

	// Mode of an outage: "hang" (default; requests are taken in and nothing is worked on until it is over), "blackhole"
	// (requests that arrive are never answered), "refuse" (connections are refused at once), or "fail" (503 at once).
	// Work under way when an outage begins is finished.
	Mode string `yaml:"mode" enum:"hang|blackhole|refuse|fail" example:"refuse"`
	// Factor of a slowdown, capacity loss, surge or deploy.
	Factor float64 `yaml:"factor" range:"0.000001..1000000" example:"10"`
	// Add is what a slowdown adds to the service time, a distribution.
	Add distribution.Distribution `yaml:"add" example:"10s"`
	// Rate is the share of requests that errors, loss and deploy hit. Default: all.
	Rate float64 `yaml:"rate" range:"0.000001..1" percent:"true" example:"30%"`
	// Requests is the share of requests that a slowdown hits. Default: all.
	Requests float64 `yaml:"requests" range:"0.000001..1" percent:"true" example:"30%"`
	// Share of the instances that are hit, rounded up. Default: all.
	Share float64 `yaml:"share" range:"0.000001..1" percent:"true" example:"50%"`
	// Zone has only instances in that zone hit.
	Zone string `yaml:"zone" example:"b"`
	// Rollout of a deploy or restart: the time over which the instances are reached one after the other. Default: all
	// at once.
	Rollout time.Duration `yaml:"rollout" range:"0s..24h" example:"60s"`
	// Action of an operator: "restart", "shed" (refuse the share rate of a fleet's new requests), "scale" (factor times
	// the workers), "stop-retries" (reload the callers' policy with maxRetries 0), "empty-queue".
	Action string `yaml:"action" enum:"restart|shed|scale|stop-retries|empty-queue" example:"shed"`
}

// End returns when the fault is over: for all instances, if it reaches them one after the other.
func (f *Fault) End() time.Duration {
	if f.Restart != "" {
		return f.At + f.Rollout + f.For
	}
	return f.At + f.For
}

// Hits returns how many of n instances the fault reaches in the end: the first ones.
func (f *Fault) Hits(n int) int {
	if f.Share > 0 {
		return min(n, int(math.Ceil(float64(n)*f.Share-1e-9)))
	}
	return n
}

// The words of Fault.
const (
	Hang        = "hang"
	Blackhole   = "blackhole"
	Refuse      = "refuse"
	Fail        = "fail"
	DoRestart   = "restart"
	DoShed      = "shed"
	DoScale     = "scale"
	StopRetries = "stop-retries"
	EmptyQueue  = "empty-queue"
)

// FaultKind says what goes wrong.
type FaultKind uint8

// The kinds of faults.
const (
	NoFault FaultKind = iota
	OutageFault
	SlowdownFault
	ErrorsFault
	CapacityFault
	LossFault
	RestartFault
	DeployFault
	SurgeFault
	FlushFault
	RedisFault
	OperatorFault
)

var faultNames = [...]string{
	"", "outage", "slowdown", "errors", "capacity", "loss", "restart", "deploy", "surge", "flush", "redis",
	"operator",
}

// String returns the key in the file.
func (k FaultKind) String() string { return faultNames[k] }

// Kind returns what goes wrong and whom it hits; the first, if several are named.
func (f *Fault) Kind() (FaultKind, string) {
	for i, target := range f.targets() {
		if target != "" {
			return FaultKind(i + 1), target
		}
	}
	return NoFault, ""
}

func (f *Fault) targets() [11]string {
	return [...]string{f.Outage, f.Slowdown, f.Errors, f.Capacity, f.Loss, f.Restart, f.Deploy, f.Surge, f.Flush,
		f.Redis, f.Operator}
}
