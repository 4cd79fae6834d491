package validation

import (
	"fmt"

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
