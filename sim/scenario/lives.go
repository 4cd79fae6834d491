package scenario

import (
	"time"

	"github.com/abate-go/abate/sim/distribution"
)

// Start is how the program of a replica comes up: after it has died, has been restarted, or has been added.
type Start struct {
	// Takes is how long a replica takes until it can answer, a distribution. A fault restart says so itself, with for.
	// Default: no time.
	Takes distribution.Distribution `yaml:"takes" example:"uniform 10s..30s"`
	// Slower is the factor on the service times of a replica that has just come up: empty caches, code that has not been
	// compiled. It falls to 1 evenly over warmUp. Default: 1.
	Slower float64 `yaml:"slower" range:"1..1000" example:"5"`
	// WarmUp is how long a replica is slower.
	WarmUp time.Duration `yaml:"warmUp" range:"0s..24h" example:"60s"`
	// Backoff is how long the second restart in a row waits before it begins, the third twice as long, and so on, as
	// Kubernetes does with 10s; ten minutes without one end the row. Default: nobody waits.
	Backoff time.Duration `yaml:"backoff" range:"0s..24h" example:"10s"`
	// MaxBackoff is the longest of these waits. Default: 5m.
	MaxBackoff time.Duration `yaml:"maxBackoff" range:"1s..24h" example:"5m"`
}

// Crash is what a replica dies of.
type Crash struct {
	// Above is how many requests one replica can have at once, waiting and being worked on, before its memory is at an
	// end. Then it loses all of them and starts again.
	Above int `yaml:"above" range:"1..1000000000" example:"500"`
}

// Probes are the questions by which Kubernetes, or a balancer, finds out how each replica is. A probe waits in the
// queue of the replica like a request, and takes no time when its turn comes.
type Probes struct {
	// Liveness restarts a replica that fails it.
	Liveness Probe `yaml:"liveness"`
	// Readiness takes a replica that fails it out, until it passes again. A replica that starts has to pass it first.
	Readiness Probe `yaml:"readiness"`
}

// Probe is one question that is asked again and again.
type Probe struct {
	// Period is how often it is asked.
	Period time.Duration `yaml:"period" range:"100ms..1h" example:"10s"`
	// Timeout is how long an answer may take. Default: 1s.
	Timeout time.Duration `yaml:"timeout" range:"1ms..1h" example:"1s"`
	// FailureThreshold is how many failures in a row count. Default: 3.
	FailureThreshold int `yaml:"failureThreshold" range:"1..1000" example:"3"`
	// SuccessThreshold is how many answers in a row make a replica ready again. Default: 1.
	SuccessThreshold int `yaml:"successThreshold" range:"1..1000" example:"1"`
	// InitialDelay is how long after its start a replica is asked for the first time. Default: at once.
	InitialDelay time.Duration `yaml:"initialDelay" range:"0s..24h" example:"30s"`
}

// WithDefaults returns the probe as Kubernetes has it where nothing is said.
func (p Probe) WithDefaults() Probe {
	if p.Timeout == 0 {
		p.Timeout = time.Second
	}
	if p.FailureThreshold == 0 {
		p.FailureThreshold = 3
	}
	p.SuccessThreshold = max(p.SuccessThreshold, 1)
	return p
}

// Autoscale adds and removes replicas, from those given on, as the horizontal autoscaler of Kubernetes does: as many as
// bring the share of busy workers to the target.
type Autoscale struct {
	// Target is the share of the workers that should be busy, over all replicas that are ready.
	Target float64 `yaml:"target" range:"0.01..1" percent:"true" example:"60%"`
	// Min is the least number of replicas. Default: replicas.
	Min int `yaml:"min" range:"1..100000" example:"10"`
	// Max is the largest number of replicas.
	Max int `yaml:"max" range:"1..100000" example:"40"`
	// Every is how often it looks at the share of the time since the last look. Default: 15s.
	Every time.Duration `yaml:"every" range:"1s..1h" example:"15s"`
	// Delay is how long it takes until a new replica begins to start: metrics that come late, a machine that has to be
	// found. Default: no time.
	Delay time.Duration `yaml:"delay" range:"0s..24h" example:"30s"`
	// Step is how many replicas are added at once at most, or removed. Default: any number.
	Step int `yaml:"step" range:"1..100000" example:"4"`
	// CoolDown is for how long fewer replicas would have had to be enough before any is removed. Default: 5m.
	CoolDown time.Duration `yaml:"coolDown" range:"0s..24h" example:"5m"`
}

// WithDefaults returns the autoscaler with what is not said.
func (a Autoscale) WithDefaults(replicas int) Autoscale {
	if a.Min == 0 {
		a.Min = max(replicas, 1)
	}
	if a.Every == 0 {
		a.Every = 15 * time.Second
	}
	if a.Step == 0 {
		a.Step = a.Max
	}
	if a.CoolDown == 0 {
		a.CoolDown = 5 * time.Minute
	}
	return a
}

// Most is the largest number of replicas that the service ever has.
func (s *Service) Most() int { return max(s.Replicas, s.Autoscale.Max, 1) }

// Lives reports whether replicas come and go by themselves.
func (s *Service) Lives() bool {
	return s.Crash.Above > 0 || s.Probes.Liveness.Period > 0 || s.Probes.Readiness.Period > 0 || s.Autoscale.Max > 0
}
