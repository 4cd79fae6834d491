package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// bare is the part of a policy that switches everything off that is not asked for by name.
const bare = "retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"

// policy is the line of a scenario with its only variant: a policy for all services.
func policy(format string, args ...any) string {
	return "\nvariants: {only: {policy: {defaults: {" + fmt.Sprintf(format, args...) + "}}}}\n"
}

// plain is a policy that passes every call on once.
func plain() string { return policy("maxRetries: 0, " + bare) }

// experiments are all of them, in the order of the table.
func experiments() []experiment {
	var all []experiment
	for _, part := range []func() []experiment{
		queues, losses, abandonments, laws,
		retries, chains, budgets, breakers, hedges,
		backoffs, buckets, gates,
		storms, cliffs, outages, bounds, pools, populations,
		elsewhere, caches, crashes, sessions, supermarket, criticality, platform,
	} {
		all = append(all, part()...)
	}
	return all
}

func total(series []uint32) float64 {
	var sum int64
	for _, n := range series {
		sum += int64(n)
	}
	return float64(sum)
}

func total64(series []int64) float64 {
	var sum int64
	for _, n := range series {
		sum += n
	}
	return float64(sum)
}

// attempts per request that began in the run.
func attempts(r *engine.Record) float64 { return arrived(0)(r) / total(r.Fleets[0].Offered) }

// success is the share of requests answered.
func success(r *engine.Record) float64 { return share(r, engine.Answered) }

// share of requests that ended in a way.
func share(r *engine.Record, end engine.EndKind) float64 {
	return float64(r.Fleets[0].Ends[end]) / total(r.Fleets[0].Offered)
}

// arrived are the attempts at a service in the run.
func arrived(service int) func(*engine.Record) float64 {
	return func(r *engine.Record) float64 { return total(r.Services[service].Arrived) }
}

// leaf is the attempts at the last service per request.
func leaf(r *engine.Record) float64 {
	return arrived(len(r.Services)-1)(r) / total(r.Fleets[0].Offered)
}

// waited is the share of work whose request had to wait.
func waited(r *engine.Record) float64 {
	h := &r.Services[0].Wait[engine.Before]
	return 1 - float64(h.Counts[0])/float64(h.Total)
}

// meanWait is the mean wait for a worker, in seconds.
func meanWait(r *engine.Record) float64 { return r.Services[0].Wait[engine.Before].Mean() }

// waitedLonger is the share of waits of more than so many seconds.
func waitedLonger(r *engine.Record, seconds float64) float64 {
	h := &r.Services[0].Wait[engine.Before]
	low, high := 0.0, 1.0
	for range 40 { // the quantile rises with its share
		middle := (low + high) / 2
		if h.Quantile(middle) <= seconds {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 - low
}

// yes is 1 for what holds of a run.
func yes(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
