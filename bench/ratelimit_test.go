package bench_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/throttle"
	"golang.org/x/time/rate"
)

// errLimited is what a rate limit driven by hand refuses with.
var errLimited = errors.New("limited")

// rateLimit is a bucket that is never empty in a benchmark. 3/s has no whole number of nanoseconds per token, so its
// arithmetic is the dear one.
func rateLimit(tokens float64) ratelimit.Config {
	return ratelimit.Config{Limit: ratelimit.Rate{Tokens: tokens, Per: time.Second}, Burst: 1_000_000_000}
}

// BenchmarkRateLimit is one token taken from one bucket, the clock read included.
func BenchmarkRateLimit(b *testing.B) {
	for _, tt := range []struct {
		name   string
		tokens float64
		key    string
	}{{"abate-policy", 1e6, ""}, {"abate-policy-3s", 3, ""}, {"abate-policy-keyed", 1e6, "tenant-7"}} {
		l := ratelimit.New(rateLimit(tt.tokens), maphash.MakeSeed())
		run(b, "impl="+tt.name, shared(func() error {
			if !l.Allow(now(), tt.key, 1).Allowed {
				return errLimited
			}
			return nil
		}))
	}
	x := rate.NewLimiter(1e6, 1_000_000_000)
	run(b, "impl=xtime", shared(func() error {
		if !x.Allow() {
			return errLimited
		}
		return nil
	}))
}

// BenchmarkRateLimitRefused is one request too many.
func BenchmarkRateLimitRefused(b *testing.B) {
	l := ratelimit.New(ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: 24 * time.Hour}}, maphash.MakeSeed())
	l.Allow(now(), "", 1)
	refused(b, "impl=abate-policy", errLimited, func() error {
		if !l.Allow(now(), "", 1).Allowed {
			return errLimited
		}
		return nil
	})
	x := rate.NewLimiter(rate.Every(24*time.Hour), 1)
	x.Allow()
	refused(b, "impl=xtime", errLimited, func() error {
		if !x.Allow() {
			return errLimited
		}
		return nil
	})
}

// BenchmarkRateLimitKeys asks for one of so many keys at random; every one has a bucket that is not full. The text of
// the key is made on the spot, as a request brings its own.
func BenchmarkRateLimitKeys(b *testing.B) {
	for _, keys := range []uint64{1, 1000, 1_000_000} {
		c := ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: 10 * time.Second}, Burst: 200_000_000}
		l := ratelimit.New(c, maphash.MakeSeed())
		ask := func(n uint64) error {
			var key [12]byte
			binary.LittleEndian.PutUint64(key[:], n)
			if !l.Allow(now(), string(key[:]), 1).Allowed {
				return errLimited
			}
			return nil
		}
		for n := range keys {
			if err := ask(n); err != nil {
				b.Fatal(err)
			}
		}
		run(b, fmt.Sprintf("keys=%d/impl=abate-policy", keys), func() func() error {
			random := uint64(now())
			return func() error {
				random = random*6364136223846793005 + 1442695040888963407
				n, _ := bits.Mul64(random, keys)
				return ask(n)
			}
		})
	}
}

// BenchmarkThrottle is one request and its good answer, the clock read included.
func BenchmarkThrottle(b *testing.B) {
	th := throttle.New(throttle.Config{K: 2})
	run(b, "impl=abate-policy", shared(func() error {
		began := now()
		if ok, _ := th.Allow(began, uint64(began)); !ok {
			return errLimited
		}
		th.Record(began, began, throttle.Accepted)
		return nil
	}))
}
