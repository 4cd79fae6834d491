package abate_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/bulkhead"
)

// One of 20 calls is told to come again in 5 s. 50 calls a second of 50 ms need 2.5 of ten permits.
func TestCallsThatWaitForARetryAfterTakeNoPermits(t *testing.T) {
	for _, tt := range []struct {
		holds       bool
		least, most int32
	}{{false, 0, 0}, {true, 600, 2000}} {
		synctest.Test(t, func(t *testing.T) {
			g := guard(t, abate.Policy{Retry: fixed(ms, 3), Bulkhead: bulkhead.Config{MaxConcurrentCalls: 10, NoQueue: true,
				HoldDuringBackoff: tt.holds}})
			var refused atomic.Int32
			var wg sync.WaitGroup
			for n := range 2000 {
				wg.Go(func() {
					first := n%20 == 7
					_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) {
						time.Sleep(50 * ms)
						if first {
							first = false
							return 0, abate.RetryAfter(errDown, 5*time.Second)
						}
						return 0, nil
					})
					switch {
					case errors.Is(err, abate.ErrBulkheadFull):
						refused.Add(1)
					case err != nil:
						t.Error(err)
					}
				})
				time.Sleep(20 * ms)
			}
			wg.Wait()
			if n := refused.Load(); n < tt.least || n > tt.most {
				t.Errorf("held during back-off %t: %d of 2000 calls refused, want %d to %d", tt.holds, n, tt.least, tt.most)
			}
			if s := g.State().Bulkhead; s.InFlight != 0 || s.Queued != 0 || s.Away != 0 {
				t.Errorf("at the end %+v", s)
			}
		})
	}
}
