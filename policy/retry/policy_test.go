package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

const (
	least = uint64(0)              // the random number for the lower end of an interval
	most  = uint64(math.MaxUint64) // and for its upper end
)

func TestIntervalsGrowByTheKindOfBackoff(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		name   string
		config retry.Config
		want   []time.Duration // retries 1, 2, ...
	}{
		{"exponential", retry.Config{}, []time.Duration{
			100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10000 * ms, 10000 * ms,
		}},
		{"exponential by 3", retry.Config{Multiplier: 3, MaxDelay: time.Second}, []time.Duration{
			100 * ms, 300 * ms, 900 * ms, 1000 * ms, 1000 * ms,
		}},
		{"exponential by 1", retry.Config{Multiplier: 1}, []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		{"linear", retry.Config{Backoff: retry.LinearBackoff, MaxDelay: 350 * ms}, []time.Duration{
			100 * ms, 200 * ms, 300 * ms, 350 * ms, 350 * ms,
		}},
		{"fixed", retry.Config{Backoff: retry.FixedBackoff}, []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		{"fixed above the cap", retry.Config{Backoff: retry.FixedBackoff, MaxDelay: 50 * ms},
			[]time.Duration{50 * ms, 50 * ms}},
		{"none", retry.Config{Backoff: retry.NoBackoff}, []time.Duration{0, 0, 0}},
		{"initial above the cap", retry.Config{InitialDelay: time.Minute}, []time.Duration{
			10 * time.Second, 10 * time.Second,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Jitter = retry.NoJitter
			p := retry.New(tt.config)
			for i, want := range tt.want {
				if got := p.Delay(i+1, 0, most/3); got != want {
					t.Errorf("delay of retry %d = %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

// The classic fault is `base << i`, which turns negative or zero after some
// sixty retries and makes a client retry without any pause.
func TestNoOverflowAtAttemptTenThousand(t *testing.T) {
	for _, backoff := range []retry.Backoff{retry.ExponentialBackoff, retry.LinearBackoff, retry.FixedBackoff} {
		for _, multiplier := range []float64{1, 1.0001, 1.01, 2, 100} {
			p := retry.New(retry.Config{
				Backoff: backoff, Multiplier: multiplier, MaxDelay: 24 * time.Hour, Jitter: retry.NoJitter,
			})
			previous := time.Duration(0)
			for n := 1; n <= 10_000; n++ {
				d := p.Delay(n, 0, least)
				if d < previous || d < 100*time.Millisecond || d > 24*time.Hour {
					t.Fatalf("%s ×%g: delay of retry %d = %v after %v", backoff, multiplier, n, d, previous)
				}
				previous = d
			}
			if d := p.Delay(math.MaxInt, 0, least); d < previous || d > 24*time.Hour {
				t.Errorf("%s ×%g: delay of the last retry there is = %v after %v", backoff, multiplier, d, previous)
			}
		}
	}
}

func TestSlowGrowthGoesOnAfterTheTable(t *testing.T) {
	p := retry.New(retry.Config{Multiplier: 1.01, MaxDelay: 24 * time.Hour, Jitter: retry.NoJitter})
	got, want := p.Delay(500, 0, least), 100*time.Millisecond.Seconds()*math.Pow(1.01, 499)
	if math.Abs(got.Seconds()-want) > 1e-6 {
		t.Errorf("delay of retry 500 = %v, want %.6fs", got, want)
	}
	linear := retry.New(retry.Config{Backoff: retry.LinearBackoff, MaxDelay: 24 * time.Hour, Jitter: retry.NoJitter})
	if got := linear.Delay(5000, 0, least); got != 500*time.Second {
		t.Errorf("linear delay of retry 5000 = %v, want 500s", got)
	}
}

// In some libraries the cap ends the retries. Ours only stops the growth.
func TestReachingTheCapDoesNotEndTheRetries(t *testing.T) {
	p := retry.New(retry.Config{MaxRetries: 20, MaxDelay: 200 * time.Millisecond})
	for n := range 20 {
		if _, v := p.Next(retry.Question{Retries: n, Rand: most}); v != retry.Retry {
			t.Fatalf("after %d retries: %v", n, v)
		}
	}
}

// A random call that wants a positive argument panics on delays of a few
// nanoseconds; so does a modulo.
func TestTinyDelaysDoNotPanic(t *testing.T) {
	for _, jitter := range []retry.Jitter{
		"", retry.FullJitter, retry.EqualJitter, retry.DecorrelatedJitter, retry.FactorJitter, retry.NoJitter,
	} {
		for _, delay := range []time.Duration{1, 2, 3, -1, math.MinInt64} {
			p := retry.New(retry.Config{MaxRetries: 3, InitialDelay: delay, MaxDelay: delay, Jitter: jitter})
			for _, rnd := range []uint64{least, 1, most} {
				if d, v := p.Next(retry.Question{Previous: 1, Rand: rnd}); v != retry.Retry || d <= 0 || d > time.Millisecond {
					t.Errorf("jitter %q, delay %v: Next = %v, %v; want up to the least legal delay, 1ms", jitter, delay, d, v)
				}
			}
		}
	}
}

func TestEveryNoIsSaidBeforeTheWait(t *testing.T) {
	config := retry.Config{
		MaxRetries: 2, InitialDelay: time.Second, MaxDelay: 10 * time.Second, Jitter: retry.NoJitter,
		MaxElapsed: 5 * time.Second, MaxRetryAfter: 8 * time.Second,
	}
	for _, tt := range []struct {
		name  string
		q     retry.Question
		delay time.Duration
		want  retry.Verdict
	}{
		{"first failure", retry.Question{}, time.Second, retry.Retry},
		{"second failure", retry.Question{Retries: 1}, 2 * time.Second, retry.Retry},
		{"no wait after the last attempt", retry.Question{Retries: 2}, 0, retry.AttemptsExhausted},
		{"far too many", retry.Question{Retries: math.MaxInt}, 0, retry.AttemptsExhausted},
		{"negative count is none", retry.Question{Retries: -5}, time.Second, retry.Retry},
		{"told not to", retry.Question{NoRetry: true}, 0, retry.ServerForbids},
		{"starts exactly at the limit", retry.Question{Elapsed: 4 * time.Second}, time.Second, retry.Retry},
		{"would start after the limit", retry.Question{Elapsed: 4*time.Second + 1}, 0, retry.ElapsedExhausted},
		{"elapsed for ever", retry.Question{Elapsed: math.MaxInt64}, 0, retry.ElapsedExhausted},
		{"negative elapsed is none", retry.Question{Elapsed: math.MinInt64, RetryAfter: 8 * time.Second}, 0,
			retry.ElapsedExhausted},
		{"retry-after too long", retry.Question{RetryAfter: 8*time.Second + 1}, 0, retry.RetryAfterTooLong},
		{"retry-after past the elapsed limit", retry.Question{RetryAfter: 6 * time.Second}, 0, retry.ElapsedExhausted},
		{"told not to comes first", retry.Question{NoRetry: true, Retries: 9, RetryAfter: time.Hour, Elapsed: time.Hour},
			0, retry.ServerForbids},
		{"attempts come second", retry.Question{Retries: 9, RetryAfter: time.Hour, Elapsed: time.Hour},
			0, retry.AttemptsExhausted},
		{"retry-after comes third", retry.Question{RetryAfter: time.Hour, Elapsed: time.Hour}, 0, retry.RetryAfterTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, v := retry.New(config).Next(tt.q)
			if d != tt.delay || v != tt.want {
				t.Errorf("Next(%+v) = %v, %v; want %v, %v", tt.q, d, v, tt.delay, tt.want)
			}
		})
	}
}

func TestZeroConfigNeverRetries(t *testing.T) {
	if _, v := retry.New(retry.Config{}).Next(retry.Question{}); v != retry.AttemptsExhausted {
		t.Errorf("verdict = %v, want %v", v, retry.AttemptsExhausted)
	}
}

func TestWithoutMaxElapsedTimeDoesNotCount(t *testing.T) {
	if _, v := retry.New(retry.Config{MaxRetries: 1}).Next(retry.Question{Elapsed: math.MaxInt64}); v != retry.Retry {
		t.Errorf("verdict = %v, want %v", v, retry.Retry)
	}
}

func TestRetryAfterOnlyMakesTheWaitLonger(t *testing.T) {
	p := retry.New(retry.Config{
		MaxRetries: 9, InitialDelay: time.Second, MaxDelay: 2 * time.Second, Jitter: retry.NoJitter,
	})
	for _, tt := range []struct {
		retryAfter time.Duration
		rnd        uint64
		want       time.Duration
	}{
		{0, least, time.Second},
		{-time.Hour, least, time.Second}, // a date in the past is no reason to hurry
		{math.MinInt64, most, time.Second},
		{500 * time.Millisecond, least, time.Second},
		{500 * time.Millisecond, most, time.Second},
		{4 * time.Second, least, 4 * time.Second}, // above MaxDelay: the server knows better
		{4 * time.Second, most, 5 * time.Second},  // a quarter on top by default
		{30 * time.Second, most, 37500 * time.Millisecond},
	} {
		if got, v := p.Next(retry.Question{RetryAfter: tt.retryAfter, Rand: tt.rnd}); got != tt.want || v != retry.Retry {
			t.Errorf("retry-after %v: Next = %v, %v; want %v", tt.retryAfter, got, v, tt.want)
		}
	}
}

func TestRetryAfterHoldsWhenBackoffIsNone(t *testing.T) {
	p := retry.New(retry.Config{MaxRetries: 1, Backoff: retry.NoBackoff})
	if d, _ := p.Next(retry.Question{RetryAfter: time.Second}); d != time.Second {
		t.Errorf("delay = %v, want 1s", d)
	}
	if d, v := p.Next(retry.Question{}); d != 0 || v != retry.Retry {
		t.Errorf("Next = %v, %v; want 0, retry", d, v)
	}
}

func TestHugeRetryAfterEndsTheCall(t *testing.T) {
	p := retry.New(retry.Config{MaxRetries: 1, MaxRetryAfter: math.MaxInt64, RetryAfterJitter: 1})
	if _, v := p.Next(retry.Question{RetryAfter: math.MaxInt64}); v != retry.RetryAfterTooLong {
		t.Errorf("verdict = %v, want %v", v, retry.RetryAfterTooLong)
	}
	if d, v := p.Next(retry.Question{RetryAfter: 24 * time.Hour, Rand: most}); v != retry.Retry || d != 48*time.Hour {
		t.Errorf("Next = %v, %v; want 48h0m0s, retry", d, v)
	}
}

func TestDecisionsAllocateNothing(t *testing.T) {
	p := retry.New(retry.Config{MaxRetries: 3, MaxElapsed: time.Minute})
	if n := testing.AllocsPerRun(100, func() {
		p.Next(retry.Question{Retries: 2, RetryAfter: time.Second, Rand: most})
		p.Delay(10_000, 0, most)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestVerdictsHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for v := retry.Retry; v <= retry.ElapsedExhausted+1; v++ {
		if s := v.String(); s == "" || seen[s] {
			t.Errorf("verdict %d = %q, empty or not unique", v, s)
		} else {
			seen[s] = true
		}
	}
}
