package bench_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
	avast5 "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/go-retryablehttp"
)

// sink keeps the computed delays alive.
var sink time.Duration

// BenchmarkDelays is the five delays of one call that fails six times, jittered,
// exponential from 100 ms to 10 s. One operation is all five.
func BenchmarkDelays(b *testing.B) {
	ours := retry.New(retry.Config{MaxRetries: 5})
	seq(b, "impl=abate-policy", shared(func() error {
		for i := range 5 {
			sink = ours.Delay(i+1, sink, rand.Uint64())
		}
		return nil
	}))

	seq(b, "impl=floor", shared(func() error {
		for i := range 5 {
			sink = time.Duration(rand.Uint64N(uint64(100*time.Millisecond) << i))
		}
		return nil
	}))

	bo := backoff.NewExponentialBackOff()
	bo.InitialInterval, bo.Multiplier, bo.MaxInterval = 100*time.Millisecond, 2, 10*time.Second
	seq(b, "impl=backoff", shared(func() error {
		bo.Reset()
		for range 5 {
			sink = bo.NextBackOff()
		}
		return nil
	}))

	av5 := avast5.New(avast5.Delay(100*time.Millisecond), avast5.MaxDelay(10*time.Second))
	seq(b, "impl=avast5", shared(func() error {
		for i := range uint(5) {
			sink = avast5.FullJitterBackoffDelay(i, errFlaky, av5)
		}
		return nil
	}))

	seq(b, "impl=retryablehttp", shared(func() error {
		for i := range 5 {
			sink = retryablehttp.LinearJitterBackoff(100*time.Millisecond, 10*time.Second, i, nil)
		}
		return nil
	}))
}
