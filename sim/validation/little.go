package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// conservation is Little's law, L = λW, at every node of a chain with timeouts and retries that ends empty.
//
// With constant work the queue moves in steps of the work alone; all times here are then whole bins, and what is seen
// at the end of each bin is the exact integral.
func conservation() []experiment {
	const source = "J. D. C. Little 1961: L = λW, at every node"
	names := []string{"gateway", "orders", "database"}
	steps := experiment{source: source, runs: 30, model: `
duration: 100s
warmUp: 0s
clients: {callers: {curve: [{at: 0s, rate: 20}, {at: 60s, rate: 0}], calls: [gateway]}}
services:
  gateway: {serviceTime: "50% 100ms, 50% 300ms", calls: [orders]}
  orders: {serviceTime: "20% 100ms, 80% 700ms", errorRate: 30%, calls: [database]}
  database: {serviceTime: "99% 100ms, 1% 2s", errorRate: 20%}
` + policy("maxRetries: 3, backoff: none, attemptTimeout: 1500ms, "+bare)}
	paths := experiment{source: source, runs: 40, model: `
duration: 600s
warmUp: 1m
clients: {callers: {rate: 20, calls: [gateway]}}
services:
  gateway: {serviceTime: exponential 50ms, workers: 9, calls: [orders]}
  orders: {serviceTime: exponential 100ms, workers: 8, errorRate: 10%, calls: [database]}
  database: {serviceTime: exponential 20ms, workers: 1, errorRate: 20%}
` + policy("maxRetries: 3, initialDelay: 100ms, attemptTimeout: 1s, "+bare)}
	for n, name := range names {
		steps.claims = append(steps.claims, claim{
			id: "little/exact/" + name, published: 1, how: Exact, record: func(r *engine.Record) float64 {
				return busyLaw(r, n)
			},
			what: fmt.Sprintf("%s, work in whole bins, retries: busy ÷ (rate × work)", name),
		})
		paths.claims = append(paths.claims, claim{
			id: "little/mean/" + name, published: 1, how: Mean, record: func(r *engine.Record) float64 { return queueLaw(r, n) },
			what: fmt.Sprintf("%s, queues, timeouts, retries: waiting ÷ (rate × wait)", name),
		})
	}
	return []experiment{steps, paths}
}

// busyLaw is the number of busy workers, summed over time, divided by all work.
func busyLaw(r *engine.Record, service int) float64 {
	s := &r.Services[service]
	return total(s.Busy) * float64(r.Bin) / total64(s.WorkNS)
}

// queueLaw is the same for those who wait.
func queueLaw(r *engine.Record, service int) float64 {
	s := &r.Services[service]
	return total(s.Waiting) * float64(r.Bin) / total64(s.WaitNS)
}
