package validation

import (
	"fmt"
	"math"

	"github.com/abate-go/abate/sim/engine"
)

// sessions are users who hold connections that there are not enough of, or who want them all back at once.
func sessions() []experiment {
	var all []experiment
	for _, q := range []struct {
		users, places, seconds int
		ratio                  float64 // of how long a session lasts to how long its user stays away
	}{{10, 5, 2000, 1}, {20, 5, 2000, 0.25}, {100, 20, 600, 0.25}} {
		p := wanted(q.users, q.places, q.ratio, false)
		one := wanted(q.users-1, q.places, q.ratio, false)
		id := fmt.Sprintf("engset/%d-%d-%v/", q.users, q.places, q.ratio)
		what := fmt.Sprintf("%d users, %d places: ", q.users, q.places)
		all = append(all, experiment{
			source: "Engset's formula (T. O. Engset 1918), as sessions and the connections that a server takes", runs: 30,
			model: holders(q.users, q.places, q.seconds, q.ratio, "error"),
			claims: []claim{
				{id: id + "held", what: what + "sessions held", published: mean(p), how: Mean, record: sessionsHeld},
				{id: id + "refused", what: what + "share of openings refused", published: one[q.places], how: Mean,
					record: func(r *engine.Record) float64 { return share(r, engine.NoConnection) }},
			},
		})
	}
	for _, q := range []struct {
		users, places, seconds int
		ratio                  float64
	}{{6, 1, 3000, 0.2}, {10, 3, 2000, 0.5}, {40, 10, 600, 0.4}} {
		p := wanted(q.users, q.places, q.ratio, true)
		held := 0.0
		for k, share := range p {
			held += float64(min(k, q.places)) * share
		}
		id := fmt.Sprintf("finite/%d-%d-%v/", q.users, q.places, q.ratio)
		what := fmt.Sprintf("%d users, %d places: ", q.users, q.places)
		all = append(all, experiment{
			source: "M/M/c with a finite source (L. Kleinrock 1975), as sessions whose users wait for a connection", runs: 30,
			model: holders(q.users, q.places, q.seconds, q.ratio, "wait"),
			claims: []claim{
				{id: id + "held", what: what + "sessions held", published: held, how: Mean, record: sessionsHeld},
				{id: id + "wait", what: what + "mean wait for one, session times", published: (mean(p) - held) / held, how: Mean,
					record: latency},
			},
		})
	}
	return append(all, reconnects()...)
}

// holders are users who hold sessions of a second, of which a server takes so many.
func holders(users, places, seconds int, ratio float64, whenFull string) string {
	return fmt.Sprintf(`
duration: %ds
warmUp: 60s
clients: {users: {users: %d, session: {returns: exponential %dms, lasts: exponential 1s}, calls: [server]}}
services: {server: {connections: {max: %d, whenFull: %s}}}
`, seconds, users, int(1000/ratio), places, whenFull) + plain()
}

