package validation

import (
	"fmt"

	"github.com/abate-go/abate/sim/engine"
)

// The retries of the checkout outage: three, one second apart, after attempts of at most one second.
const (
	fixedDelay  = "maxRetries: 3, attemptTimeout: 1s, backoff: fixed, initialDelay: 1s, jitter: none, " + bare
	jitterDelay = "maxRetries: 3, attemptTimeout: 1s, initialDelay: 1s, jitter: full, " + bare
)

// cliffs are on which side of C = λ × attempts a storm ends that an outage of 30 s began.
func cliffs() []experiment {
	const source = "L. Huang and others, Metastable Failures in the Wild (OSDI 2022), theorem 2: stable if C > λ × " +
		"attempts"
	var all []experiment
	id := map[string]string{fixedDelay: "fixed", jitterDelay: "jitter"}
	for _, q := range []struct {
		ratio         float64
		mode          string
		rate, seconds int
		policy, ends  string
		record        func(*engine.Record) float64
	}{
		{1.1, "hang", 50, 200, fixedDelay, "never ends", dead},
		{2.2, "hang", 50, 200, fixedDelay, "never ends", dead},
		{3.9, "hang", 50, 300, fixedDelay, "never ends", dead},
		{4.2, "hang", 50, 900, fixedDelay, "ends", alive},
		{1.1, "fail", 200, 200, fixedDelay, "never ends", dead},
		{1.5, "fail", 200, 200, fixedDelay, "never ends", dead},
		{1.5, "fail", 200, 200, jitterDelay, "never ends, jitter", dead},
		{2, "fail", 200, 200, fixedDelay, "ends", alive},
	} {
		all = append(all, experiment{
			source: source, runs: 30, model: checkout(q.rate, q.ratio, q.mode, "", q.seconds) + policy("%s", q.policy),
			claims: []claim{{
				id: fmt.Sprintf("cliff/%s-%v-%s", q.mode, q.ratio, id[q.policy]), published: 1, how: Wilson, record: q.record,
				what: fmt.Sprintf("C/λ %v, 4 attempts, 30 s outage (%s): it %s", q.ratio, q.mode, q.ends),
			}},
		})
	}
	return all
}

// checkout is the checkout outage at a smaller scale.
func checkout(rate int, ratio float64, mode, queue string, seconds int) string {
	return fmt.Sprintf(`
duration: %ds
warmUp: 10s
clients: {checkout: {rate: %d, calls: [payment]}}
services: {payment: {workers: %.0f, serviceTime: exponential 100ms, queue: {%s}}}
faults: [{at: 10s, for: 30s, outage: payment, mode: %s}]
`, seconds, rate, float64(rate)*ratio/10, queue, mode)
}

// bounds are the cheapest fix: a queue that holds less work than callers wait for.
func bounds() []experiment {
	var all []experiment
	for _, q := range []struct {
		id, bound, policy, ends string
		record                  func(*engine.Record) float64
	}{
		{"1s", "1s", fixedDelay, "goodput stays < 90 %", func(r *engine.Record) float64 { return yes(end(r) < 0.9) }},
		{"250ms", "250ms", fixedDelay, "recovers", alive},
		{"250ms-jitter", "250ms", jitterDelay, "recovers, jitter", alive},
	} {
		all = append(all, experiment{
			source: "the checkout outage with a bounded queue, on an earlier prototype of this simulator", runs: 30,
			model: checkout(200, 1.2, "fail", "work: "+q.bound, 150) + policy("%s", q.policy),
			claims: []claim{{
				id: "bound/" + q.id, published: 1, how: Wilson, record: q.record,
				what: fmt.Sprintf("C/λ 1.2, queue of %s of work: %s", q.bound, q.ends),
			}},
		})
	}
	return all
}
