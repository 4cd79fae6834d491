package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// limited is a service of eight replicas that grants 200 requests/s to 800, and a Redis that is away for 20 s.
const limited = `
duration: 60s
warmUp: 5s
redis: {latency: LATENCY}
clients: {shop: {rate: 800, calls: [api]}}
services: {api: {replicas: 8, workers: 10, serviceTime: 1ms}}
faults: [FAULT]
variants:
  only:
    policy:
      redis: {embedded: true}
      defaults: {maxRetries: 0, circuitBreaker: {disabled: true}}
      protect: {api: {shed: {disabled: true}, rateLimit: {limit: 200/s, burst: 40, fleet: true, AWAY}}}
`

// admitted is how many requests a second the service worked on, while Redis was there, away, and there again.
func admitted(t *testing.T, latency, fault, away string) (before, without, after float64) {
	t.Helper()
	text := edit(limited, "LATENCY", latency, "FAULT", fault, "AWAY", away)
	if latency == "" {
		text = strings.Replace(text, "redis: {latency: }\n", "", 1)
	}
	r := run(t, text)
	api := service(t, r, "api")
	perSecond := func(from, to time.Duration) float64 {
		return float64(between(r, api.Arrived, from, to)-between(r, api.Rejected, from, to)) / (to - from).Seconds()
	}
	return perSecond(5*time.Second, 20*time.Second), perSecond(21*time.Second, 40*time.Second),
		perSecond(47*time.Second, 60*time.Second)
}

const redisGone = "{at: 20s, for: 20s, redis: api}"

func TestReplicasShareALimitThroughRedis(t *testing.T) {
	for _, latency := range []string{"0s", "1ms", "exponential 2ms"} {
		before, without, after := admitted(t, latency, redisGone, "whenAway: local")
		within(t, "admitted with Redis, latency "+latency, before, 185, 202)
		within(t, "admitted without it", without, 185, 202)
		within(t, "admitted when it is back", after, 180, 202)
	}
}

func TestALimitWithoutItsRedisIsOpenOrClosedAsItsFileSays(t *testing.T) {
	_, without, after := admitted(t, "1ms", redisGone, "whenAway: closed")
	within(t, "admitted where the limit is closed", without, 0, 1)
	within(t, "admitted after it", after, 180, 202)
	_, without, _ = admitted(t, "1ms", redisGone, "whenAway: open")
	within(t, "admitted where the limit is open", without, 780, 820)
}

// A Redis that answers later than Timeout is one that is away.
func TestARedisThatIsTooSlowForItsTimeoutLeavesEachReplicaItsShare(t *testing.T) {
	before, _, _ := admitted(t, "15ms", "", "whenAway: local")
	// Nobody has ever been counted, so that each replica takes itself for the only one.
	within(t, "admitted", before, 780, 820)
}

func TestARequestWaitsForRedisAsLongAsTheWayTakes(t *testing.T) {
	text := edit(limited, "LATENCY", "3ms", "FAULT", "", "AWAY", "whenAway: local", "rate: 800", "rate: 2")
	r := run(t, text)
	_, largest := latencies(r)
	equal(t, "longest answer", largest, 7*ms)
	equal(t, "refused", r.Fleets[0].Ends[engine.RateLimited], 0)
}
