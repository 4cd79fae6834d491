//go:build !race

package population_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

func cohort(t *testing.T, c population.Config) *population.Curve {
	t.Helper()
	curve, err := population.Cohort(c)
	if err != nil {
		t.Fatal(err)
	}
	conserved(t, curve)
	return curve
}

// conserved checks that no request is lost or made up, and that every number is one.
func conserved(t *testing.T, c *population.Curve) {
	t.Helper()
	sums := c.Totals()
	if lost := sums.Offered - sums.Served - sums.Failed - sums.Waiting; !(math.Abs(lost) <= 1e-10*sums.Offered) {
		t.Fatalf("%+v: %v requests are lost", sums, lost)
	}
	least := -1e-9 * sums.Offered
	for name, series := range map[string][]float64{
		"offered": c.Offered, "attempts": c.Attempts, "served": c.Served, "failed": c.Failed, "waiting": {c.Waiting},
	} {
		for i, n := range series {
			if !(n >= least) || math.IsInf(n, 0) {
				t.Fatalf("%s[%d] = %v", name, i, n)
			}
		}
	}
}

func TestCohortIsNearExact(t *testing.T) {
	const clients = 300_000
	for _, jitter := range []retry.Jitter{retry.NoJitter, retry.FullJitter, retry.EqualJitter, retry.FactorJitter} {
		t.Run(string(jitter), func(t *testing.T) {
			c := phones(clients, jitter)
			group := cohort(t, c)
			near(t, "served", group.Totals().Served, clients, 1e-9*clients)
			near(t, "served and waiting", group.Totals().Served+group.Waiting, clients, 1e-12*clients)
			if differ := group.L1(exact(t, c, 1)); !(differ <= 0.012) {
				t.Errorf("attempts differ by %.2f %%, want at most 1.2 %%", 100*differ)
			}
		})
	}
}

// storm is a population that calls steadily, 20,000 times a second, through an outage that ends between two slots.
func storm(change func(*population.Config)) population.Config {
	c := population.Config{
		Clients:        1_200_000,
		Within:         time.Minute,
		Duration:       time.Minute,
		Capacity:       30_000,
		AttemptTimeout: 700 * ms,
		Retry:          retry.Config{MaxRetries: 3, InitialDelay: 500 * ms},
		Outages:        []population.Outage{{From: 10*time.Second + 3*ms, To: 15*time.Second + 4*ms}},
	}
	change(&c)
	return c
}

func TestCohortIsNearExactInEveryKindOfStorm(t *testing.T) {
	if testing.Short() {
		return // every storm is played in two ways
	}
	hang := func(c *population.Config) { c.Outages[0].Hang = true }
	for name, change := range map[string]func(*population.Config){
		"refused, no queue":    func(*population.Config) {},
		"refused, short queue": func(c *population.Config) { c.QueueLimit = 6000 },
		"refused, long queue":  func(c *population.Config) { c.QueueLimit = 60_000 },
		"refused, unbounded":   func(c *population.Config) { c.QueueLimit = -1 },
		"hanging, no queue":    hang,
		"hanging, short queue": func(c *population.Config) { hang(c); c.QueueLimit = 6000 },
		"hanging, unbounded":   func(c *population.Config) { hang(c); c.QueueLimit = -1 },
		"hanging, unbounded, patient, ample": func(c *population.Config) {
			hang(c)
			c.QueueLimit, c.AttemptTimeout, c.Capacity = -1, 0, 60_000
		},
		"the work takes time":     func(c *population.Config) { c.QueueLimit, c.ServiceTime = 6000, 333*ms },
		"the work takes too long": func(c *population.Config) { c.QueueLimit, c.ServiceTime = 6000, 701*ms },
		"two outages": func(c *population.Config) {
			c.Outages = append(c.Outages, population.Outage{From: 15500 * ms, To: 20 * time.Second, Hang: true})
			c.QueueLimit = 3000
		},
		"linear, factor": func(c *population.Config) {
			c.Retry.Backoff, c.Retry.JitterFactor, c.QueueLimit = retry.LinearBackoff, 0.3, 6000
		},
		"closed loop": func(c *population.Config) {
			c.Within, c.Think, c.Clients, c.QueueLimit = 0, 5*time.Second, 100_000, 6000
		},
		"closed loop, overloaded": func(c *population.Config) {
			c.Within, c.Think, c.Clients, c.Capacity, c.QueueLimit = 0, 5*time.Second, 100_000, 10_000, 3000
		},
		"closed loop, hang, no queue": func(c *population.Config) {
			hang(c)
			c.Within, c.Think, c.Clients = 0, 2*time.Second, 50_000
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := storm(change)
			group, run := cohort(t, c), exact(t, c, 1)
			if differ := group.L1(run); !(differ <= 0.01) {
				t.Errorf("attempts differ by %.2f %%, want at most 1 %%", 100*differ)
			}
			offered := run.Totals().Offered
			near(t, "share served", group.Totals().Served/offered, run.Totals().Served/offered, 0.01)
			near(t, "share failed", group.Totals().Failed/offered, run.Totals().Failed/offered, 0.01)
			near(t, "share waiting", group.Waiting/offered, run.Waiting/offered, 0.005)
		})
	}
}

