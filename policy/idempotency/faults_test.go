package idempotency_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

// schedules is how many a test runs: more if ABATE_STORE_SCHEDULES says so.
func schedules(t *testing.T, usual int) int {
	text := os.Getenv("ABATE_STORE_SCHEDULES")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAnAcknowledgedEffectIsNeverRunAgainWhateverTheStoreDoes(t *testing.T) {
	var c clock
	c.advance(1)
	store := idempotency.NewMemory(1<<30, c.now)
	n := schedules(t, 10_000)
	count := storetest.Faults(t, store, storetest.FaultOptions{Schedules: n})
	t.Logf("%d schedules: %+v", n, count)
	if count.Runs < n || count.Crashes == 0 || count.Faults < n {
		t.Errorf("nothing happened: %+v", count)
	}
}
