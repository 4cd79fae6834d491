package throttle_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/throttle"
)

// BenchmarkAllowRecord is a request and its answer: all accepted, and one in five accepted, which looks at the window.
func BenchmarkAllowRecord(b *testing.B) {
	for _, bad := range []int{0, 4} {
		b.Run([]string{0: "accepted", 4: "overloaded"}[bad], func(b *testing.B) {
			b.Run("seq", func(b *testing.B) {
				b.ReportAllocs()
				f := asker(throttle.New(throttle.Config{K: 2}), bad)
				for b.Loop() {
					f()
				}
			})
			b.Run("par", func(b *testing.B) {
				b.ReportAllocs()
				th := throttle.New(throttle.Config{K: 2})
				b.RunParallel(func(pb *testing.PB) {
					f := asker(th, bad)
					for pb.Next() {
						f()
					}
				})
			})
		})
	}
}

func asker(th *throttle.Throttle, bad int) func() {
	now, n, rnd := time.Duration(0), 0, uint64(1)
	return func() {
		now += 10 * time.Microsecond
		rnd = rnd*6364136223846793005 + 1442695040888963407
		if ok, _ := th.Allow(now, rnd); ok {
			result := throttle.Accepted
			if n++; n%5 < bad {
				result = throttle.Rejected
			}
			th.Record(now, now, result)
		}
	}
}
