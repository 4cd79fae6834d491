package ratelimit_test

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

func keyed(limit string, burst, maxKeys int) *ratelimit.Limiter {
	c := config(limit, burst)
	c.MaxKeys = maxKeys
	return ratelimit.New(c, maphash.MakeSeed())
}

func TestConcurrentCallersNeverGetMoreThanTheBucketHas(t *testing.T) {
	for _, keys := range []int{0, 1, 50, 2000} {
		l := keyed("1000/s", 10, 500)
		var clock atomic.Int64
		counts := make([]atomic.Int64, max(keys, 1))
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 20_000 {
					now := time.Duration(clock.Add(1000)) // 160 ms in all
					k := (i*7 + g) % max(keys, 1)
					key := ""
					if keys > 0 {
						key = fmt.Sprint(k)
					}
					if l.Allow(now, key, 1).Allowed {
						counts[k].Add(1)
					}
				}
			})
		}
		wg.Wait()
		total, over := int64(0), clock.Load()
		for k := range counts {
			n := counts[k].Load()
			total += n
			if most := 10 + over/1e6; n > most && keys <= 500 {
				t.Errorf("%d keys: key %d got %d in %d ns, want at most %d", keys, k, n, over, most)
			}
		}
		// one key asks without a pause, so it gets all there is, but for what a late caller left
		if least := 10 + over/1e6 - 2; keys <= 1 && total < least {
			t.Errorf("%d keys: %d admitted in %d ns, want %d", keys, total, over, least)
		}
		if got := l.State().Keys; got > 500 {
			t.Errorf("%d keys kept", got)
		}
	}
}

// Everybody asks at the same time, each a little late: a full bucket has exactly its burst.
func TestABurstAtOnceIsServedInFull(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		for range 200 {
			l := limiter("1/s", 100)
			var got atomic.Int64
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range 25 {
						if l.Allow(time.Duration(1000-g*100-i), key, 1).Allowed {
							got.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if got.Load() != 100 {
				t.Fatalf("%d of 100 were admitted", got.Load())
			}
		}
	})
}
