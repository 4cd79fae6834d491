package abatebolt_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/abate-go/abate/adapter/abatebolt"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

func TestAnAcknowledgedEffectIsNeverRunAgainWhateverTheFileDoes(t *testing.T) {
	n := 50
	if text := os.Getenv("ABATE_STORE_SCHEDULES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var c clock
	s := open(t, filepath.Join(t.TempDir(), "keys.db"), abatebolt.Options{Now: c.now})
	count := storetest.Faults(t, s, storetest.FaultOptions{Schedules: n, Seed: 1})
	t.Logf("%d schedules: %+v", n, count)
	if count.Runs < n || count.Crashes == 0 || count.Faults < n {
		t.Errorf("nothing happened: %+v", count)
	}
}
