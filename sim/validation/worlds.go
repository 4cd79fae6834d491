package validation

import (
	"fmt"
	"math"

	"github.com/abate-go/abate/sim/engine"
)

// elsewhere are calls that are made to somebody else when they fail.
func elsewhere() []experiment {
	var all []experiment
	for _, q := range []struct{ first, second float64 }{{0.1, 0.1}, {0.5, 0.2}, {0.75, 0.5}} {
		id := fmt.Sprintf("else/%v-%v/", q.first, q.second)
		what := fmt.Sprintf("one fails with %v, the one called instead with %v: ", q.first, q.second)
		all = append(all, experiment{
			source: "two in parallel: success 1 − p q, load on the second p", runs: 40,
			model: fmt.Sprintf(`
duration: 100s
clients: {shop: {rate: 100, calls: [{to: first, else: [second]}]}}
services: {first: {errorRate: %v}, second: {errorRate: %v}}
`, q.first, q.second) + plain(),
			claims: []claim{
				{id: id + "success", what: what + "answered", published: 1 - q.first*q.second, how: Mean, record: success},
				{id: id + "load", what: what + "its load", published: q.first, how: Mean,
					record: func(r *engine.Record) float64 { return arrived(1)(r) / total(r.Fleets[0].Offered) }},
			},
		})
	}
	return all
}

// caches are what a cache holds after a while.
func caches() []experiment {
	hits := func(r *engine.Record) float64 {
		w := r.Services[0].World()
		return total(w.Hits) / (total(w.Hits) + total(w.Misses))
	}
	model := func(cache string, rate, warmUp, seconds int) string {
		return fmt.Sprintf(`
duration: %ds
warmUp: %ds
clients: {shop: {rate: %d, calls: [{to: cache, else: [db]}]}}
services: {cache: {cache: {%s}}, db: {}}
`, seconds, warmUp, rate, cache) + plain()
	}
	var all []experiment
	one := func(source, id, what, cache string, rate, warmUp, seconds int, x claim) {
		x.id, x.what = "cache/"+id, what
		if x.record == nil {
			x.record = hits
		}
		all = append(all, experiment{source: source, runs: 30, model: model(cache, rate, warmUp, seconds),
			claims: []claim{x}})
	}
	const fill = "coupons: of K keys, K (1 − exp(−n/K)) are fetched by n requests on average"
	misses := func(r *engine.Record) float64 { return total(r.Services[0].World().Misses) }
	for _, seconds := range []int{5, 20, 40} {
		one(fill, fmt.Sprintf("fill-%d", seconds), fmt.Sprintf("2,000 keys, cold, %d requests: fetched", 200*seconds),
			"keys: 2000, cold: true", 200, 0, seconds,
			claim{published: 2000 * (1 - math.Exp(-float64(seconds)/10)), how: Mean, record: misses})
	}
	const renewal = "time to live T, renewed by misses alone: share of hits λT/(1+λT)"
	for _, ttl := range []int{1, 5, 10} {
		one(renewal, fmt.Sprintf("ttl-%d", ttl), fmt.Sprintf("each of 500 keys 0.4 times a second, TTL %d s: hits", ttl),
			fmt.Sprintf("keys: 500, ttl: %ds", ttl), 200, 30, 40,
			claim{published: 0.4 * float64(ttl) / (1 + 0.4*float64(ttl)), how: Mean})
	}
	one("LRU, all keys alike: C of K are there", "lru-alike", "2,000 keys alike, room for 500, LRU: hits",
		"keys: 2000, capacity: 500", 400, 10, 30, claim{published: 0.25, how: Mean})
	for _, q := range []struct {
		skew float64
		room int
	}{{0.6, 500}, {0.8, 1000}, {1, 500}} {
		one("H. Che and others 2002, an approximation: LRU under independent requests",
			fmt.Sprintf("lru-%v-%d", q.skew, q.room),
			fmt.Sprintf("10,000 keys, 1/k^%v, room for %d, LRU: hits", q.skew, q.room),
			fmt.Sprintf("keys: 10000, skew: %v, capacity: %d", q.skew, q.room), 2000, 5, 8,
			claim{published: che(10000, q.skew, q.room), how: Stated, within: 0.002})
	}
	return all
}

// che is the share of hits in a cache that drops what was not asked for longest, after Che's approximation: each key is
// held for the same time t since it was asked for last, in which so many different ones are asked for as there is room.
func che(keys int, skew float64, room int) float64 {
	p, sum := make([]float64, keys), 0.0
	for k := range p {
		p[k] = math.Pow(float64(k+1), -skew)
		sum += p[k]
	}
	held := func(t float64) (number, hits float64) {
		for _, x := range p {
			share := x / sum
			there := 1 - math.Exp(-share*t)
			number, hits = number+there, hits+share*there
		}
		return number, hits
	}
	low, high := 0.0, 1e9
	for range 100 {
		if middle := (low + high) / 2; first(held(middle)) < float64(room) {
			low = middle
		} else {
			high = middle
		}
	}
	_, hits := held(low)
	return hits
}

func first(a, _ float64) float64 { return a }

// crashes are the crash loop of a service whose tasks run out of memory.
func crashes() []experiment {
	const what = "ten tasks, a twentieth of its numbers: "
	part := func(from, to int, well bool) func(*engine.Record) float64 {
		return func(r *engine.Record) float64 {
			share := good(r, from, to)
			return yes(well && share > 0.99 || !well && share < 0.1)
		}
	}
	return []experiment{{
		source: "Site Reliability Engineering (2016), ch. 22: 10,000/s, 11,000/s, 9,000/s, about 1,000/s", runs: 20,
		model: `
duration: 260s
warmUp: 10s
clients:
  users:
    curve:
      - {at: 0s, rate: 500}
      - {at: 20s, rate: 550}
      - {at: 140s, rate: 450}
      - {at: 180s, rate: 50}
      - {at: 230s, rate: 500}
    calls: [backend]
services:
  backend:
    replicas: 10
    balancing: least-queue
    workers: 10
    serviceTime: exponential 185ms
    crash: {above: 60}
    start: {takes: uniform 5s..15s}
` + policy("maxRetries: 0, attemptTimeout: 10s, "+bare),
		claims: []claim{
			{id: "crash-loop/1000", what: what + "500/s are well", published: 1, how: Wilson, record: part(0, 20, true)},
			{id: "crash-loop/1100", what: what + "550/s end it", published: 1, how: Wilson, record: part(120, 140, false)},
			{id: "crash-loop/900", what: what + "450/s do not help", published: 1, how: Wilson, record: part(150, 180, false)},
			{id: "crash-loop/100", what: what + "50/s do", published: 1, how: Wilson, record: part(205, 230, true)},
			{id: "crash-loop/again", what: what + "500/s again", published: 1, how: Wilson, record: part(235, 260, true)},
		},
	}}
}
