package kafkadrill

import (
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policyfile"
)

// The acts.
const (
	Unguarded = "unguarded"
	Guarded   = "guarded"
)

// service is what the policies call the service that is called.
const service = "inventory"

// unguardedPolicy is retry topics as they are often built: each message has three more deliveries, each delivery two
// retries, and nothing asks how the service is.
const unguardedPolicy = `# Retry topics, and nothing else.
services:
  inventory:
    attemptTimeout: 1s
    maxRetries: 2
    backoff: fixed
    initialDelay: 200ms
    jitter: none
    retryBudget: {disabled: true}
    circuitBreaker: {disabled: true}
    kafka:
      tiers: [500ms, 1s, 2s]   # short, for a drill: think of 30s, 5m, 30m
      concurrency: 16
      drain: {disabled: true}
      flood: {disabled: true}
`

// guardedPolicy is the same retry topics under abate's defaults: a retry budget of 10 %, a circuit breaker, and a drain
// at 1.4 times what was usual.
const guardedPolicy = `# The same retry topics with abate's defaults: a retry budget, a circuit breaker, and a bounded drain.
services:
  inventory:
    attemptTimeout: 1s
    kafka:
      tiers: [500ms, 1s, 2s]
      concurrency: 16
      drain: {factor: 1.4, rampUp: 2s}   # for a short drill; the defaults are 1.2 and 10s
`

// Policy is the policy file of an act, as YAML.
func Policy(act string) string {
	if act == Unguarded {
		return unguardedPolicy
	}
	return guardedPolicy
}

func policyOf(act string) (abate.Policy, error) {
	file, err := policyfile.Parse(act+".yaml", []byte(Policy(act)))
	if err != nil {
		return abate.Policy{}, err
	}
	p, ok := file.Policy(service)
	if !ok {
		return p, fmt.Errorf("%s.yaml has no service %q", act, service)
	}
	return p, nil
}

// delays are the delays of an act's retry topics.
func delays(p *abate.Policy) (list []time.Duration) {
	for _, h := range p.Kafka.WithDefaults().Hops() {
		list = append(list, h.Delay)
	}
	return list
}
