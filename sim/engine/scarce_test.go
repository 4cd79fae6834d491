package engine_test

import (
	"fmt"
	"testing"
)

// crowded is a service with some workers that asks another one for a share of its requests, which hangs for a while.
// The other requests need no more than a worker.
func crowded(policy string, workers int, share, lasts string) string {
	return world(policy+", attemptTimeout: 2s", "duration: 20s", "warmUp: 3s",
		"clients: {f: {rate: 100, patience: 3s, calls: [a]}}",
		fmt.Sprintf("services: {a: {workers: %d, serviceTime: exponential 60ms, queue: {limit: 100}, "+
			"calls: [{to: b, share: %s}]}, b: {workers: 40, serviceTime: 60ms}}", workers, share),
		fmt.Sprintf("faults: [{at: 5s, for: %s, outage: b, mode: hang}]", lasts))
}

const (
	learning = "maxRetries: 0"
	holding  = learning + ", circuitBreaker: {whileOpen: hold}"
)

// Whoever waits with one of the last workers takes it from those who need nothing but a worker.
func TestACallWithOneOfTheLastWorkersDoesNotWaitForItsCircuit(t *testing.T) {
	good := func(policy string) float64 {
		return value(t, run(t, crowded(policy, 20, "30%", "10s")), "goodput(during) > 0%")
	}
	none, guarded, held := good(plain), good(learning), good(holding)
	if guarded < none+0.2 || guarded < held+0.1 {
		t.Errorf("%.3f are answered during an outage, %.3f without a circuit, %.3f if all wait for it", guarded, none,
			held)
	}
}

// While there are enough workers nobody is refused who may be answered in time.
func TestACallWaitsForItsCircuitWhileItsCallerHasWorkersLeft(t *testing.T) {
	good := func(policy string) float64 {
		return value(t, run(t, crowded(policy, 300, "99%", "1.5s")), "goodput(during) > 0%")
	}
	if guarded, held := good(learning), good(holding); guarded < held || held < 0.99 {
		t.Errorf("%.3f are answered during a short outage, %.3f if all wait", guarded, held)
	}
}
