package validation

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// between adds up a series from one second to another.
func between(r *engine.Record, series []uint32, from, to int) float64 {
	return total(series[bin(r, from):bin(r, to)])
}

// bin is the number of the bin that begins at a second.
func bin(r *engine.Record, second int) int { return int(time.Duration(second) * time.Second / r.Bin) }

// good is the share of the requests of a stretch of the run that were answered.
func good(r *engine.Record, from, to int) float64 {
	return between(r, r.Fleets[0].Good, from, to) / between(r, r.Fleets[0].Offered, from, to)
}

// end is the goodput of the last 20 s of a run.
func end(r *engine.Record) float64 {
	seconds := int(r.Duration.Seconds())
	return good(r, seconds-20, seconds)
}

// dead and alive are the ways a storm ends.
func dead(r *engine.Record) float64  { return yes(end(r) < 0.1) }
func alive(r *engine.Record) float64 { return yes(end(r) > 0.99) }

// storms are metastable failures of real systems.
func storms() []experiment {
	const cluster = "SREGym pull request 946 (2026): a real Kubernetes cluster; its queue, 253 to 256"
	const world = `
duration: 300s
warmUp: 10s
clients: {caller: {rate: 8, arrivals: even, calls: [callee]}}
services: {callee: {workers: 1, serviceTime: 50ms, queue: {limit: 256}}}
faults: [{at: 60s, for: 10s, surge: caller, factor: 5}]
`
	const what = "8/s of 20/s, 3 attempts, 10 s of 40/s: "
	later := func(r *engine.Record, series []uint32) float64 { return between(r, series, 200, 300) }
	all := []experiment{
		{source: cluster, runs: 50, model: world + policy("maxRetries: 2, backoff: none, attemptTimeout: 750ms, "+bare),
			claims: []claim{
				{id: "sregym/before", what: what + "goodput before", published: 1, how: Exact,
					record: func(r *engine.Record) float64 {
						return good(r, 0, 60)
					}},
				{id: "sregym/after", what: what + "goodput 130 s after", published: 0, how: Exact,
					record: func(r *engine.Record) float64 {
						return good(r, 200, 300)
					}},
				{id: "sregym/attempts", what: what + "attempts per request", published: 3, within: 0.005, how: Stated,
					record: func(r *engine.Record) float64 {
						return later(r, r.Services[0].Arrived) / later(r, r.Fleets[0].Offered)
					}},
				{id: "sregym/queue", what: what + "length of the queue", published: 254.5, within: 1.5, how: Stated,
					record: func(r *engine.Record) float64 { return later(r, r.Services[0].Waiting) / 1000 }},
			}},
		{source: cluster, runs: 50, model: world + policy("maxRetries: 1, backoff: none, attemptTimeout: 750ms, "+bare),
			claims: []claim{
				{id: "sregym/two-attempts", what: "the same with 2 attempts, 16/s: it recovers", published: 1, how: Wilson,
					record: alive},
			}},
	}
	return append(append(all, outageOfTen()...), collection())
}

// outageOfTen is the example of request retries: a database of 300/s, and a network that is away for ten seconds.
func outageOfTen() []experiment {
	var all []experiment
	for _, q := range []struct {
		rate, attempts int
		ends           string
		seconds        int
		record         func(*engine.Record) float64
	}{
		{140, 2, "recovers", 300, alive},
		{149, 2, "is dead at 170 s", 190, dead},
		{280, 2, "is dead at 170 s", 190, dead},
		{280, 1, "recovers", 300, alive},
	} {
		all = append(all, experiment{
			source: "N. Bronson and others, Metastable Failures in Distributed Systems (HotOS 2021): stable below C/2", runs: 40,
			model: fmt.Sprintf(`
duration: %ds
warmUp: 5s
clients: {web: {rate: %d, calls: [database]}}
services: {database: {workers: 3, serviceTime: 10ms}}
faults: [{at: 10s, for: 10s, outage: database}]
`, q.seconds, q.rate) + policy("maxRetries: %d, backoff: none, attemptTimeout: 1s, "+bare, q.attempts-1),
			claims: []claim{{
				id: fmt.Sprintf("hotos/%d-%d", q.rate, q.attempts), published: 1, how: Wilson, record: q.record,
				what: fmt.Sprintf("%d/s of 300/s, 10 s outage, %d attempts: it %s", q.rate, q.attempts, q.ends),
			}},
		})
	}
	return all
}

// collection is the garbage collector of a server whose queue makes its work slower. The healthy and the degraded
// capacity, 240/s and 143/s, are set to what the published plot shows; what is compared is the shape that follows.
func collection() experiment {
	const what = "server slowed by its queue: "
	waiting := func(r *engine.Record, second int) float64 { return float64(r.Services[0].Waiting[bin(r, second)-1]) }
	grows := func(from, to int, least, most float64) func(*engine.Record) float64 {
		return func(r *engine.Record) float64 {
			g := waiting(r, to) - waiting(r, from)
			return yes(g >= least && g <= most)
		}
	}
	return experiment{
		source: "L. Huang and others, Metastable Failures in the Wild (OSDI 2022), §5.1: GC, the shape of the plot", runs: 20,
		model: `
duration: 2400s
warmUp: 10s
clients:
  jobs:
    curve:
      - {at: 0s, rate: 220}
      - {at: 240s, rate: 260}
      - {at: 480s, rate: 220}
      - {at: 720s, rate: 180}
      - {at: 960s, rate: 140}
      - {at: 1200s, rate: 60}
      - {at: 2160s, rate: 220}
    calls: [server]
services: {server: {workers: 100, serviceTime: 416667us, slowsQueued: 0.001, slowsQueuedMax: 1.678}}
` + plain(),
		claims: []claim{
			{id: "osdi-gc/220", what: what + "220/s makes no queue at first", published: 1, how: Wilson,
				record: grows(5, 240, -100, 100)},
			{id: "osdi-gc/260", what: what + "260/s does", published: 1, how: Wilson, record: grows(240, 480, 10000, 1e9)},
			{id: "osdi-gc/220-again", what: what + "220/s does after it", published: 1, how: Wilson,
				record: grows(480, 720, 10000, 1e9)},
			{id: "osdi-gc/180", what: what + "180/s does after it", published: 1, how: Wilson,
				record: grows(720, 960, 5000, 1e9)},
			{id: "osdi-gc/140", what: what + "140/s holds it level", published: 1, how: Wilson,
				record: grows(960, 1200, -2500, 2500)},
			{id: "osdi-gc/60", what: what + "60/s ends it, and 220/s is well", published: 1, how: Wilson,
				record: func(r *engine.Record) float64 { return yes(waiting(r, 2160) == 0 && waiting(r, 2400) < 100) }},
		},
	}
}
