package envoywords

import (
	"time"

	"github.com/abate-go/abate/topology"
)

// What Envoy does where a configuration says nothing.
const (
	Retries       = 1 // with retry_on and without num_retries
	RouteTimeout  = 15 * time.Second
	ClusterRetry  = 3    // retries in flight to a cluster: circuit_breakers.thresholds.max_retries
	ClusterLimit  = 1024 // connections, pending requests and requests to a cluster
	Connect       = 5 * time.Second
	BudgetShare   = 0.2 // retry_budget.budget_percent
	BudgetLeast   = 3   // retry_budget.min_retry_concurrency
	firstBackoff  = 25 * time.Millisecond
	backoffFactor = 10 // the longest wait is so many times the first
)

// Latest is the version of Envoy whose defaults are taken where nobody says another.
const Latest = "1.40"

// Backoff returns Envoy's waits: doubling, drawn between nothing and the whole of it, at most ten times the first. who
// names the product whose defaults the missing values are, and at is the block that leaves them out.
func Backoff(first, most topology.Value[time.Duration], who string, at topology.Position) topology.Backoff {
	if first.IsZero() {
		first = topology.DefaultOf(firstBackoff, who, at)
	}
	if base, ok := first.Get(); most.IsZero() && ok {
		most = topology.DefaultOf(backoffFactor*base, who, at)
	}
	return topology.Backoff{First: first, Max: most, Multiplier: topology.DefaultOf(2.0, who, at),
		Jitter: topology.DefaultOf("full", who, at), RetryAfter: topology.DefaultOf(false, who, at)}
}

// Answers returns what Envoy's own caller sees where that is not the last answer.
func Answers() []topology.Answer {
	return []topology.Answer{{After: topology.Hang, Gives: topology.S504}, {After: topology.Refused, Gives: topology.S503},
		{After: topology.ResetUnsent, Gives: topology.S503}, {After: topology.ResetSent, Gives: topology.S503}}
}

// Ejection is Envoy's outlier_detection where only its presence is written.
func Ejection(who string, at topology.Position) topology.Ejection {
	return topology.Ejection{
		Consecutive: topology.DefaultOf(5, who, at),
		Interval:    topology.DefaultOf(10*time.Second, who, at),
		Base:        topology.DefaultOf(30*time.Second, who, at),
		MaxShare:    topology.DefaultOf(0.1, who, at),
	}
}

// Or returns the value that is written, or else the default.
func Or[T topology.Scalar](written, byDefault topology.Value[T]) topology.Value[T] {
	if written.IsZero() {
		return byDefault
	}
	return written
}
