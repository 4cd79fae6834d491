package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// platform is what Kubernetes does with replicas, by its documentation.
func platform() []experiment {
	all := hung()
	const scaler = "Kubernetes documentation, horizontal pod autoscaling: ⌈replicas × metric / target⌉, tolerance 0.1"
	for _, q := range []struct {
		busy, replicas int
		what           string
	}{
		{32, 8, "twice the target doubles them"},
		{8, 2, "half of the target halves them"},
		{17, 4, "6 % above the target is within the tolerance"},
		{20, 5, "25 % above it, of 4: the next whole number"},
	} {
		all = append(all, experiment{
			source: scaler, runs: 2,
			model: fmt.Sprintf(`
duration: 50s
warmUp: 0s
clients: {jobs: {once: %d, calls: [server]}}
services:
  server:
    replicas: 4
    balancing: round-robin
    workers: 10
    serviceTime: 1h
    autoscale: {target: 40%%, min: 1, max: 20, every: 15s, coolDown: 20s}
model: {drain: 0s}
`, q.busy) + plain(),
			claims: []claim{{
				id: fmt.Sprintf("autoscale/%d", q.busy), what: q.what + ": replicas", published: float64(q.replicas), how: Exact,
				record: func(r *engine.Record) float64 {
					ready := r.Services[0].World().Ready
					return float64(ready[len(ready)-1])
				},
			}},
		})
	}
	const backoff = "Kubernetes documentation, container restarts: 10 s, 20 s, 40 s, …, capped at 300 s"
	for _, q := range []struct {
		seconds, restarts int
	}{{60, 4}, {300, 6}, {3600, 17}} {
		all = append(all, experiment{
			source: backoff, runs: 2,
			model: fmt.Sprintf(`
duration: %ds
warmUp: 0s
clients: {users: {rate: 20, arrivals: even, calls: [server]}}
services: {server: {workers: 1, serviceTime: 10s, crash: {above: 1}, start: {takes: 1ms, backoff: 10s, maxBackoff: 5m}}}
model: {drain: 0s}
`, q.seconds) + plain(),
			claims: []claim{{
				id: fmt.Sprintf("crash-backoff/%d", q.seconds), published: float64(q.restarts), how: Exact,
				what:   fmt.Sprintf("a container that dies as soon as it runs: restarts within %d s", q.seconds),
				record: func(r *engine.Record) float64 { return total(r.Services[0].World().Restarts) },
			}},
		})
	}
	return all
}

// hung are programs that hang, and are asked by the defaults of a liveness probe: three times, every 10 s, for 1 s.
func hung() []experiment {
	var all []experiment
	for _, q := range []struct {
		mode  string
		after float64 // half a period until the first probe, two more periods, and how long the last one waits
	}{{"hang", 26}, {"fail", 25}} {
		all = append(all, experiment{
			source: "Kubernetes documentation, liveness probe: periodSeconds 10, timeoutSeconds 1, failureThreshold 3",
			runs:   60,
			model: fmt.Sprintf(`
duration: 70s
warmUp: 30s
clients: {users: {rate: 1, calls: [server]}}
services: {server: {workers: 1, serviceTime: 1ms, probes: {liveness: {period: 10s}}}}
faults: [{at: 20s, for: 40s, outage: server, mode: %s}]
`, q.mode) + plain(),
			claims: []claim{{
				id: "liveness/" + q.mode, what: "mode " + q.mode + ": seconds until it is restarted", published: q.after,
				how: Stated, within: 0.05, // half of a bin
				record: func(r *engine.Record) float64 {
					for b, n := range r.Services[0].World().Restarts {
						if n > 0 {
							return (float64(b)+0.5)*r.Bin.Seconds() - r.Begin.Seconds()
						}
					}
					return 0
				},
			}},
		})
	}
	return all
}
