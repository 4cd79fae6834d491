package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// rejected is the share of arrivals that the service refused.
func rejected(r *engine.Record) float64 {
	return total(r.Services[0].Rejected) / total(r.Services[0].Arrived)
}

// losses are Erlang's loss formula, and queues with a bound.
func losses() []experiment {
	var all []experiment
	for _, q := range []struct {
		load             float64
		servers, seconds int
		law              string
		loss             float64
	}{
		{0.5, 1, 4000, "exponential", 0.33333333},
		{0.8, 1, 4000, "exponential", 0.44444444},
		{0.95, 1, 4000, "exponential", 0.48717949},
		{1.6, 2, 2000, "exponential", 0.32989691},
		{8, 10, 600, "exponential", 0.12166106},
		{8, 10, 600, "constant", 0.12166106},
		{8, 10, 600, "uniform", 0.12166106},
		{8, 10, 600, "mixture", 0.12166106},
		{8, 10, 600, "lognormal", 0.12166106},
		{80, 100, 100, "exponential", 0.0039920286},
		{80, 100, 100, "constant", 0.0039920286},
	} {
		all = append(all, experiment{
			source: "Erlang's B formula; any service law (B. A. Sevastyanov 1957)", runs: 40,
			model: queue(q.load, lawsOfWork[q.law], q.seconds, fmt.Sprintf("workers: %d, queue: {none: true}", q.servers)),
			claims: []claim{{
				id: fmt.Sprintf("erlang-b/%v-%d-%s", q.load, q.servers, q.law), published: q.loss, how: Mean, record: rejected,
				what: fmt.Sprintf("%d workers, no queue, load %v, %s: share refused", q.servers, q.load, q.law),
			}},
		})
	}
	return append(all, boundedQueues()...)
}

// boundedQueues are M/M/1/K: load shedding by a queue limit.
func boundedQueues() []experiment {
	var all []experiment
	for _, q := range []struct {
		load                  float64
		places, seconds       int
		loss, inSystem, stays float64
	}{
		{0.9, 10, 8000, 0.050813731, 3.9694406, 4.6466007},
		{1.5, 10, 4000, 0.33723208, 8.1286586, 8.1764757},
		{2, 100, 3000, 0.5, 99, 99},
	} {
		id := fmt.Sprintf("m-m-1-k/%v-%d/", q.load, q.places)
		what := fmt.Sprintf("M/M/1/%d, load %v: ", q.places, q.load)
		all = append(all, experiment{
			source: "M/M/1/K (L. Kleinrock 1975)", runs: 40,
			model: queue(q.load, exponential, q.seconds, fmt.Sprintf("workers: 1, queue: {limit: %d}", q.places-1)),
			claims: []claim{
				{id: id + "refused", what: what + "share refused", published: q.loss, how: Mean, record: rejected},
				{id: id + "number", what: what + "mean number in the system", published: q.inSystem, how: Mean,
					record: func(r *engine.Record) float64 { return present(r, 0) }},
				{id: id + "time", what: what + "mean time in it, service times", published: q.stays, how: Mean,
					record: func(r *engine.Record) float64 { return latency(r) / unit }},
			},
		})
	}
	return all
}

// present is the mean number of requests at a service, looked at at the end of each bin.
func present(r *engine.Record, service int) float64 {
	s := &r.Services[service]
	return (total(s.Waiting) + total(s.Busy)) / float64(len(s.Busy))
}

// abandonments are callers that wait for so long and no longer, in the bulkhead of production.
func abandonments() []experiment {
	var all []experiment
	for _, q := range []struct {
		load             float64
		servers, seconds int
		patience, gone   float64
	}{
		{1.5, 1, 6000, 1, 0.456351683},
		{8, 10, 800, 0.5, 0.0342275877},
		{100, 100, 60, 0.2, 0.0301114479},
		{110, 100, 40, 0.1, 0.103562124},
		{200, 100, 20, 0.5, 0.5},
	} {
		all = append(all, experiment{
			source: "M/M/c with constant patience (D. Y. Barrer 1957; F. Baccelli, G. Hebuterne 1981), by policy/bulkhead",
			runs:   40,
			model: fmt.Sprintf(`
duration: %ds
warmUp: 10s
clients: {callers: {rate: %v, calls: [server]}}
services: {server: {serviceTime: exponential 100ms}}
`, q.seconds, q.load/unit) +
				policy("maxRetries: 0, bulkhead: {maxConcurrentCalls: %d, maxQueue: 1000000, maxWait: %vms, order: fifo}, "+bare,
					q.servers, q.patience*unit*1000),
			claims: []claim{{
				id:        fmt.Sprintf("patience/%v-%d-%v", q.load, q.servers, q.patience),
				published: q.gone,
				how:       Mean,
				what:      fmt.Sprintf("load %v, %d permits, patience %v service times: who leaves", q.load, q.servers, q.patience),
				record:    func(r *engine.Record) float64 { return share(r, engine.BulkheadFull) },
			}},
		})
	}
	return append(all, conservation()...)
}
