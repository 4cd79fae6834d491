package ratelimit_test

import (
	"hash/maphash"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

const never = ratelimit.Never

// config reads a limit as the policy file does.
func config(limit string, burst int) ratelimit.Config {
	c := ratelimit.Config{Burst: burst}
	if err := c.Limit.UnmarshalText([]byte(limit)); err != nil {
		panic(err)
	}
	return c
}

func limiter(limit string, burst int) *ratelimit.Limiter {
	return ratelimit.New(config(limit, burst), maphash.MakeSeed())
}

// admit asks n times for one token and tells how often it was there.
func admit(l *ratelimit.Limiter, now time.Duration, key string, n int) (admitted int) {
	for range n {
		if l.Allow(now, key, 1).Allowed {
			admitted++
		}
	}
	return admitted
}

// both runs a test with the empty key, which has a path of its own, and with another.
func both(t *testing.T, f func(t *testing.T, key string)) {
	t.Run("the empty key", func(t *testing.T) { f(t, "") })
	t.Run("a key", func(t *testing.T) { f(t, "a") })
}

func TestABucketStartsFullAndEarnsItsRate(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("100/s", 10)
		for _, tt := range []struct {
			now  time.Duration
			want int
		}{
			{0, 10}, {0, 0}, {10*time.Millisecond - 1, 0}, {10 * time.Millisecond, 1}, {45 * time.Millisecond, 3},
			{49 * time.Millisecond, 0}, {50 * time.Millisecond, 1}, {time.Second, 10}, {time.Hour, 10},
		} {
			if got := admit(l, tt.now, key, 50); got != tt.want {
				t.Errorf("at %v: %d admitted, want %d", tt.now, got, tt.want)
			}
		}
	})
}

func TestEveryDecisionTellsWhatIsLeftAndUntilWhen(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("2/s", 3)
		ms := time.Millisecond
		for i, tt := range []struct {
			now  time.Duration
			cost float64
			want ratelimit.Decision
		}{
			{0, 1, ratelimit.Decision{Allowed: true, Limit: 3, Remaining: 2, Reset: 500 * ms}},
			{0, 1.5, ratelimit.Decision{Allowed: true, Limit: 3, Remaining: 0, Reset: 1250 * ms}},
			{0, 1, ratelimit.Decision{Over: true, Limit: 3, Remaining: 0, Reset: 1250 * ms, RetryAfter: 250 * ms}},
			{0, 0, ratelimit.Decision{Allowed: true, Limit: 3, Remaining: 0, Reset: 1250 * ms}},
			{0, -4, ratelimit.Decision{Allowed: true, Limit: 3, Remaining: 0, Reset: 1250 * ms}},
			{250 * ms, 3, ratelimit.Decision{Over: true, Limit: 3, Remaining: 1, Reset: 1000 * ms, RetryAfter: 1000 * ms}},
			{250 * ms, 3.5, ratelimit.Decision{Over: true, Limit: 3, Remaining: 1, Reset: 1000 * ms, RetryAfter: never}},
			{250 * ms, math.NaN(), ratelimit.Decision{Over: true, Limit: 3, Remaining: 1, Reset: 1000 * ms, RetryAfter: never}},
			{250 * ms, math.Inf(1), ratelimit.Decision{Over: true, Limit: 3, Remaining: 1, Reset: 1000 * ms, RetryAfter: never}},
			{250 * ms, math.Inf(-1), ratelimit.Decision{Allowed: true, Limit: 3, Remaining: 1, Reset: 1000 * ms}},
			{1250 * ms, 3, ratelimit.Decision{Allowed: true, Limit: 3, Remaining: 0, Reset: 1500 * ms}},
		} {
			if got := l.Allow(tt.now, key, tt.cost); got != tt.want {
				t.Errorf("%d: cost %v at %v:\n got %+v\nwant %+v", i, tt.cost, tt.now, got, tt.want)
			}
		}
	})
}

func TestALimitOfZeroRefusesEverything(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		for _, limit := range []string{"0/s", "0/24h"} {
			l := limiter(limit, 5)
			want := ratelimit.Decision{Over: true, Reset: never, RetryAfter: never}
			for _, cost := range []float64{1, 0, -1, 0.001, math.NaN()} {
				if got := l.Allow(time.Hour, key, cost); got != want {
					t.Errorf("%s, cost %v: %+v", limit, cost, got)
				}
				if got, wait := l.Reserve(time.Hour, key, cost, never); got != want || wait != 0 {
					t.Errorf("%s, reserve %v: %+v, %v", limit, cost, got, wait)
				}
			}
		}
	})
}

func TestALimiterThatIsOffAllowsEverything(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		for _, c := range []ratelimit.Config{
			{}, {Burst: 1}, {Disabled: true, Limit: ratelimit.Rate{Tokens: 1, Per: time.Second}},
		} {
			l := ratelimit.New(c, maphash.MakeSeed())
			for range 5 {
				if got, want := l.Allow(0, key, 1e12), (ratelimit.Decision{Allowed: true}); got != want {
					t.Errorf("%+v: %+v", c, got)
				}
			}
		}
	})
}

func TestShadowRefusesNothingAndCountsAsIfItDid(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		c := config("10/s", 2)
		real := ratelimit.New(c, maphash.MakeSeed())
		c.Shadow = true
		shadow := ratelimit.New(c, maphash.MakeSeed())
		for i := range 200 {
			now, cost := time.Duration(i*i)*time.Millisecond, float64(i%4)
			want, got := real.Allow(now, key, cost), shadow.Allow(now, key, cost)
			if want.Allowed = true; got != want {
				t.Fatalf("request %d: shadow %+v, want %+v", i, got, want)
			}
			wantReserved, _ := real.Reserve(now, key, cost, 150*time.Millisecond)
			reserved, wait := shadow.Reserve(now, key, cost, 150*time.Millisecond)
			if wantReserved.Allowed = true; reserved != wantReserved || wait != 0 {
				t.Fatalf("reservation %d: shadow %+v, wait %v, want %+v", i, reserved, wait, wantReserved)
			}
		}
	})
}

