package engine_test

import (
	"testing"
	"time"
)

// fleet is twenty instances with a budget each, or one for all, and a service that fails for 30 s.
const fleet = `
duration: 90s
warmUp: 20s
redis: {latency: 1ms}
clients: {shop: {rate: 40, instances: 20, calls: [api]}}
services: {api: {serviceTime: 1ms}}
faults: [{at: 10s, for: 30s, outage: api, mode: fail}MORE]
variants:
  only:
    policy:
      redis: {embedded: true}
      defaults: {maxRetries: 3, backoff: fixed, initialDelay: 100ms, circuitBreaker: {disabled: true}, retryBudget: &b {
        ratio: 0.1, reserve: 10, FLEET}}
`

func TestInstancesShareOneReserveAndWhatTheyEarn(t *testing.T) {
	retries := func(more, shared string) float64 {
		text := edit(fleet, "MORE", more, "FLEET", shared)
		if shared == "fleet: false" {
			text = edit(text, "redis: {latency: 1ms}\n", "")
		}
		r := run(t, text)
		return float64(between(r, service(t, r, "api").Retries, 10*time.Second, 40*time.Second))
	}
	// 1,200 first attempts earn 120, the window before has earned 40, and the reserves are 200, or 10.
	within(t, "retries of those that share nothing", retries("", "fleet: false"), 320, 360)
	shared := retries("", "fleet: true")
	within(t, "retries of those that share", shared, 150, 200)
	// Without Redis the reserve cannot be reached, and who has earned little cannot use what others have too much of.
	within(t, "retries of those that cannot", retries(", {at: 5s, for: 40s, redis: shop}", "fleet: true"), 120, shared-10)
}

// What is on its way when Redis goes away is lost, and never there twice.
func TestAWayToRedisThatComesAndGoesDoublesNothing(t *testing.T) {
	const gone = ", {at: 12s, for: 2s, redis: shop, share: 30%}, {at: 15s, for: 1s, redis: shop}, {at: 20s, for: 5s, " +
		"redis: shop}"
	r := run(t, edit(fleet, "MORE", gone, "FLEET", "fleet: true", "latency: 1ms", "latency: exponential 100ms"))
	api := service(t, r, "api")
	retries := float64(between(r, api.Retries, 10*time.Second, 40*time.Second))
	first := float64(between(r, api.Arrived, 0, 40*time.Second)) - retries
	before := 10 * 40.0 // of the window before, which may pay for retries, too
	within(t, "retries", retries, 0.03*first, 0.1*(first+before)+10)
}
