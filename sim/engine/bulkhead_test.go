package engine_test

import (
	"fmt"
	"testing"
)

// A bulkhead as wide as the service gets no faster by letting callers wait. What it can do is not to serve those first
// whose time is nearly up: then all the work is late. Oldest first does that, and is here to show it.
func TestTheQueueOfABulkheadKeepsGoodputUnderOverload(t *testing.T) {
	for _, times := range []string{
		"100ms", "exponential 100ms", "lognormal mean 100ms cv 1", "lognormal mean 100ms cv 2", "'90% 50ms, 10% 550ms'",
	} {
		for _, load := range []int{110, 130, 180, 400} {
			answered := func(order string) float64 {
				r := run(t, world(plain+", bulkhead: {maxConcurrentCalls: 10"+order+"}", "duration: 60s",
					fmt.Sprintf("clients: {f: {rate: %d, patience: 1s, calls: [s]}}", load),
					"services: {s: {workers: 10, serviceTime: "+times+"}}"))
				return float64(total(r.Fleets[0].Answered)) / 60
			}
			what := fmt.Sprintf("of 100/s at %d %%, %s: answers/s", load, times)
			within(t, what, answered(""), 90, 105)
			within(t, what+", oldest first", answered(", order: fifo"), 0, 20)
		}
	}
}
