package population

import (
	"errors"

	"github.com/abate-go/abate"
)

// Supported returns an error that says what of a policy the clients of a population cannot have and how to switch it
// off, all at once; nil when there is nothing. A population knows the policy's Retry and AttemptTimeout, and its
// Timeout as Patience.
func Supported(p abate.Policy) error {
	var v validator
	perClient := func(path string, on bool, off string) {
		if on {
			v.add(path, "is state that each client would keep for itself, which a population has no room for",
				off+", or make the fleet small enough to have guards (rate and instances)")
		}
	}
	perClient("retryBudget", p.RetryBudget.Enabled(), "set retryBudget.disabled: true")
	perClient("circuitBreaker", p.CircuitBreaker.Enabled(), "set circuitBreaker.disabled: true")
	perClient("bulkhead", p.Bulkhead.Enabled(), "set bulkhead.disabled: true")
	perClient("rateLimit", p.RateLimit.Enabled(), "set rateLimit.disabled: true")
	perClient("pacing", p.Pacing.Enabled(), "set pacing.disabled: true")
	perClient("throttle", p.Throttle.Enabled(), "set throttle.disabled: true")
	perClient("hedge", p.Hedge.Enabled(), "set hedge.disabled: true")
	conditions := func(path string, list []string) {
		if len(list) > 0 {
			v.add(path, "has no effect on a population, whose clients put every failed attempt before the retry policy",
				"leave it away")
		}
	}
	conditions("retryOn", p.RetryOn)
	conditions("neverRetryOn", p.NeverRetryOn)
	return errors.Join(v.found...)
}
