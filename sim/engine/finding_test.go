package engine_test

import (
	"testing"
	"time"
)

// slowCallers is twenty instances that each call once a second, with breakers of their own, and a service that fails.
const slowCallers = `
duration: 60s
warmUp: 10s
redis: {latency: 1ms}
clients: {shop: {rate: 20, instances: 20, calls: [api]}}
services: {api: {serviceTime: 1ms}}
faults: [{at: 10s, for: 30s, outage: api, mode: fail}MORE]
variants:
  only:
    policy:
      redis: {embedded: true}
      defaults: {maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {
        failureThreshold: 5, waitDurationInOpenState: 20s, FLEET}}
`

// Five failures of one instance are enough for all, where they can hear of it.
func TestWhatOneBreakerFindsOutTheOthersHear(t *testing.T) {
	arrived := func(more, shared string) float64 {
		text := edit(slowCallers, "MORE", more, "FLEET", shared)
		if shared == "fleet: false" {
			text = edit(text, "redis: {latency: 1ms}\n", "")
		}
		r := run(t, text)
		return float64(between(r, service(t, r, "api").Arrived, 10*time.Second, 25*time.Second))
	}
	alone := arrived("", "fleet: false")
	within(t, "attempts until all have found it out alone", alone, 95, 105)
	within(t, "attempts where they tell each other", arrived("", "fleet: true"), 20, 0.8*alone)
	within(t, "attempts where they cannot", arrived(", {at: 5s, for: 40s, redis: shop}", "fleet: true"), alone, alone)
}
