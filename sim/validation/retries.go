package validation

import (
	"fmt"
	"strings"

	"github.com/abate-go/abate/sim/engine"
)

// how picks the comparison of a number that is exact only where nothing is left to chance.
func how(certain bool) Comparison {
	if certain {
		return Exact
	}
	return Mean
}

// runsOf is how many runs a number needs: what is certain comes out of every one.
func runsOf(certain bool) int {
	if certain {
		return 2
	}
	return 40
}

// retries are n attempts at a service that fails independently of load.
func retries() []experiment {
	var all []experiment
	for _, q := range []struct{ failing, success, load float64 }{
		{0.1, 0.9999, 1.111},
		{0.3, 0.9919, 1.417},
		{0.5, 0.9375, 1.875},
		{0.75, 0.68359375, 2.734375},
		{0.9, 0.3439, 3.439},
		{1, 0, 4},
	} {
		id := fmt.Sprintf("attempts/4-%v/", q.failing)
		what := fmt.Sprintf("4 attempts, each fails with %v: ", q.failing)
		all = append(all, experiment{
			source: "geometric series: success 1−pⁿ, load (1−pⁿ)/(1−p)", runs: runsOf(q.failing == 1),
			model: chain(1, 3, q.failing, 100),
			claims: []claim{
				{id: id + "success", what: what + "share answered", published: q.success, how: how(q.failing == 1),
					record: success},
				{id: id + "load", what: what + "attempts per request", published: q.load, how: how(q.failing == 1),
					record: attempts},
			},
		})
	}
	for _, q := range []struct{ ratio, load float64 }{{0.5, 2}, {0.9, 9.9997610}, {0.99, 63.7627757}} {
		all = append(all, experiment{
			source: "retry ratio r: load 1/(1−r), here with at most 100 retries: (1−r¹⁰¹)/(1−r)", runs: 40,
			model: chain(1, 100, q.ratio, 20),
			claims: []claim{{
				id: fmt.Sprintf("ratio/%v", q.ratio), published: q.load, how: Mean, record: attempts,
				what: fmt.Sprintf("every failure retried, %v fail: attempts per request", q.ratio),
			}},
		})
	}
	return all
}

// chain is a scenario of calls through so many layers, each of which retries. Only the last one fails by itself.
func chain(layers, retries int, failing float64, seconds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nduration: %ds\nwarmUp: 0s\nclients: {callers: {rate: 100, calls: [layer1]}}\nservices:\n", seconds)
	for n := 1; n < layers; n++ {
		fmt.Fprintf(&b, "  layer%d: {calls: [layer%d]}\n", n, n+1)
	}
	fmt.Fprintf(&b, "  layer%d: {errorRate: %v}\n", layers, failing)
	// Each layer decides for itself, which is what was published; with an owner of the retries nothing multiplies.
	return b.String() + policy("maxRetries: %d, backoff: none, retryOwner: none, "+bare, retries)
}

// chains are retries of retries.
func chains() []experiment {
	const (
		threeOfThree = "three layers, three attempts each: 3³ = 27, and the series applied three times"
		atMostFour   = "Site Reliability Engineering (2016), ch. 22: 4³ = 64"
		atMostFive   = "AWS Builders' Library, Timeouts, retries and backoff with jitter: 3⁵ = 243"
	)
	var all []experiment
	for _, q := range []struct {
		source          string
		layers, retries int
		seconds         int
		failing, load   float64
		success         float64
	}{
		{threeOfThree, 3, 2, 5, 1, 27, 0},
		{threeOfThree, 3, 2, 30, 0.9, 9.418503, 0.941850},
		{threeOfThree, 3, 2, 30, 0.7, 3.333114, 0.999934},
		{threeOfThree, 3, 2, 30, 0.5, 2, 1},
		{threeOfThree, 3, 2, 30, 0.3, 1.428571, 1},
		{atMostFour, 3, 3, 5, 1, 64, 0},
		{atMostFive, 5, 2, 5, 1, 243, 0},
	} {
		id := fmt.Sprintf("chain/%d-%d-%v/", q.layers, q.retries+1, q.failing)
		what := fmt.Sprintf("%d layers × %d attempts, %v fail in the last: ", q.layers, q.retries+1, q.failing)
		x := experiment{
			source: q.source, runs: runsOf(q.failing == 1), model: chain(q.layers, q.retries, q.failing, q.seconds),
			claims: []claim{
				{id: id + "load", what: what + "its calls per request", published: q.load, how: how(q.failing == 1), record: leaf},
			},
		}
		if q.failing == 0.9 || q.failing == 1 {
			x.claims = append(x.claims, claim{
				id: id + "success", what: what + "share answered", published: q.success, how: how(q.failing == 1), record: success,
			})
		}
		all = append(all, x)
	}
	return all
}

