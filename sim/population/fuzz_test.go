//go:build !race

package population_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

var (
	backoffs = []retry.Backoff{retry.ExponentialBackoff, retry.LinearBackoff, retry.FixedBackoff, retry.NoBackoff}
	jitters  = []retry.Jitter{
		retry.FullJitter, retry.EqualJitter, retry.FactorJitter, retry.NoJitter, retry.DecorrelatedJitter,
	}
)

// Whatever the population: no request is lost, no number is absurd, nothing panics or hangs. Runs are kept short.
func FuzzCohort(f *testing.F) {
	f.Add(100, 1000, 0, 10.0, 0, 0, 0, 100, 400, false, 3, uint8(0), uint8(0), 100, 1000, 10)
	f.Add(50, 0, 500, 0.0, 30, -1, 70, 0, 900, true, 100, uint8(1), uint8(2), 20, 50, 7)
	f.Add(2, 0, 0, 1e9, 3000, 1, 1, 950, 2000, true, 0, uint8(2), uint8(3), 1, 1, 1000)
	f.Add(900, 1, 0, 0.001, 0, 0, 1500, 0, 1, true, 1, uint8(3), uint8(4), 0, 0, 0)
	f.Fuzz(func(t *testing.T, clients, within, think int, capacity float64, service, queue, timeout, from,
		lasts int, hang bool,
		retries int, backoff, jitter uint8, initial, longest, slot int) {
		short := func(n int) time.Duration { return time.Duration(n%5000) * ms }
		c := population.Config{
			Clients: clients % 1000, Within: short(within), Think: short(think), Capacity: capacity, ServiceTime: short(service),
			QueueLimit: queue, AttemptTimeout: short(timeout), Duration: 3 * time.Second, Slot: short(slot),
			Retry: retry.Config{
				MaxRetries: retries, Backoff: backoffs[int(backoff)%len(backoffs)], Jitter: jitters[int(jitter)%len(jitters)],
				InitialDelay: short(initial), MaxDelay: short(longest),
			},
		}
		if lasts != 0 {
			c.Outages = []population.Outage{{From: short(from), To: short(from) + short(lasts), Hang: hang}}
		}
		valid := c.Validate() == nil
		play, err := population.Exact(c, 1, nil)
		if valid != (err == nil) {
			t.Fatalf("Validate and Exact do not agree: %v", err)
		}
		group, grouped := population.Cohort(c)
		if grouped == nil {
			conserved(t, group)
		}
		if !valid {
			if grouped == nil {
				t.Fatal("Cohort takes what is not valid")
			}
			return
		}
		conserved(t, play)
	})
}
