package bench_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

// BenchmarkPopulation is ten million phones that all call once in a two-minute outage, until the last one is served.
// Memory is everything that was ever allocated, so it bounds what was held at once.
func BenchmarkPopulation(b *testing.B) {
	clients := 10_000_000
	if testing.Short() { // nobody reads the numbers
		clients = 100_000
	}
	c := population.Config{
		Clients:  clients,
		Within:   2 * time.Minute,
		Duration: 15 * time.Minute,
		Retry:    retry.Config{MaxRetries: 100, InitialDelay: time.Second, MaxDelay: time.Minute},
		Capacity: 1.2 * float64(clients) / 120,
		Outages:  []population.Outage{{To: 2 * time.Minute}},
	}
	for _, jitter := range []retry.Jitter{retry.FullJitter, retry.NoJitter} {
		c.Retry.Jitter = jitter
		b.Run("jitter="+string(jitter)+"/impl=exact/mode=seq", func(b *testing.B) {
			measured(b, clients, func() (*population.Curve, error) { return population.Exact(c, 1, nil) })
		})
		b.Run("jitter="+string(jitter)+"/impl=cohort/mode=seq", func(b *testing.B) {
			measured(b, clients, func() (*population.Curve, error) { return population.Cohort(c) })
		})
	}
}

// measured reports what a run costs per event and per client.
func measured(b *testing.B, clients int, run func() (*population.Curve, error)) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var events, runs int64
	for b.Loop() {
		curve, err := run()
		if err != nil {
			b.Fatal(err)
		}
		if total := curve.Totals(); total.Served < 0.999*float64(clients) {
			b.Fatalf("%+v: not all were served", total)
		}
		events += curve.Events
		runs++
	}
	runtime.ReadMemStats(&after)
	allocated := float64(after.TotalAlloc-before.TotalAlloc) / float64(runs)
	b.ReportMetric(allocated/1e6, "MB")
	b.ReportMetric(allocated/float64(clients), "B/client")
	if events > 0 {
		b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	}
}
