//go:build !race

package ratelimit_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

func TestRetryAfterIsExactToTheNanosecond(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, limit := range limits {
			for _, burst := range []int{1, 7, 1000, 1_000_000_000} {
				c := config(limit, burst)
				now := time.Duration(r.Int64N(int64(1000 * time.Hour)))
				l := ratelimit.New(c, maphash.MakeSeed())
				for range 20 {
					cost := r.Float64() * float64(min(burst, 10))
					if burst < 10 {
						cost = float64(r.IntN(burst) + 1)
					}
					d := l.Allow(now, key, float64(burst)) // empty it
					if !d.Allowed {
						if d.RetryAfter == never {
							break // longer than the clock lasts
						}
						now += d.RetryAfter
						continue
					}
					d = l.Allow(now, key, cost)
					if d.Allowed || d.RetryAfter <= 0 {
						t.Fatalf("%s, burst %d: an empty bucket: %+v", limit, burst, d)
					}
					if d.RetryAfter == never || d.RetryAfter > 1e18 {
						break
					}
					if e := l.Allow(now+d.RetryAfter-1, key, cost); e.Allowed || e.RetryAfter != 1 {
						t.Fatalf("%s, burst %d, cost %v: a nanosecond early: %+v after %+v", limit, burst, cost, e, d)
					}
					if e := l.Allow(now+d.RetryAfter, key, cost); !e.Allowed {
						t.Fatalf("%s, burst %d, cost %v: in time: %+v after %+v", limit, burst, cost, e, d)
					}
					now += d.RetryAfter
				}
			}
		}
	})
}

func TestResetIsExactToTheNanosecond(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		for _, limit := range limits {
			l := limiter(limit, 10)
			now := 12345 * time.Second
			d := l.Allow(now, key, 7)
			if d.Reset == never {
				continue
			}
			if e := l.Allow(now+d.Reset-1, key, 10); e.Allowed || e.Reset != 1 {
				t.Errorf("%s: full a nanosecond before its reset: %+v, %+v", limit, d, e)
			}
			if e := l.Allow(now+d.Reset, key, 10); !e.Allowed {
				t.Errorf("%s: not full at its reset: %+v, %+v", limit, d, e)
			}
		}
	})
}

// Whoever asks all the time gets burst + rate × time, over a hundred years as over a second.
func TestNothingDriftsOverALongTime(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, tt := range []struct {
		limit string
		over  time.Duration
		want  int
	}{
		{"1/24h", 100 * year, 36501},
		{"3/s", 3 * time.Hour, 32401},
		{"7/m", 90 * 24 * time.Hour, 907201},
		{"1/3h17m", year, 2669}, // 2668.02, and 1
		{"0.1/s", 100 * time.Hour, 36001},
		{"33.3/s", 2 * time.Hour, 239761},
		{"999937/s", time.Second, 999_938},
	} {
		l := limiter(tt.limit, 1)
		now, got := time.Duration(0), 0
		for now <= tt.over {
			d := l.Allow(now, "", 1)
			if d.Allowed {
				got++
			} else {
				now += d.RetryAfter
			}
		}
		if got != tt.want {
			t.Errorf("%s over %v: %d admitted, want %d", tt.limit, tt.over, got, tt.want)
		}
	}
}

func TestPartsOfATokenAddUp(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		for _, limit := range []string{"1000/s", "3/s", "7/m", "1/24h", "33.3/s", "128/s", "800/s"} {
			for _, tt := range []struct {
				cost float64
				want int
			}{{0.1, 30}, {0.29, 10}, {0.7, 4}, {0.001, 3000}, {0.3, 10}, {1.0 / 3, 9}} {
				l := limiter(limit, 3)
				got := 0
				for l.Allow(0, key, tt.cost).Allowed {
					got++
				}
				// a third is rounded up, and where a unit is so small that it is not, 9 of them are 3
				if got != tt.want && !(tt.cost == 1.0/3 && got == 8) {
					t.Errorf("%s: 3 tokens pay for %d times %v, want %d", limit, got, tt.cost, tt.want)
				}
			}
			l := limiter(limit, 1)
			l.Allow(0, key, 1)
			for _, cost := range []float64{1e-12, 5e-324} {
				if d := l.Allow(0, key, cost); d.Allowed {
					t.Errorf("%s: an empty bucket pays %v", limit, cost)
				}
			}
		}
	})
}

func TestRatesTooLargeForTheirTimeAreTheLargest(t *testing.T) {
	for _, c := range []ratelimit.Config{
		{Limit: ratelimit.Rate{Tokens: 1e9, Per: time.Millisecond}, Burst: 1},
		{Limit: ratelimit.Rate{Tokens: 1e300, Per: time.Second}, Burst: 1},
		{Limit: ratelimit.Rate{Tokens: 5e6, Per: 1}, Burst: 1},
	} {
		l := ratelimit.New(c, maphash.MakeSeed())
		l.Allow(0, "", 1)
		if d := l.Allow(0, "", 1); d.Allowed || d.RetryAfter != 1 {
			t.Errorf("%v: %+v", c.Limit, d)
		}
	}
}

func ExampleLimiter() {
	l := ratelimit.New(ratelimit.Config{Limit: ratelimit.Rate{Tokens: 10, Per: time.Second}, Burst: 2}, maphash.MakeSeed())
	for _, now := range []time.Duration{0, 0, 0, 100 * time.Millisecond} {
		d := l.Allow(now, "tenant-7", 1)
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 100ms
	// true 0 0s
}
