package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

const arithmetic = "arithmetic of the scenario"

// outages count the attempts of an outage that refuses at once.
func outages() []experiment {
	const what = "10,000/s, 30 s outage, 3 retries, 1 s: "
	during := func(from, to int) func(*engine.Record) float64 {
		return func(r *engine.Record) float64 { return between(r, r.Services[0].Arrived, 2+from, 2+to) }
	}
	all := []experiment{{
		source: arithmetic, runs: 2,
		model: `
duration: 36s
warmUp: 0s
clients: {checkout: {rate: 10000, arrivals: even, instances: 50, calls: [payment]}}
services: {payment: {}}
faults: [{at: 2s, for: 30s, outage: payment, mode: fail}]
` + policy("maxRetries: 3, backoff: fixed, initialDelay: 1s, jitter: none, "+bare),
		claims: []claim{
			{id: "outage/attempts", what: what + "attempts in it", published: 1_140_000, how: Exact, record: during(0, 30)},
			{id: "outage/plateau", what: what + "attempts in its 4th s", published: 40_000, how: Exact, record: during(3, 4)},
			{id: "outage/in-air", what: what + "in the air at its end", published: 30_000, how: Exact,
				record: func(r *engine.Record) float64 {
					f := &r.Fleets[0]
					return between(r, f.Offered, 0, 32) - between(r, f.Answered, 0, 32) - between(r, f.Failed, 0, 32)
				}},
		},
	}}
	return append(append(all, minutes()...), threads())
}

// minutes are a thousand clients that retry through a minute.
func minutes() []experiment {
	var all []experiment
	for _, q := range []struct {
		backoff  string
		attempts float64
	}{
		{"fixed", 60_000},
		{"exponential", 6_000},
		{"linear", 11_000},
	} {
		id, what := "minute/"+q.backoff+"/", fmt.Sprintf("1000 clients, 60 s outage, 1 s and %s: ", q.backoff)
		all = append(all, experiment{
			source: arithmetic + ": attempts and retries are two numbers", runs: 2,
			model: `
duration: 60s
warmUp: 0s
clients: {phones: {once: 1000, calls: [server]}}
services: {server: {errorRate: 1}}
` + policy("maxRetries: 100, initialDelay: 1s, maxDelay: 1h, jitter: none, backoff: %s, "+bare, q.backoff),
			claims: []claim{
				{id: id + "attempts", what: what + "attempts", published: q.attempts, how: Exact, record: arrived(0)},
				{id: id + "retries", what: what + "retries", published: q.attempts - 1000, how: Exact,
					record: func(r *engine.Record) float64 { return total(r.Services[0].Retries) }},
			},
		})
	}
	return all
}

// threads are a pool of which a share of calls that hang takes nearly all.
func threads() experiment {
	x := experiment{
		source: "threads ÷ mean time held: 200/(0.3·10 s + 0.7·0.1 s) = 65.147/s", runs: 30,
		model: `
duration: 600s
warmUp: 2m
clients: {callers: {rate: 100, calls: [gateway]}}
services: {gateway: {workers: 200, serviceTime: "30% 10s, 70% 100ms"}}
` + plain(),
	}
	x.claims = []claim{{
		id: "threads/100", what: "30 % hang 10 s, 200 threads, 100/s offered: answers per second",
		published: 65.1465798, how: Mean,
		record: func(r *engine.Record) float64 { return total(r.Services[0].Served) / r.Duration.Seconds() },
	}}
	return x
}

// pools are fifty programs that connect at the same moment.
func pools() []experiment {
	const world = `
duration: 60s
warmUp: 0s
clients: {pods: {once: 1000, instances: 50, calls: [{to: postgres, pool: 20}]}}
services: {postgres: {connections: {max: %d, cost: 20ms, cores: 4}}}
`
	return []experiment{
		{source: arithmetic, runs: 2, model: fmt.Sprintf(world, 100) + plain(), claims: []claim{
			{id: "pool/connects", what: "50 pods × pool of 20, max_connections 100: connects", published: 1000, how: Exact,
				record: arrived(0)},
			{id: "pool/refused", what: "the same: refused", published: 900, how: Exact,
				record: func(r *engine.Record) float64 { return float64(r.Fleets[0].Ends[engine.NoConnection]) }},
		}},
		{source: arithmetic, runs: 2, model: fmt.Sprintf(world, 1000) + plain(), claims: []claim{
			{id: "pool/last", what: "1000 connects of 20 ms on 4 cores: last one is in after, s", published: 5, how: Exact,
				record: func(r *engine.Record) float64 { return r.LastEnd.Seconds() }},
		}},
	}
}
