package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

// What cannot do its work at the rates and fleet sizes that are given is named, whether somebody wrote it or not.
func TestSettingsThatCannotDoTheirWorkAreNamed(t *testing.T) {
	const few = "clients: {phones: {rate: 5, instances: 300, calls: [s]}}"
	const many = "clients: {phones: {rate: 25, instances: 1000, calls: [s]}}"
	const busy = "clients: {phones: {rate: 50, instances: 2, calls: [s]}}"
	const opens, bounds = "the circuit will not open: it wants 20 calls in 10s, and an instance makes about 0.67,",
		"1,000 instances may spend a reserve of 10 each, 10,000 retries at once or 100 s of what the service can do"
	const users = "clients: {phones: {users: 600, think: 6s, instances: 600, patience: 1s, calls: [s]}}"
	const some = "clients: {phones: {rate: 20, instances: 100, calls: [s]}}"
	const rate = "circuitBreaker: {failureRateThreshold: 0.5}"
	const paid = "maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 1}"
	for about, c := range map[string]struct{ clients, policy, want string }{
		"one call a minute":    {few, paid + ", " + rate, opens},
		"the adaptive breaker": {few, paid, ""},
		"failures in a row":    {few, paid + ", circuitBreaker: {failureThreshold: 5}", ""},
		"a window of calls": {
			few, paid + ", circuitBreaker: {failureRateThreshold: 0.5, slidingWindow: 100}", "",
		},
		"enough calls": {busy, rate, ""},
		"calls that come in a crowd now and then": {some, "maxRetries: 3, retryBudget: {disabled: true}, " + rate, ""},
		"the default reserve of many":             {many, "maxRetries: 3", bounds},
		"who says how many they are": {
			many, "maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 10, clients: 1000}", "",
		},
		"no retries": {many, "maxRetries: 0", ""},
		"users":      {users, "maxRetries: 0, " + rate, "wants 20 calls in 10s, and an instance makes about 1.67,"},
	} {
		s := read(t, "duration: 1s", "warmUp: 0s", "runs: 1", c.clients,
			"services: {s: {workers: 1, serviceTime: 10ms}}",
			"variants: {v: {policy: {defaults: {"+c.policy+"}}}}")
		notes := study(t, s, sim.Options{Runs: 1}).Variants[0].Notes
		found := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, c.want) })
		said := slices.ContainsFunc(notes, func(n string) bool {
			return strings.Contains(n, "circuit will not") || strings.Contains(n, "bounds little")
		})
		if c.want != "" && !found || c.want == "" && said {
			t.Errorf("%s: %q, want %q", about, notes, c.want)
		}
	}
}
