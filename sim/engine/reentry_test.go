package engine_test

import (
	"runtime/debug"
	"testing"
)

// What is taken up out of a line and ends at once (an open breaker, a full bulkhead) must not answer callers that are
// themselves being given up. The slab panics when something is given back twice.
func TestARestartWhoseCancelledWorkLetsOthersFailAtOnce(t *testing.T) {
	run(t, `duration: 20s
warmUp: 0s
model: {cancellation: propagates}
clients: {f: {users: 20, think: 10ms, calls: [a]}}
services:
  a: {workers: 8, serviceTime: 10ms, callsFirst: true, calls: [c]}
  c: {workers: 100, serviceTime: 20ms}
faults: [{restart: f, at: 4s, for: 0s}, {outage: c, at: 1s, for: 17s}]
variants: {only: {policy: {defaults: {`+plain+`}, services: {c: {circuitBreaker: {disabled: false, slowCallRateThreshold: 0.5, slowCallDurationThreshold: 100ms, minimumNumberOfCalls: 2, slidingWindow: 1s}}}}}}
`)
}

func TestHedgesWhoseCancellationLetsTheirSiblingsFailAtOnce(t *testing.T) {
	run(t, `duration: 20s
warmUp: 0s
model: {cancellation: propagates}
clients: {f: {rate: 20, calls: [a]}}
services:
  a: {replicas: 2, workers: 3, serviceTime: 10ms, callsFirst: true, calls: [c]}
  c: {replicas: 4, workers: 100, serviceTime: 20ms}
faults: [{outage: c, at: 1s, for: 17s, share: 50%}]
variants: {only: {policy: {defaults: {`+plain+`}, services: {a: {hedge: {delay: 10ms, maxHedges: 3}, timeout: 2s}, c: {circuitBreaker: {disabled: false, slowCallRateThreshold: 0.5, slowCallDurationThreshold: 50ms, minimumNumberOfCalls: 2, slidingWindow: 1s, waitDurationInOpenState: 1s}}}}}}
`)
}

func TestALongLineThatFailsAtOnceNeedsNoStack(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	run(t, `duration: 20s
warmUp: 0s
clients: {f: {rate: 10000, calls: [a]}}
services:
  a: {workers: 50, callsFirst: true, serviceTime: 1ms, calls: [c]}
  c: {workers: 100, serviceTime: 20ms}
faults: [{outage: a, at: 1s, for: 10s}]
variants: {only: {policy: {defaults: {`+plain+`, attemptTimeout: 1s}, services: {c: {bulkhead: {maxConcurrentCalls: 10}}}}}}
`)
}