// budgets are bounds on retries.
func budgets() []experiment {
	var all []experiment
	for _, q := range []struct {
		id, what, kind string
		failing        float64
		success, load  float64
	}{
		{"success", "+0.1 retry per success", "kind: tokens, depositPerSuccess: 0.1", 0.5, 0.526315789, 1.052631579},
		{"success", "+0.1 retry per success", "kind: tokens, depositPerSuccess: 0.1", 0.9, 0.101010101, 1.010101010},
		{"call", "+0.1 retry per call", "ratio: 0.1", 0.5, 0.55, 1.1},
		{"call", "+0.1 retry per call", "ratio: 0.1", 0.9, 0.11, 1.1},
		{"adaptive", "+0.02 to 0.2 per call", "kind: adaptive, minRatio: 0.02, maxRatio: 0.2", 0.5, 0.5 * 1.11, 1.11},
	} {
		id := fmt.Sprintf("budget/%s-%v/", q.id, q.failing)
		what := fmt.Sprintf("%s, %v fail: ", q.what, q.failing)
		all = append(all, experiment{
			source: "retry budgets in balance: load 1+b and success (1−p)(1+b); per success S = (1−p)/(1−b(1−p))", runs: 40,
			model: fmt.Sprintf(`
duration: 100s
warmUp: 30s
clients: {callers: {rate: 100, calls: [server]}}
services: {server: {errorRate: %v}}
`, q.failing) + policy("maxRetries: 10, backoff: none, retryBudget: {%s}, circuitBreaker: {disabled: true}", q.kind),
			claims: []claim{
				{id: id + "success", what: what + "share answered", published: q.success, how: Mean, record: success},
				{id: id + "load", what: what + "attempts per request", published: q.load, how: Mean, record: attempts},
			},
		})
	}
	return append(all, overload()...)
}

// overload are the bounds of a retry storm in the chapters on overload.
func overload() []experiment {
	const world = `
duration: 30s
warmUp: 30s
clients: {callers: {rate: 200, instances: 50, calls: [server]}}
services: {server: {errorRate: 1}}
`
	const source = "Site Reliability Engineering (2016), ch. 21: three attempts, and a budget of 10 % per client"
	return []experiment{
		{source: source, runs: 2, model: world + policy("maxRetries: 2, backoff: none, "+bare), claims: []claim{{
			id: "sre-21/attempts", what: "50 clients, all fails, at most 3 attempts: load", published: 3, how: Exact,
			record: attempts,
		}}},
		{source: source, runs: 30, model: world + policy(
			"maxRetries: 2, backoff: none, retryBudget: {ratio: 0.1}, circuitBreaker: {disabled: true}"), claims: []claim{{
			id: "sre-21/budget", what: "the same with a budget of 10 % per client: load", published: 1.1, how: Mean,
			record: attempts,
		}}},
		{source: "Site Reliability Engineering (2016), ch. 22: failures come back every second, +100 each time",
			runs: 3, model: `
duration: 10s
warmUp: 0s
clients: {callers: {rate: 10100, arrivals: even, calls: [backend]}}
services: {backend: {workers: 10000, serviceTime: 1s, queue: {none: true}}}
` + policy("maxRetries: 100, backoff: fixed, initialDelay: 1s, jitter: none, "+bare), claims: ramp()},
	}
}

func ramp() []claim {
	var all []claim
	for second := range 9 {
		all = append(all, claim{
			id: fmt.Sprintf("sre-22/second-%d", second+1), published: float64(10100 + 100*second), how: Exact,
			what: fmt.Sprintf("capacity 10,000/s, offered 10,100/s: attempts in second %d", second+1),
			record: func(r *engine.Record) float64 {
				return total(r.Services[0].Arrived[10*second : 10*second+10])
			},
		})
	}
	return all
}
