package engine_test

import (
	"fmt"
	"testing"

	"github.com/abate-go/abate/sim/engine"
)

// BenchmarkRun is one run, by how callers choose a replica.
func BenchmarkRun(b *testing.B) {
	for _, balancing := range []string{"random", "round-robin", "least-queue"} {
		b.Run(balancing, func(b *testing.B) {
			benchmark(b, fmt.Sprintf(`
duration: 10s
warmUp: 0s
clients: {shop: {rate: 3000, instances: 10, calls: [api]}}
services: {api: {replicas: 10, balancing: %s, workers: 40, serviceTime: exponential 100ms, queue: {limit: 100}}}
faults: [{at: 3s, for: 2s, outage: api, mode: fail, share: 10%%}]
variants: {guarded: {policy: {defaults: {attemptTimeout: 1s}}}}
`, balancing))
		})
	}
	b.Run("everything", func(b *testing.B) { benchmark(b, everything) })
}

func benchmark(b *testing.B, text string) {
	s := read(b, text)
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		b.Fatal(err)
	}
	attempts := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		r, err := e.Run(1, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		attempts = r.Attempts
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(attempts), "ns/attempt")
}
