package harm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy is one way to run all systems.
type Policy struct {
	Name  string
	About string
	// Guard has keys of a policy file, for all calls of every caller: "maxRetries: 3, jitter: none". Each call keeps its
	// own attempt timeout, which belongs to the system.
	Guard string
	// Gate has keys of protect in a policy file, for the gate in front of every replica. Empty: there are no gates; {} is
	// the default one.
	Gate string
	// Callers says what callers know of Abate.
	Callers Callers
	// Slow is what Guard says of slowCallDurationThreshold. Where an attempt may take less, it is 0.7 of that.
	Slow time.Duration
}

// Callers says what callers know of Abate.
type Callers uint8

const (
	// Ours send the headers of Abate, and heed those of answers.
	Ours Callers = iota
	// Plain callers know nothing of it. In a system that passes deadlines on they tell them a gate, too.
	Plain
	// Naive callers know nothing of it, and come again whatever an answer says.
	Naive
)

const (
	off         = "retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"
	noRetries   = "maxRetries: 0, " + off
	defaults    = "maxRetries: 3" // which is the default; so there is something to write
	defaultGate = "{}"
	// handTuned is what somebody came to who tuned a policy for 50 clients with 250 requests/s, whose service can do 400/s
	// and has a database that hangs for 5 s: there it is back after 1.8 s. That it is good elsewhere nobody has asked.
	handTuned = `maxRetries: 3, initialDelay: 100ms, jitter: full, ` +
		`retryBudget: {ratio: 0.1, reserve: 10, clients: 50}, circuitBreaker: {failureRateThreshold: 0.5, ` +
		`slowCallRateThreshold: 0.5, slowCallDurationThreshold: 700ms, ` +
		`slidingWindow: 2s, minimumNumberOfCalls: 5, waitDurationInOpenState: 300ms, waitDurationMultiplier: 1, ` +
		`permittedCallsInHalfOpen: 1, successThreshold: 2, rampUp: 500ms}`
)

// Policies returns the policies that every system is run under: first no policy, then naive retries, then ours.
func Policies() []Policy {
	return []Policy{
		{Name: "none", About: "no policy at all", Guard: noRetries, Callers: Plain},
		{Name: "naive", About: "3 retries, 100 ms apart, whatever happens",
			Guard:   "maxRetries: 3, backoff: fixed, initialDelay: 100ms, jitter: none, retryOwner: none, " + off,
			Callers: Naive},
		{Name: "guard", About: "abate.DefaultPolicy", Guard: defaults},
		{Name: "gate", About: "inbound.DefaultProtection", Guard: noRetries, Gate: defaultGate, Callers: Plain},
		{Name: "both", About: "the two together", Guard: defaults, Gate: defaultGate},
		{Name: "bulkhead", About: "a bulkhead that learns its limit, and no more",
			Guard: noRetries + ", bulkhead: {limit: adaptive}", Callers: Plain},
		{Name: "tuned", About: "a policy tuned by hand for one storm", Guard: handTuned, Slow: 700 * time.Millisecond},
	}
}

// Choose returns the policies with these names, in the order of Policies, and always the first two: all others are
// compared with them.
func Choose(all []Policy, names []string) ([]Policy, error) {
	var chosen []Policy
	known := make([]string, len(all))
	for i := range all {
		known[i] = all[i].Name
		if i < 2 || slices.Contains(names, all[i].Name) {
			chosen = append(chosen, all[i])
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no policy %q; allowed: %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
