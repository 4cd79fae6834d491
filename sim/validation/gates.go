package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// behind is plain, with a gate in front of the server.
func behind(format string, args ...any) string {
	return "\nvariants: {only: {policy: {defaults: {maxRetries: 0, " + bare + "}, protect: {server: {" +
		fmt.Sprintf(format, args...) + "}}}}}\n"
}

// turnedAway is the share of arrivals that the gate refused.
func turnedAway(r *engine.Record) float64 {
	return total(r.Services[0].Shed) / total(r.Services[0].Arrived)
}

// gates are what a service refuses before it has any work with it, and what a client does not even send.
func gates() []experiment {
	all := gatesAsQueues()
	for _, q := range []struct{ k, offered float64 }{{2, 1000}, {2, 400}, {1.5, 500}} {
		all = append(all, experiment{
			source: "Site Reliability Engineering (2016), ch. 21, client-side throttling: requests settle at K × accepts",
			runs:   30,
			model: fmt.Sprintf(`
duration: 100s
warmUp: 60s
clients: {callers: {rate: %v, calls: [server]}}
services: {server: {}}
variants: {only: {policy: {defaults: {maxRetries: 0, %s, throttle: {k: %v, window: 20s}}, protect: {server: {shed: {disabled: true}, rateLimit: {limit: 100/s}}}}}}
`, q.offered, bare, q.k),
			claims: []claim{{
				id:        fmt.Sprintf("sre-21/throttle-%v-%v", q.k, q.offered),
				published: q.k,
				how:       Stated,
				within:    0.01,
				what:      fmt.Sprintf("%v/s offered, 100/s accepted, K %v: requests per accept", q.offered, q.k),
				record:    func(r *engine.Record) float64 { return arrived(0)(r) / total(r.Services[0].Served) },
			}},
		})
	}
	return append(all, tokenBuckets()...)
}

// gatesAsQueues are gates with a fixed limit, which are Erlang's and Markov's: who finds no place is lost.
func gatesAsQueues() []experiment {
	var all []experiment
	for _, law := range []string{"exponential", "lognormal"} {
		all = append(all, experiment{
			source: "Erlang's B formula, of a gate without a queue", runs: 40,
			model: fmt.Sprintf("duration: 600s\nwarmUp: 30s\nclients: {callers: {rate: 80, calls: [server]}}\nservices: "+
				"{server: {serviceTime: %s}}\n", lawsOfWork[law]) +
				behind("shed: {concurrency: fixed, maxConcurrency: 10, noQueue: true}"),
			claims: []claim{{
				id: "gate/erlang-b/" + law, published: 0.12166106, how: Mean, record: turnedAway,
				what: "10 at once, nobody waits, load 8, " + law + ": share refused",
			}},
		})
	}
	return append(all, experiment{
		source: "M/M/1/K (L. Kleinrock, Queueing Systems I, 1975), of a gate with a queue", runs: 40,
		model: "duration: 4000s\nwarmUp: 10m\nclients: {callers: {rate: 9, calls: [server]}}\nservices: {server: " +
			"{serviceTime: exponential 100ms}}\n" +
			behind("shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 9, queueTarget: 1m, queueInterval: 1m}"),
		claims: []claim{{
			id: "gate/m-m-1-k", published: 0.050813731, how: Mean, record: turnedAway,
			what: "one at a time, 9 may wait, load 0.9: share refused",
		}},
	})
}

// tokenBuckets are the bound of a token bucket, where all of it is used, and the pace at which CoDel drops.
func tokenBuckets() []experiment {
	var all []experiment
	for _, q := range []struct{ rate, burst, seconds int }{{20, 50, 10}, {100, 30, 10}, {5, 500, 60}} {
		all = append(all, experiment{
			source: "token bucket: at most r·T + b in any time T (RFC 2212, 1997)", runs: 30,
			model: fmt.Sprintf("duration: %ds\nwarmUp: 0s\nclients: {callers: {rate: 400, calls: [server]}}\nservices: "+
				"{server: {}}\n", q.seconds) +
				behind("shed: {disabled: true}, rateLimit: {limit: %d/s, burst: %d}", q.rate, q.burst),
			claims: []claim{{
				id:        fmt.Sprintf("token-bucket/%d-%d", q.rate, q.burst),
				published: float64(q.rate*q.seconds + q.burst),
				how:       Stated,
				within:    1,
				what:      fmt.Sprintf("%d/s and a burst of %d, 400/s for %d s: admitted", q.rate, q.burst, q.seconds),
				record:    func(r *engine.Record) float64 { return total(r.Services[0].Served) },
			}},
		})
	}
	return append(all, experiment{
		source: "RFC 8289 (2018): drops follow each other after interval / √(drops so far)", runs: 2,
		model: `
duration: 1100ms
warmUp: 0s
clients: {callers: {rate: 1100, arrivals: even, calls: [server]}}
services: {server: {workers: 1, serviceTime: 1ms, queue: {order: codel, interval: 100ms}}}
` + plain(),
		claims: []claim{{
			id: "codel/drops", what: "10 % above capacity for 1.1 s, of which 0.95 s too late: drops", published: 30, how: Exact,
			record: func(r *engine.Record) float64 { return total(r.Services[0].Rejected) },
		}},
	})
}
