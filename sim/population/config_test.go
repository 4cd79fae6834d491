//go:build !race

package population_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

// says checks that an error has exactly these lines, each given by its beginning.
func says(t *testing.T, err error, lines ...string) {
	t.Helper()
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	for i, line := range got {
		if i >= len(lines) || !strings.HasPrefix(line, lines[i]) {
			t.Errorf("unexpected or misplaced: %s", line)
		}
	}
	if len(got) < len(lines) {
		t.Errorf("%d lines, want %d: %v", len(got), len(lines), err)
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	says(t, population.Config{
		Capacity:       math.NaN(),
		QueueLimit:     -2,
		Within:         -1,
		Think:          time.Microsecond,
		AttemptTimeout: 25 * time.Hour,
		Patience:       -1,
		ServiceTime:    -1,
		Slot:           time.Microsecond,
		Retry:          retry.Config{MaxRetries: 101, Multiplier: 0.5},
		Outages:        []population.Outage{{From: -1, To: 200 * time.Hour}, {From: time.Hour, To: time.Hour}},
	}.Validate(),
		"Duration: 0s is out of range; allowed: 1ms to 24h0m0s",
		"Clients: 0 is out of range; allowed: 1 to 2e+07 (at least one client)",
		"QueueLimit: -2 is out of range; allowed: -1 to 1e+09 (-1 for any number, 0 for none)",
		"Capacity: NaN is out of range; allowed: 0.001 to 1e+09 (requests per second, or 0 for no limit)",
		"Within: -1ns is out of range; allowed: 0s to 24h0m0s",
		"Think: 1µs is out of range; allowed: 1ms to 24h0m0s",
		"AttemptTimeout: 25h0m0s is out of range", "Patience: -1ns", "ServiceTime: -1ns",
		"Slot: 1µs is out of range; allowed: 100µs to 10s",
		"Within: is set together with Think; a population makes one request each (Within) or is a closed loop (Think): "+
			"leave one away",
		"Outages[0].From: -1ns is out of range", "Outages[0].To: 200h0m0s is out of range",
		"Outages[1]: ends at 1h0m0s, not after its begin at 1h0m0s; set To after From",
		"Retry.maxRetries: 101 is out of range", "Retry.multiplier: 0.5 is out of range")

	fine := phones(10, retry.FullJitter)
	says(t, fine.Validate())
	for name, tt := range map[string]struct {
		change func(*population.Config)
		want   string
	}{
		"slots": {func(c *population.Config) {
			c.Slot = 100 * time.Microsecond
		}, "Slot: 100µs makes 9000000 slots of 15m0s; allowed: at most 1000000 slots; leave Slot away or set it to at " +
			"least 900µs"},
		"overlap": {func(c *population.Config) {
			c.Outages = append(c.Outages, population.Outage{From: time.Second, To: time.Hour})
		}, "Outages[1]: begins at 1s, before the one before it ends at 2m0s; put them in order"},
		"many": {func(c *population.Config) {
			c.Outages = make([]population.Outage, 1001)
		}, "Outages: has 1001 members; allowed: at most 1000"},
		"for ever": {func(c *population.Config) {
			c.Outages[0].Hang = true
		}, "AttemptTimeout: is 0, and an outage that hangs would hold its clients for ever; set it, for example 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := phones(10, retry.FullJitter)
			tt.change(&c)
			says(t, c.Validate(), tt.want)
			_, exact := population.Exact(c, 1, nil)
			_, grouped := population.Cohort(c)
			_, checked := population.Check(c, 1)
			if exact == nil || grouped == nil || checked == nil {
				t.Errorf("accepted by Exact (%v), Cohort (%v) or Check (%v)", exact, grouped, checked)
			}
		})
	}
}

func TestSlotIsChosenSoThatThereAreNotTooMany(t *testing.T) {
	for duration, want := range map[time.Duration]time.Duration{
		time.Second: 10 * ms, 10_000 * time.Second: 10 * ms, 10_001 * time.Second: 11 * ms, 24 * time.Hour: 87 * ms,
	} {
		c := exact(t, population.Config{Clients: 1, Duration: duration}, 1)
		if n := len(c.Served); c.Slot != want || n > 1_000_000 || time.Duration(n)*c.Slot < duration {
			t.Errorf("%v: %d slots of %v, want slots of %v", duration, n, c.Slot, want)
		}
	}
}

func TestWhatAPopulationCannotHave(t *testing.T) {
	stateless := abate.Policy{Retry: retry.Config{MaxRetries: 3}, Timeout: time.Second, AttemptTimeout: time.Second}
	says(t, population.Supported(stateless))

	full := abate.DefaultPolicy()
	full.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1}
	full.Hedge = hedge.Config{Delay: time.Second}
	full.RetryOn, full.NeverRetryOn = []string{"5xx"}, []string{"501"}
	says(t, population.Supported(full),
		"retryBudget: is state that each client would keep for itself, which a population has no room for; set "+
			"retryBudget.disabled: true, or make the fleet small enough",
		"circuitBreaker: is state", "bulkhead: is state", "hedge: is state", "retryOn: has no effect on a population",
		"neverRetryOn: has no effect")

	full.RetryBudget.Disabled, full.CircuitBreaker.Disabled, full.Bulkhead.Disabled, full.Hedge.Disabled = true,
		true, true, true
	full.RetryOn, full.NeverRetryOn = nil, nil
	says(t, population.Supported(full))
}