func TestReserveWaitsItsTurn(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("10/s", 1)
		for i, want := range []time.Duration{0, 100, 200, 300} {
			want *= time.Millisecond
			d, wait := l.Reserve(0, key, 1, 300*time.Millisecond)
			if !d.Allowed || d.Over || wait != want || d.RetryAfter != want {
				t.Errorf("reservation %d waits %v, want %v: %+v", i, wait, want, d)
			}
		}
		for range 3 { // taking nothing
			d, wait := l.Reserve(0, key, 1, 400*time.Millisecond-1)
			if d.Allowed || !d.Over || wait != 0 || d.RetryAfter != 400*time.Millisecond || d.Remaining != 0 ||
				d.Reset != d.RetryAfter {
				t.Errorf("a reservation that waits too long: %+v, wait %v", d, wait)
			}
		}
		if d := l.Allow(300*time.Millisecond, key, 1); d.Allowed || d.RetryAfter != 100*time.Millisecond {
			t.Errorf("beside a reservation: %+v", d)
		}
		if d := l.Allow(400*time.Millisecond, key, 1); !d.Allowed {
			t.Errorf("after all reservations: %+v", d)
		}
		if d, wait := l.Reserve(400*time.Millisecond, key, 2, never); d.Allowed || d.RetryAfter != never || wait != 0 {
			t.Errorf("more than the burst: %+v, wait %v", d, wait)
		}
		if d, wait := l.Reserve(time.Hour, key, 1, -5); !d.Allowed || wait != 0 {
			t.Errorf("no patience but a full bucket: %+v, wait %v", d, wait)
		}
		if d, wait := l.Reserve(time.Hour, key, 1, -5); d.Allowed || wait != 0 {
			t.Errorf("no patience: %+v, wait %v", d, wait)
		}
	})
}

func TestReservationsUpToTheEndOfTime(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("1/24h", 1)
		day, last, granted := 24*time.Hour, time.Duration(-1), 0
		for ; ; granted++ {
			d, wait := l.Reserve(0, key, 1, never)
			if !d.Allowed {
				break
			}
			if wait != last+day && granted > 0 || wait < 0 {
				t.Fatalf("reservation %d waits %v after one of %v", granted, wait, last)
			}
			last = wait
		}
		if granted < 146*365 || granted > 147*366 {
			t.Errorf("%d reservations of a day each, want those of 146 years", granted)
		}
	})
}

func TestAClockThatJumpsBackEarnsNothing(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("10/s", 10)
		if got := admit(l, time.Hour, key, 6); got != 6 {
			t.Fatal(got)
		}
		if got := l.Allow(0, key, 0); got.Remaining != 4 {
			t.Errorf("after an hour backwards: %+v, want 4 left", got)
		}
		if got := admit(l, 0, key, 9); got != 4 {
			t.Errorf("%d admitted after an hour backwards, want what was left, 4", got)
		}
		if got := l.Allow(59*time.Minute, key, 1); got.Allowed || got.RetryAfter != time.Minute+100*time.Millisecond {
			t.Errorf("on the way back: %+v", got)
		}
		if got := admit(l, time.Hour+500*time.Millisecond, key, 9); got != 5 {
			t.Errorf("%d admitted half a second later, want 5", got)
		}
	})
}

func TestTimesAtTheEnds(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		times := []time.Duration{
			math.MinInt64, math.MinInt64 / 2, -1, 0, 1, math.MaxInt64/2 - 1, math.MaxInt64 / 2, math.MaxInt64,
		}
		for _, limit := range []string{"1/24h", "3/s", "1/s", "0.00001/24h", "999999937/s", "1000000000/s"} {
			for _, burst := range []int{1, 1_000_000_000} {
				l := limiter(limit, burst)
				for _, now := range times {
					for _, cost := range []float64{1, 0.5, float64(burst), 1e-9} {
						d := l.Allow(now, key, cost)
						if d.Remaining < 0 || d.Remaining > d.Limit || d.Reset < 0 || d.RetryAfter < 0 || d.Over == d.Allowed {
							t.Fatalf("%s, burst %d, cost %v at %v: %+v", limit, burst, cost, now, d)
						}
					}
				}
				if d := l.Allow(0, key, 0); d.Remaining < 0 || d.Remaining > d.Limit {
					t.Fatalf("%s, burst %d, back from the end: %+v", limit, burst, d)
				}
			}
		}
	})
}

func TestKeysHaveBucketsOfTheirOwn(t *testing.T) {
	l := limiter("1/s", 2)
	long := make([]byte, 10<<20)
	keys := []string{"", "a", "b", "a\nb", "{a}", "\x00", "\xff", string(long), string(long[1:])}
	for range 2 {
		for _, key := range keys {
			if d := l.Allow(0, key, 1); !d.Allowed {
				t.Errorf("a key of %d bytes pays for another", len(key))
			}
		}
	}
	for _, key := range keys {
		if d := l.Allow(0, key, 1); d.Allowed {
			t.Errorf("a key of %d bytes has more than its own bucket", len(key))
		}
	}
	if got, want := l.State(), (ratelimit.State{Keys: len(keys) - 1}); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}

func TestAllowAllocatesNothing(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("1000/s", 1000)
		l.Allow(0, key, 1)
		now := time.Duration(0)
		if n := testing.AllocsPerRun(1000, func() { now += time.Microsecond; l.Allow(now, key, 1) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
