package h2_test

import (
	"runtime"
	"testing"
	"time"
)

// eventually waits until ok, for a long time if necessary.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			buf := make([]byte, 1<<20)
			t.Fatalf("not within %v: %s\n%s", patience, what, buf[:runtime.Stack(buf, true)])
		}
	}
}
