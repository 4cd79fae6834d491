package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// clientsPerRun is the size of the fleet whose breakers may trip.
const clientsPerRun = 50

// breakers are trips of breakers that see nothing but bad luck: each client makes a window of calls and one more, which
// shows what its breaker thinks.
func breakers() []experiment {
	var all []experiment
	for _, q := range []struct {
		window, trip int
		failing      float64
		one, any     float64
	}{
		{10, 5, 0.1, 0.00163494, 0.0785565},
		{20, 10, 0.3, 0.0479619, 0.914352},
		{20, 10, 0.4, 0.244663, 0.999999},
		{100, 50, 0.45, 0.182728, 0.999958},
	} {
		id := fmt.Sprintf("breaker/%d-%d-%v/", q.window, q.trip, q.failing)
		what := fmt.Sprintf("opens at %d of %d, %v fail: ", q.trip, q.window, q.failing)
		tripped := func(r *engine.Record) float64 { return float64(r.Fleets[0].Ends[engine.CircuitOpen]) / clientsPerRun }
		all = append(all, experiment{
			source: "binomial tail: false trips of policy/breaker, one window", runs: 300,
			model: fmt.Sprintf(`
duration: 200s
warmUp: 0s
clients: {callers: {once: %d, within: 100s, instances: %d, calls: [server]}}
services: {server: {errorRate: %v}}
`, clientsPerRun*(q.window+1), clientsPerRun, q.failing) +
				policy(`maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {failureRateThreshold: %v, slidingWindow: `+
					`"%d", minimumNumberOfCalls: %d, waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 24h}`,
					float64(q.trip)/float64(q.window), q.window, q.window),
			claims: []claim{
				{id: id + "one", what: what + "P(a client trips)", published: q.one, how: Wilson, trials: clientsPerRun,
					record: tripped},
				{id: id + "any", what: what + "P(any of 50 trips)", published: q.any, how: Wilson,
					record: func(r *engine.Record) float64 { return yes(tripped(r) > 0) }},
			},
		})
	}
	return all
}

// hedges are the tail at scale: one slow answer in a hundred, and what a second copy does about it.
func hedges() []experiment {
	const (
		fan   = "J. Dean, L. A. Barroso, The Tail at Scale (2013): 1 − 0.99¹⁰⁰ = 63 %"
		hedge = "hedged requests of The Tail at Scale, with two answer times: slow only if both copies are"
	)
	const leaves = `
duration: 20s
warmUp: 0s
clients: {callers: {rate: 50, patience: 500ms, calls: [{to: leaf, times: 100}], parallel: true}}
services: {leaf: {serviceTime: "99% 10ms, 1% 1s"}}
`
	const slow = `
duration: 100s
warmUp: 0s
clients: {callers: {rate: 1000, patience: 500ms, calls: [leaf]}}
services: {leaf: {serviceTime: "90% 10ms, 10% 1s"}}
`
	failed := func(r *engine.Record) float64 { return 1 - success(r) }
	return []experiment{
		{source: fan, runs: 30, model: leaves + plain(), claims: []claim{{
			id: "tail/fan-out", what: "100 parallel calls, each slow with 1 %: share of slow requests", published: 0.633967659,
			how: Mean, record: failed,
		}}},
		{source: hedge, runs: 30, model: slow + policy("maxRetries: 0, hedge: {delay: 100ms, maxHedges: 1}, "+bare),
			claims: []claim{
				{id: "tail/hedge", what: "slow with 10 %, a copy after 100 ms: share of slow requests", published: 0.01, how: Mean,
					record: failed},
				{id: "tail/hedges", what: "the same: copies per request", published: 0.1, how: Mean,
					record: func(r *engine.Record) float64 { return float64(r.Edges[0].Hedges) / float64(r.Edges[0].Calls) }},
			}},
	}
}
