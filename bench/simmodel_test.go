package bench_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// The policies of the model's benchmarks: three retries one second apart and nothing else, and Abate's defaults.
const modelPolicies = `
variants:
  naive: {policy: {defaults: {attemptTimeout: 1s, maxRetries: 3, backoff: fixed, initialDelay: 1s, jitter: none,
    retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}
  guarded: {policy: {defaults: {attemptTimeout: 1s}}}
`

// modelCheckout is 10,000 requests per second of 50 instances at a service that can do 12,000 and hangs for 30 s.
func modelCheckout(duration string) string {
	return "duration: " + duration + `
clients: {checkout: {rate: 10000, instances: 50, calls: [payment]}}
services: {payment: {workers: 1200, serviceTime: exponential 100ms}}
faults: [{outage: payment, at: 30s, for: 30s}]` + modelPolicies
}

// modelSmall is a storm of 10 requests per second over 400 s.
const modelSmall = `
duration: 400s
clients: {checkout: {rate: 10, instances: 2, calls: [payment]}}
services: {payment: {workers: 2, serviceTime: exponential 150ms}}
faults: [{outage: payment, at: 60s, for: 30s}]` + modelPolicies

func modelScenario(b *testing.B, text string) *scenario.Scenario {
	b.Helper()
	s, err := scenario.Parse("bench.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func modelEngine(b *testing.B, s *scenario.Scenario, variant int) *engine.Engine {
	b.Helper()
	e, err := engine.New(s, &s.Variants[variant])
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkModel is the whole model with the guards of production: one operation is one exact run. Under -short, where
// nobody reads the numbers, the long one is left out.
func BenchmarkModel(b *testing.B) {
	for _, c := range []struct {
		duration string
		variant  int
	}{{"2m", 0}, {"2m", 1}, {"10m", 0}} {
		if testing.Short() && c.duration == "10m" {
			continue
		}
		s := modelScenario(b, modelCheckout(c.duration))
		b.Run(fmt.Sprintf("checkout=%s/policy=%s/impl=abate/mode=seq", c.duration, s.Variants[c.variant].Name),
			func(b *testing.B) {
				e := modelEngine(b, s, c.variant)
				var events, attempts int64
				for b.Loop() {
					r, err := e.Run(1, false, nil)
					if err != nil {
						b.Fatal(err)
					}
					events, attempts = events+r.Events, attempts+r.Attempts
				}
				eventsPerSecond(b, int(events))
				b.ReportMetric(float64(attempts)/b.Elapsed().Seconds(), "attempts/s")
			})
	}
}

// BenchmarkModelSeeds is 1,000 seeds of a small storm, one run at a time per processor: one operation is all of them.
// Under -short there are 20.
func BenchmarkModelSeeds(b *testing.B) {
	seeds := int64(1000)
	if testing.Short() {
		seeds = 20
	}
	s := modelScenario(b, modelSmall)
	for v := range s.Variants {
		b.Run("policy="+s.Variants[v].Name+"/impl=abate/mode=par", func(b *testing.B) {
			var engines []*engine.Engine
			for range runtime.GOMAXPROCS(0) {
				engines = append(engines, modelEngine(b, s, v))
			}
			var events atomic.Int64
			for b.Loop() {
				var next atomic.Int64
				var wait sync.WaitGroup
				for _, e := range engines {
					wait.Go(func() {
						for seed := next.Add(1); seed <= seeds; seed = next.Add(1) {
							r, err := e.Run(uint64(seed), false, nil)
							if err != nil {
								b.Error(err)
								return
							}
							events.Add(r.Events)
						}
					})
				}
				wait.Wait()
			}
			eventsPerSecond(b, int(events.Load()))
		})
	}
}
