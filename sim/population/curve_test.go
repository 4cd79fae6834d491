//go:build !race

package population_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

func TestServedByCountsWhatWasOffered(t *testing.T) {
	c := population.Curve{Slot: 10 * ms, Offered: []float64{10, 0, 0, 0}, Served: []float64{0, 5, 4, 0}}
	for share, want := range map[float64]time.Duration{0.5: 20 * ms, 0.51: 30 * ms, 0.9: 30 * ms} {
		if at, ok := c.ServedBy(share); at != want || !ok {
			t.Errorf("%v served by %v (%v), want %v", share, at, ok, want)
		}
	}
	if at, ok := c.ServedBy(0.91); ok || at != 0 {
		t.Errorf("91 %% served by %v, but one of ten never was", at)
	}
}

func TestDifferenceOfCurvesIsPerSecond(t *testing.T) {
	one := &population.Curve{Slot: 500 * ms, Attempts: []float64{6, 4, 0, 0, 5}}
	two := &population.Curve{Slot: 500 * ms, Attempts: []float64{4, 6, 0, 10}}
	if got, want := one.PerSecond(one.Attempts), []float64{10, 0, 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("per second %v, want %v", got, want)
	}
	if got := one.L1(two); got != 15.0/20 {
		t.Errorf("difference %v, want 0.75: 10 and 5, of 20", got)
	}
	none := &population.Curve{Slot: 500 * ms}
	if same, all := none.L1(none), one.L1(none); same != 0 || !math.IsInf(all, 1) {
		t.Errorf("without attempts: %v and %v, want 0 and +Inf", same, all)
	}
}

func TestCheckRunsASmallerPopulation(t *testing.T) {
	c := phones(10_000_000, retry.FullJitter)
	got, err := population.Check(c, 1)
	if err != nil || got.Clients != 100_000 || !(got.Error > 0 && got.Error < 0.02) {
		t.Errorf("%+v, %v; want an error below 2 %% from 100,000 clients", got, err)
	}
	small, err := population.Check(phones(2000, retry.FullJitter), 1)
	if err != nil || small.Clients != 2000 || small.Error < got.Error {
		t.Errorf("%+v, %v; want 2,000 clients and a larger error than %v", small, err, got.Error)
	}
	c = storm(func(c *population.Config) { c.QueueLimit = 6000 })
	if got, err = population.Check(c, 1); err != nil || got.Error > 0.02 {
		t.Errorf("with a queue: %+v, %v; want the queue to shrink with the population", got, err)
	}
	if _, err = population.Check(phones(2000, retry.DecorrelatedJitter), 1); err == nil {
		t.Error("decorrelated jitter was checked, which Cohort does not support")
	}
}
