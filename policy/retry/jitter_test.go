package retry_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

const draws = 50_000

// sample draws many delays of one retry, sorted. The generator is seeded, so
// the outcome of a test is the same in every run.
func sample(p *retry.Policy, n int, previous time.Duration) []time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	delays := make([]time.Duration, draws)
	for i := range delays {
		delays[i] = p.Delay(n, previous, random.Uint64())
	}
	slices.Sort(delays)
	return delays
}

// checkUniform compares sorted delays with the uniform distribution on [lo, hi]:
// none outside, and the Kolmogorov-Smirnov distance below 1.95/√n, which a right
// sample passes 999 times in 1,000.
func checkUniform(t *testing.T, delays []time.Duration, lo, hi time.Duration) {
	t.Helper()
	if first, last := delays[0], delays[len(delays)-1]; first < lo || last > hi {
		t.Errorf("delays from %v to %v, want them in [%v, %v]", first, last, lo, hi)
	}
	distance := 0.0
	for i, d := range delays {
		expected := float64(d-lo) / float64(hi-lo)
		distance = max(distance, math.Abs(expected-float64(i)/float64(len(delays))))
	}
	if limit := 1.95 / math.Sqrt(float64(len(delays))); distance > limit {
		t.Errorf("distance from uniform on [%v, %v] = %.4f, want at most %.4f", lo, hi, distance, limit)
	}
}

func TestJitterIsUniformOnItsInterval(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		name     string
		config   retry.Config
		retry    int
		previous time.Duration
		lo, hi   time.Duration
	}{
		{"full", retry.Config{Jitter: retry.FullJitter}, 1, 0, ms, 100 * ms},
		{"full third retry", retry.Config{Jitter: retry.FullJitter}, 3, 0, ms, 400 * ms},
		{"full of a short interval", retry.Config{Jitter: retry.FullJitter, InitialDelay: ms}, 1, 0, ms / 10, ms},
		{"equal", retry.Config{Jitter: retry.EqualJitter}, 2, 0, 100 * ms, 200 * ms},
		{"factor", retry.Config{JitterFactor: 0.1}, 1, 0, 90 * ms, 110 * ms},
		{"factor near the cap", retry.Config{JitterFactor: 0.5, MaxDelay: 210 * ms}, 2, 0, 70 * ms, 210 * ms},
		{"factor of 1", retry.Config{JitterFactor: 1}, 1, 0, ms, 200 * ms},
		{"decorrelated first", retry.Config{Jitter: retry.DecorrelatedJitter}, 1, 0, 100 * ms, 300 * ms},
		{"decorrelated later", retry.Config{Jitter: retry.DecorrelatedJitter}, 9, 500 * ms, 100 * ms, 1500 * ms},
		{"decorrelated with initial at the cap", retry.Config{Jitter: retry.DecorrelatedJitter, MaxDelay: 150 * ms}, 1, 0,
			50 * ms, 150 * ms},
		{"fixed full", retry.Config{Backoff: retry.FixedBackoff}, 7, 0, ms, 100 * ms},
		{"linear equal", retry.Config{Backoff: retry.LinearBackoff, Jitter: retry.EqualJitter}, 3, 0, 150 * ms, 300 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkUniform(t, sample(retry.New(tt.config), tt.retry, tt.previous), tt.lo, tt.hi)
		})
	}
}

// The most common fault of all: the cap is applied after the draw, so every late
// delay is exactly the cap and clients come back together.
func TestJitterIsDrawnInsideTheCap(t *testing.T) {
	top := 10 * time.Second
	for _, tt := range []struct {
		config retry.Config
		lo     time.Duration
	}{
		{retry.Config{Jitter: retry.FullJitter}, time.Millisecond},
		{retry.Config{Jitter: retry.EqualJitter}, top / 2},
		{retry.Config{Jitter: retry.FactorJitter, JitterFactor: 0.25}, 6 * time.Second}, // 0.75/1.25 of the cap
		{retry.Config{Jitter: retry.DecorrelatedJitter}, 100 * time.Millisecond},
	} {
		t.Run(string(tt.config.Jitter), func(t *testing.T) {
			checkUniform(t, sample(retry.New(tt.config), 10_000, top), tt.lo, top)
		})
	}
}

// "± 10 %" that only adds makes every delay longer and the spread half as wide.
func TestFactorJitterTakesAwayAsMuchAsItAdds(t *testing.T) {
	centre := time.Second
	delays := sample(retry.New(retry.Config{InitialDelay: centre, JitterFactor: 0.1}), 1, 0)
	below, _ := slices.BinarySearch(delays, centre)
	if share := float64(below) / draws; math.Abs(share-0.5) > 0.01 {
		t.Errorf("share of delays below the interval = %.3f, want one half", share)
	}
	if delays[0] > 901*time.Millisecond || delays[draws-1] < 1099*time.Millisecond {
		t.Errorf("delays from %v to %v, want 900ms to 1.1s", delays[0], delays[draws-1])
	}
}

// 100 ms of jitter is nothing against a delay of a minute.
func TestSpreadGrowsWithTheDelay(t *testing.T) {
	for _, jitter := range []retry.Jitter{retry.FullJitter, retry.EqualJitter, retry.FactorJitter} {
		p := retry.New(retry.Config{Jitter: jitter, MaxDelay: time.Hour})
		first := p.Delay(1, 0, most) - p.Delay(1, 0, least)
		later := p.Delay(11, 0, most) - p.Delay(11, 0, least)
		if later < 1000*first {
			t.Errorf("%s: spread %v at retry 1 and %v at retry 11, want 1,024 times as much", jitter, first, later)
		}
	}
}

func TestRetryAfterJitterIsAddedOnTop(t *testing.T) {
	p := retry.New(retry.Config{MaxRetries: 3, RetryAfterJitter: 0.5})
	random := rand.New(rand.NewPCG(3, 4))
	delays := make([]time.Duration, draws)
	for i := range delays {
		delays[i], _ = p.Next(retry.Question{RetryAfter: 5 * time.Second, Rand: random.Uint64()})
	}
	slices.Sort(delays)
	checkUniform(t, delays, 5*time.Second, 7500*time.Millisecond)
}

func TestDelayGrowsWithTheRandomNumber(t *testing.T) {
	for _, jitter := range []retry.Jitter{
		retry.FullJitter, retry.EqualJitter, retry.FactorJitter, retry.DecorrelatedJitter,
	} {
		p := retry.New(retry.Config{Jitter: jitter})
		low, middle, high := p.Delay(3, time.Second, least), p.Delay(3, time.Second, most/2), p.Delay(3, time.Second, most)
		if low >= middle || middle >= high {
			t.Errorf("%s: delays %v, %v, %v for growing random numbers", jitter, low, middle, high)
		}
	}
}

func TestDecorrelatedJitterDoesNotOverflow(t *testing.T) {
	p := retry.New(retry.Config{Jitter: retry.DecorrelatedJitter})
	for _, previous := range []time.Duration{
		math.MinInt64, -1, math.MaxInt64 / 3, math.MaxInt64/3 + 1, math.MaxInt64 / 2, math.MaxInt64,
	} {
		lo, hi := p.Delay(2, previous, least), p.Delay(2, previous, most)
		want := 10 * time.Second
		if previous < 0 {
			want = 300 * time.Millisecond
		}
		if lo != 100*time.Millisecond || hi != want {
			t.Errorf("after %v: delays from %v to %v, want 100ms to %v", previous, lo, hi, want)
		}
	}
}
