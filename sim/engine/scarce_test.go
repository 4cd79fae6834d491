package engine_test

import (
	"fmt"
	"strings"
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

// behindGate puts a gate in front of the service.
func behindGate(scenario, gate string) string {
	return strings.Replace(scenario, "{only: {policy: {", "{only: {policy: {protect: {a: "+gate+"}, ", 1)
}

// Whoever waits with one of the last workers takes it from those who need nothing but a worker. A gate in front of the
// service knows how many are taken: one that was told how many there are, and one that finds it out.
func TestACallWithOneOfTheLastSlotsDoesNotWaitForItsCircuit(t *testing.T) {
	for _, row := range []struct {
		gate               string
		overNone, overHeld float64
	}{
		{"{shed: {concurrency: fixed, maxConcurrency: 20, maxQueue: 100}}", 0.25, 0.25},
		{"{}", 0.4, 0.3},
	} {
		good := func(policy string) float64 {
			return value(t, run(t, behindGate(crowded(policy, 20, "30%", "10s"), row.gate)), "goodput(during) > 0%")
		}
		none, guarded, held := good(plain), good(learning), good(holding)
		if guarded < none+row.overNone || guarded < held+row.overHeld {
			t.Errorf("behind %s: %.3f are answered during an outage, %.3f without a circuit, %.3f if all wait for it",
				row.gate, guarded, none, held)
		}
	}
}

// No driver of a guard knows how many workers the service around it has. The simulator must not know better.
func TestWithoutAGateNobodyKnowsHowManyWorkersAreLeft(t *testing.T) {
	good := func(policy string) float64 {
		return value(t, run(t, crowded(policy, 20, "30%", "10s")), "goodput(during) > 0%")
	}
	if guarded, held := good(learning), good(holding); guarded != held {
		t.Errorf("%.3f are answered during an outage, %.3f if all wait for the circuit", guarded, held)
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
