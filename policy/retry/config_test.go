package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

func TestDefaults(t *testing.T) {
	want := retry.Config{
		Backoff: retry.ExponentialBackoff, InitialDelay: 100 * time.Millisecond, MaxDelay: 10 * time.Second, Multiplier: 2,
		Jitter: retry.FullJitter, MaxRetryAfter: 30 * time.Second, RetryAfterJitter: 0.25,
	}
	got := retry.Config{}.WithDefaults()
	if got != want {
		t.Errorf("defaults = %+v, want %+v", got, want)
	}
	if again := got.WithDefaults(); again != got {
		t.Errorf("defaults of the defaults = %+v, want no change", again)
	}
}

func TestJitterFactorChoosesItsJitter(t *testing.T) {
	for _, tt := range []struct {
		in, want retry.Config
	}{
		{retry.Config{JitterFactor: 0.2}, retry.Config{Jitter: retry.FactorJitter, JitterFactor: 0.2}},
		{retry.Config{Jitter: retry.FactorJitter}, retry.Config{Jitter: retry.FactorJitter, JitterFactor: 0.5}},
		{retry.Config{Jitter: retry.EqualJitter, JitterFactor: 0.2}, retry.Config{
			Jitter: retry.EqualJitter, JitterFactor: 0.2,
		}},
	} {
		got := tt.in.WithDefaults()
		if got.Jitter != tt.want.Jitter || got.JitterFactor != tt.want.JitterFactor {
			t.Errorf("%+v: jitter %q, factor %v; want %q, %v", tt.in, got.Jitter, got.JitterFactor, tt.want.Jitter,
				tt.want.JitterFactor)
		}
	}
}

func TestValuesOutOfRangeMoveToTheNearestEnd(t *testing.T) {
	low := retry.New(retry.Config{
		MaxRetries: -1, Backoff: "soon", InitialDelay: -1, MaxDelay: -1, Multiplier: 0.5, Jitter: "some", JitterFactor: -1,
		MaxElapsed: -1, MaxRetryAfter: -1, RetryAfterJitter: -1,
	}).Config()
	if want := (retry.Config{
		Backoff: retry.ExponentialBackoff, InitialDelay: time.Millisecond, MaxDelay: time.Millisecond, Multiplier: 1,
		Jitter: retry.FullJitter, MaxElapsed: time.Millisecond, MaxRetryAfter: time.Millisecond,
	}); low != want {
		t.Errorf("too low = %+v, want %+v", low, want)
	}
	high := retry.New(retry.Config{
		MaxRetries: 1000, InitialDelay: math.MaxInt64, MaxDelay: math.MaxInt64, Multiplier: math.Inf(1), JitterFactor: 7,
		MaxElapsed: math.MaxInt64, MaxRetryAfter: math.MaxInt64, RetryAfterJitter: math.Inf(1),
	}).Config()
	day := 24 * time.Hour
	if want := (retry.Config{
		MaxRetries: 100, Backoff: retry.ExponentialBackoff, InitialDelay: time.Hour, MaxDelay: day, Multiplier: 100,
		Jitter: retry.FactorJitter, JitterFactor: 1, MaxElapsed: day, MaxRetryAfter: day, RetryAfterJitter: 1,
	}); high != want {
		t.Errorf("too high = %+v, want %+v", high, want)
	}
	nan := retry.New(retry.Config{
		Multiplier: math.NaN(), Jitter: retry.FactorJitter, JitterFactor: math.NaN(), RetryAfterJitter: math.NaN(),
	}).Config()
	if nan.Multiplier != 2 || nan.JitterFactor != 0.5 || nan.RetryAfterJitter != 0.25 {
		t.Errorf("not a number = %+v, want the defaults", nan)
	}
}
