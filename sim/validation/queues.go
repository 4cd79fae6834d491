package validation

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// The unit of time of the queues below: the mean service time, in seconds.
const unit = 0.1

// queue is a scenario of one queue: load and service law in service times. A short queue forgets sooner how it began.
func queue(load float64, law string, seconds int, service string) string {
	warmUp := "10m"
	if load > 2 {
		warmUp = "30s"
	}
	return fmt.Sprintf(`
duration: %ds
warmUp: %s
clients: {callers: {rate: %v, calls: [server]}}
services: {server: {serviceTime: %s, %s}}
`, seconds, warmUp, load/unit, law, service) + plain()
}

const exponential = "exponential 100ms"

// queues are Erlang's delay formula: M/M/c.
func queues() []experiment {
	var all []experiment
	for _, q := range []struct {
		load              float64
		servers, seconds  int
		waits, wait, tail float64
	}{
		{0.5, 1, 6000, 0.5, 1, 7.82405},
		{0.8, 1, 10000, 0.8, 4, 21.9101},
		{0.95, 1, 20000, 0.95, 19, 91.0775},
		{1.6, 2, 4000, 0.7111111111, 1.7777778, 10.6606},
		{8, 10, 800, 0.4091801508, 0.20459008, 1.85579},
		{80, 100, 120, 0.01964642663, 0.00098232133, 0.0337655},
	} {
		id := fmt.Sprintf("erlang-c/%v-1-%d/", q.load, q.servers)
		what := fmt.Sprintf("M/M/%d, load %v: ", q.servers, q.load)
		all = append(all, experiment{
			source: "Erlang's C formula (A. K. Erlang 1917; L. Kleinrock, Queueing Systems I, 1975)", runs: 40,
			model: queue(q.load, exponential, q.seconds, fmt.Sprintf("workers: %d", q.servers)),
			claims: []claim{
				{id: id + "delayed", what: what + "share that waits", published: q.waits, how: Mean, record: waited},
				{id: id + "wait", what: what + "mean wait, service times", published: q.wait, how: Mean,
					record: func(r *engine.Record) float64 { return meanWait(r) / unit }},
				{id: id + "p99", what: fmt.Sprintf("%sshare above %v, the p99 of waits", what, q.tail), published: 0.01, how: Mean,
					record: func(r *engine.Record) float64 { return waitedLonger(r, q.tail*unit) }},
			},
		})
	}
	return append(all, timeouts()...)
}

// timeouts are the tail of the time in an M/M/1 queue, seen as attempts that time out.
func timeouts() []experiment {
	var all []experiment
	for _, q := range []struct{ arrivals, service, timeout, share float64 }{
		{9.3, 10, 4, 0.060810},
		{9.5, 10, 3, 0.223130},
		{0.8, 1, 5, 0.367879},
	} {
		all = append(all, experiment{
			source: "M/M/1 time in system, exp(−(μ−λ)T) (L. Kleinrock 1975), as attempt timeouts", runs: 40,
			model: fmt.Sprintf(`
duration: %vs
warmUp: 10m
clients: {callers: {rate: %v, calls: [server]}}
services: {server: {workers: 1, serviceTime: exponential %v}}
`, 100000/q.service, q.arrivals, time.Duration(1e9/q.service)) +
				policy("maxRetries: 0, attemptTimeout: %vs, "+bare, q.timeout),
			claims: []claim{{
				id:        fmt.Sprintf("timeouts/%v-%v-%v", q.arrivals, q.service, q.timeout),
				published: q.share,
				how:       Mean,
				what:      fmt.Sprintf("%v/s at %v/s, timeout %v s: share that times out", q.arrivals, q.service, q.timeout),
				record:    func(r *engine.Record) float64 { return share(r, engine.TimedOut) },
			}},
		})
	}
	return all
}

// lawsOfWork are service laws of mean 1, by name. The mixture has the means of its two halves balanced: each carries
// half of the work.
var lawsOfWork = map[string]string{
	"constant":    "100ms",
	"exponential": exponential,
	"lognormal":   "lognormal mean 100ms cv 2",
	"mixture":     `"88.7298334621% exponential 56.350832689ms, 11.2701665379% exponential 443.649167311ms"`,
	"uniform":     "uniform 0ms..200ms",
}

// laws are queues whose service is not exponential.
func laws() []experiment {
	var all []experiment
	for _, q := range []struct {
		load    float64
		law     string
		seconds int
		wait    float64
	}{
		{0.8, "constant", 5000, 2},
		{0.95, "constant", 12000, 9.5},
		{0.8, "mixture", 10000, 10},
		{0.8, "lognormal", 10000, 10},
		{0.95, "mixture", 30000, 47.5},
	} {
		all = append(all, experiment{
			source: "Pollaczek (1930) and Khinchin (1932): Wq = ρ(1+cv²)/(2(1−ρ))", runs: 40,
			model: queue(q.load, lawsOfWork[q.law], q.seconds, "workers: 1"),
			claims: []claim{{
				id:        fmt.Sprintf("m-g-1/%v-%s", q.load, q.law),
				published: q.wait,
				how:       Mean,
				what:      fmt.Sprintf("one server, load %v, %s service: mean wait, service times", q.load, q.law),
				record:    func(r *engine.Record) float64 { return meanWait(r) / unit },
			}},
		})
	}
	return append(all, experiment{
		source: "M. Brooker, open and closed loops (2023): his parameters in the Pollaczek-Khinchin formula", runs: 40,
		model: `
duration: 20000s
warmUp: 10m
clients: {callers: {rate: 7.279345, calls: [server]}}
services: {server: {workers: 1, serviceTime: "99.9% exponential 100ms, 0.1% exponential 10s"}}
` + plain(),
		claims: []claim{
			{id: "bimodal/wait", what: "1 in 1000 takes 100 times as long, load 0.8: mean wait, s", published: 4.003276,
				how: Mean, record: meanWait},
			{id: "bimodal/latency", what: "the same: mean time from request to answer, s", published: 4.113176, how: Mean,
				record: latency},
		},
	})
}

// latency is the mean time of answered requests, in seconds.
func latency(r *engine.Record) float64 { return r.Fleets[0].Latency[engine.Before].Mean() }