// Both methods, on a case of the books: 1 % too many requests, each refusal back after a second, and 100 attempts more
// arrive every second.
func TestSmallOverloadGrowsByTheSecond(t *testing.T) {
	c := population.Config{
		Clients: 101_000, Within: 10 * time.Second, Duration: 10 * time.Second, Capacity: 10_000,
		Retry: retry.Config{MaxRetries: 100, Backoff: retry.FixedBackoff, InitialDelay: time.Second, Jitter: retry.NoJitter},
	}
	for name, curve := range map[string]*population.Curve{"exact": exact(t, c, 1), "cohort": cohort(t, c)} {
		for second, n := range curve.PerSecond(curve.Attempts) {
			near(t, fmt.Sprintf("%s: attempts in second %d", name, second), n, float64(10_100+100*second), 110)
		}
	}
}

// Four attempts per request: a server that works on what was abandoned recovers only with four times the capacity.
func TestAbandonedWorkKeepsTheStormAlive(t *testing.T) {
	for _, tt := range []struct {
		capacity float64 // of the load
		recovers bool
	}{{1.2, false}, {3.9, false}, {4.2, true}} {
		c := population.Config{
			Clients:        900_000,
			Within:         15 * time.Minute,
			Duration:       15 * time.Minute,
			Capacity:       1000 * tt.capacity,
			AttemptTimeout: time.Second,
			QueueLimit:     -1,
			Retry: retry.Config{
				MaxRetries: 3, Backoff: retry.FixedBackoff, InitialDelay: time.Second, Jitter: retry.NoJitter,
			},
			Outages: []population.Outage{{From: 10 * time.Second, To: 40 * time.Second, Hang: true}},
		}
		for name, curve := range map[string]*population.Curve{"exact": exact(t, c, 1), "cohort": cohort(t, c)} {
			last := curve.PerSecond(curve.Served)[899]
			if (last > 900) != tt.recovers {
				t.Errorf("%s with %v × the capacity: %.0f of 1000 served in the last second, want recovery %v", name, tt.capacity,
					last, tt.recovers)
			}
		}
	}
}

// A queue that grows delays every answer more than the one before; together they come at the rate of the server.
func TestCohortServesAtCapacity(t *testing.T) {
	c := cohort(t, population.Config{
		Clients:     200_000,
		Within:      10 * time.Second,
		Duration:    10 * time.Second,
		Capacity:    7000,
		QueueLimit:  -1,
		ServiceTime: 33 * ms,
	})
	for i, n := range c.Served[10:] {
		if math.Abs(n-70) > 1e-3 {
			t.Fatalf("%v served in slot %d, want 70", n, i+10)
		}
	}
}

func TestCohortSaysWhatItCannotDo(t *testing.T) {
	c := phones(1000, retry.DecorrelatedJitter)
	c.Patience, c.Retry.MaxElapsed, c.Retry.InitialDelay = time.Minute, time.Minute, ms
	c.Within, c.Think, c.Slot = 0, ms, 100*ms
	_, err := population.Cohort(c)
	for _, part := range []string{"Patience: needs the begin", "Retry.maxElapsed: needs",
		"Retry.jitter: decorrelated needs the last delay",
		"Think: 1ms is shorter than a slot of 100ms", "Retry: the mean delay before retry 1, 2ms, is shorter than a slot " +
			"of 100ms", `use the method "exact"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// The cost of a cohort run may not grow with the clients: the same curve comes out, so many times as high.
func TestCohortDoesNotCareHowMany(t *testing.T) {
	few, many := cohort(t, phones(10_000, retry.FullJitter)), cohort(t, phones(10_000_000, retry.FullJitter))
	for i, n := range few.Attempts {
		if math.Abs(1000*n-many.Attempts[i]) > 1e-3 {
			t.Fatalf("slot %d: %v attempts of 10,000 and %v of 10,000,000", i, n, many.Attempts[i])
		}
	}
}