// wanted is the distribution of how many users hold a session or, where they may wait, want one: a user without one
// asks ratio times as often as one that has it gives it back.
func wanted(users, places int, ratio float64, wait bool) []float64 {
	most := places
	if wait {
		most = users
	}
	p, sum := make([]float64, most+1), 1.0
	p[0] = 1
	for k := 1; k <= most; k++ {
		p[k] = p[k-1] * float64(users-k+1) * ratio / float64(min(k, places))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

func mean(p []float64) (sum float64) {
	for k, share := range p {
		sum += float64(k) * share
	}
	return sum
}

// sessionsHeld is the mean number of sessions, looked at at the end of each bin.
func sessionsHeld(r *engine.Record) float64 {
	held := r.Fleets[0].Sessions().Held
	return total(held) / float64(len(held))
}

// reconnects are all users of a server at once.
func reconnects() []experiment {
	all := []experiment{}
	for _, cores := range []int{1, 4} {
		first := 0.1 * float64(cores) / 501 // until so many have come that all cores are busy
		all = append(all, experiment{
			source: "arithmetic: n handshakes of d on c cores take n d / c", runs: 30,
			model: fmt.Sprintf(`
duration: 20s
warmUp: 1s
clients: {apps: {users: 500, instances: 500, session: {returns: uniform 0s..100ms}, calls: [server]}}
services: {server: {connections: {cost: 20ms, cores: %d}}}
faults: [{at: 1s, for: 1ms, restart: server}]
`, cores) + plain(),
			claims: []claim{{
				id:        fmt.Sprintf("reconnect/last-%d", cores),
				what:      fmt.Sprintf("500 sessions, 20 ms each, %d cores: seconds until the last is back", cores),
				published: 10/float64(cores) + first,
				how:       Mean,
				record:    func(r *engine.Record) float64 { return (r.Fleets[0].Serving - r.End).Seconds() },
			}},
		})
	}
	for _, q := range []struct{ users, cores, backlog, openings int }{
		{100, 1, 9, 550}, {120, 2, 10, 660}, {60, 2, 4, 330},
	} {
		all = append(all, experiment{
			source: "arithmetic: each second as many of n as are made and may wait, n + (n − b) + (n − 2b) + …", runs: 2,
			model: fmt.Sprintf(`
duration: 20s
warmUp: 1s
clients: {apps: {users: %d, session: {returns: 1s}, calls: [server]}}
services: {server: {connections: {cost: 10ms, cores: %d, backlog: %d}}}
faults: [{at: 1s, for: 1ms, restart: server}]
`, q.users, q.cores, q.backlog) + plain(),
			claims: []claim{{
				id:        fmt.Sprintf("reconnect/waves-%d-%d", q.users, q.backlog),
				what:      fmt.Sprintf("%d without jitter, a backlog of %d, %d cores: openings", q.users, q.backlog, q.cores),
				published: float64(q.openings),
				how:       Exact,
				record:    func(r *engine.Record) float64 { return total(r.Fleets[0].Offered) },
			}},
		})
	}
	return all
}

// criticality is who is refused where not everybody can be served. Close to what can be done bursts come between: see
// leftOut.
func criticality() []experiment {
	var all []experiment
	for _, q := range []struct{ above, below float64 }{{60, 80}, {40, 120}, {20, 300}} {
		all = append(all, experiment{
			source: "Site Reliability Engineering (2016), ch. 21: one criticality is refused only if all of lower ones are",
			runs:   30,
			model: fmt.Sprintf(`
duration: 100s
warmUp: 20s
clients:
  users: {rate: %v, arrivals: even, instances: 10, calls: [{to: server, priority: CRITICAL}]}
  jobs: {rate: %v, arrivals: even, instances: 10, calls: [{to: server, priority: SHEDDABLE}]}
services: {server: {workers: 10, serviceTime: 100ms}}
`, q.above, q.below) + behind("shed: {concurrency: fixed, maxConcurrency: 10, maxQueue: 40}"),
			claims: []claim{{
				id:        fmt.Sprintf("sre-21/criticality-%v-%v", q.above, q.below),
				what:      fmt.Sprintf("100/s possible, %v/s critical, %v/s not: critical ones served", q.above, q.below),
				published: 1,
				how:       Stated,
				within:    0.001,
				record: func(r *engine.Record) float64 {
					f := &r.Fleets[0]
					return total(f.Good) / total(f.Offered)
				},
			}},
		})
	}
	return all
}

// supermarket is the time in system where each request joins the shorter of two queues that it draws.
func supermarket() []experiment {
	var all []experiment
	for _, load := range []float64{0.5, 0.7, 0.9} {
		stays := 0.0
		for i := 1; i < 12; i++ {
			stays += math.Pow(load, math.Exp2(float64(i))-2)
		}
		all = append(all, experiment{
			source: "supermarket model, d = 2 (M. Mitzenmacher 1996; N. D. Vvedenskaya and others 1996), by policy/balance",
			runs:   30,
			model: fmt.Sprintf(`
duration: 10s
warmUp: 5s
clients: {callers: {rate: %v, calls: [server]}}
services: {server: {replicas: 1000, balancing: least-request, workers: 1, serviceTime: exponential 100ms}}
`, 1000*load/unit) + policy("maxRetries: 0, outlierDetection: {disabled: true}, "+bare),
			claims: []claim{{
				id: fmt.Sprintf("supermarket/%v", load), published: stays, how: Mean,
				what:   fmt.Sprintf("1,000 servers, load %v: mean time in system, service times", load),
				record: func(r *engine.Record) float64 { return latency(r) / unit },
			}},
		})
	}
	for _, q := range []struct{ replicas, bad int }{{10, 2}, {5, 3}, {4, 2}} {
		n, k := float64(q.replicas), float64(q.bad)
		all = append(all, experiment{
			source: "drawing without putting back: of n replicas k fail, two attempts, (k/n) (k−1)/(n−1), by policy/balance",
			runs:   30,
			model: fmt.Sprintf(`
duration: 102s
warmUp: 0s
clients: {callers: {curve: [{at: 0s, rate: 100}, {at: 100s, rate: 0}], calls: [server]}}
services: {server: {replicas: %d, balancing: least-request}}
faults: [{at: 0s, for: 100s, outage: server, mode: fail, share: %v}]
`, q.replicas, k/n) + policy("maxRetries: 1, backoff: none, outlierDetection: {disabled: true}, "+bare),
			claims: []claim{{
				id:        fmt.Sprintf("elsewhere/%d-%d", q.replicas, q.bad),
				published: 1 - k/n*(k-1)/(n-1),
				how:       Mean,
				what:      fmt.Sprintf("%d of %d replicas fail, a second attempt goes elsewhere: answered", q.bad, q.replicas),
				record:    success,
			}},
		})
	}
	return all
}
