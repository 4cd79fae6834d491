package validation

import "fmt"

// buckets are "Fixing retries with token buckets and circuit breakers": one run of the published simulator, of 40,000
// calls, which are five times the calls of a run here. Without a bucket the models are the same, and the published
// number is one more draw. The bucket of a client begins with five retries in both; there a retry needs more than one
// token, here one is enough: those rows have the table's ±0.005.
func buckets() []experiment {
	const (
		source = "M. Brooker, Fixing retries with token buckets and circuit breakers (2022): one run of its simulator"
		world  = `
duration: 40s
warmUp: 0s
clients: {callers: {rate: 200, instances: 20, calls: [{to: server, latency: exponential 10ms}]}}
services: {server: {errorRate: %v}}
`
	)
	const rounding = 0.00005
	type pair struct{ success, load float64 }
	var all []experiment
	for _, q := range []struct {
		failing              float64
		none, three, buckets pair
	}{
		{0.01, pair{0.9905, 1}, pair{1, 1.0099}, pair{1, 1.0103}},
		{0.05, pair{0.9514, 1}, pair{1, 1.0529}, pair{0.9998, 1.0522}},
		{0.1, pair{0.9005, 1}, pair{0.9999, 1.1126}, pair{0.9870, 1.0954}},
		{0.2, pair{0.7995, 1}, pair{0.9985, 1.2488}, pair{0.8847, 1.1087}},
		{0.5, pair{0.4991, 1}, pair{0.9374, 1.8756}, pair{0.5517, 1.1104}},
		{0.75, pair{0.2478, 1}, pair{0.6881, 2.7171}, pair{0.2767, 1.1108}},
	} {
		for _, kind := range []struct {
			name, policy string
			pair
		}{
			{"none", "maxRetries: 0, " + bare, q.none},
			{"three", "maxRetries: 3, backoff: none, " + bare, q.three},
			{"bucket", "maxRetries: 100, backoff: none, retryBudget: {ratio: 0.1, reserve: 5}, circuitBreaker: {disabled: true}",
				q.buckets},
		} {
			id := fmt.Sprintf("token-buckets/%v-%s/", q.failing, kind.name)
			what := fmt.Sprintf("%v fail, retries: %s: ", q.failing, kind.name)
			c := claim{how: Mean, alike: 5, within: rounding}
			if kind.name == "bucket" {
				c = claim{how: Stated, within: 0.005}
			}
			x := experiment{source: source, runs: 30, model: fmt.Sprintf(world, q.failing) + policy("%s", kind.policy)}
			c.id, c.what, c.published, c.record = id+"success", what+"share answered", kind.success, success
			x.claims = append(x.claims, c)
			if kind.load != 1 {
				c.id, c.what, c.published, c.record = id+"load", what+"attempts per request", kind.load, attempts
				x.claims = append(x.claims, c)
			}
			all = append(all, x)
		}
	}
	return all
}
