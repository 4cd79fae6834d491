package sim_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

// plain is a policy without opinions, naive three retries one second apart.
const (
	plain = "{policy: {defaults: {maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}"
	naive = "{policy: {defaults: {attemptTimeout: 1s, maxRetries: 3, backoff: fixed, initialDelay: 1s, jitter: none, " +
		"retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}"
)

func read(t testing.TB, lines ...string) *scenario.Scenario {
	t.Helper()
	text := strings.Join(lines, "\n")
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

func study(t testing.TB, s *scenario.Scenario, o sim.Options) *sim.Result {
	t.Helper()
	r, err := sim.Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
}

// nobodyLeft waits until as many goroutines run as before: one that has done its work may need a moment to be gone, on
// a busy machine a long one.
func nobodyLeft(t *testing.T, before int) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.NewTimer(30*time.Second)
	defer tick.Stop()
	defer limit.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%d goroutines, before it were %d", runtime.NumGoroutine(), before)
		}
	}
}
