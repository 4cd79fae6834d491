package ratelimit_test

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

// left reports what the bucket holds.
func left(l *ratelimit.Limiter, now time.Duration, key string) int64 {
	return l.Allow(now, key, 0).Remaining
}

func TestAReloadKeepsWhatBucketsHold(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		for _, tt := range []struct {
			name string
			to   []ratelimit.Config
			want int64
		}{
			{"the same again", []ratelimit.Config{config("10/s", 10)}, 4},
			{"another rate", []ratelimit.Config{config("3/s", 10)}, 4},
			{"a larger burst", []ratelimit.Config{config("10/s", 1000)}, 4},
			{"a smaller burst", []ratelimit.Config{config("10/s", 2)}, 2},
			{"a smaller burst and back", []ratelimit.Config{config("10/s", 2), config("10/s", 10)}, 2},
			{"a larger burst and back", []ratelimit.Config{config("7/m", 1_000_000_000), config("10/s", 10)}, 4},
			{"off and on", []ratelimit.Config{{}, config("10/s", 10)}, 4},
			{"disabled and on", []ratelimit.Config{
				{Disabled: true, Limit: config("5/s", 9).Limit, Burst: 9}, config("10/s", 10),
			}, 4},
			{"closed and open", []ratelimit.Config{config("0/s", 10), config("10/s", 10)}, 4},
			{"a shadow", []ratelimit.Config{{Shadow: true, Limit: config("10/s", 10).Limit, Burst: 10}}, 4},
		} {
			l := limiter("10/s", 10)
			admit(l, time.Hour, key, 6)
			for range 50 {
				for _, c := range tt.to {
					l.Reconfigure(time.Hour, c)
				}
			}
			if got := left(l, time.Hour, key); got != tt.want {
				t.Errorf("%s: %d tokens left, want %d", tt.name, got, tt.want)
			}
		}
	})
}

func TestAReloadWithAClockThatJumpedBack(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("10/s", 10)
		admit(l, time.Hour, key, 6)
		l.Reconfigure(0, config("3/s", 10))
		if got := left(l, 0, key); got != 4 {
			t.Errorf("%d tokens left, want 4", got)
		}
		l.Reconfigure(time.Hour, config("10/s", 10))
		if got := left(l, time.Hour+time.Second, key); got != 10 {
			t.Errorf("%d tokens a second later, want 10", got)
		}
	})
}

func TestTheNewRateCountsFromTheReload(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("10/s", 100)
		admit(l, 0, key, 100)
		l.Reconfigure(time.Second, config("50/s", 100))
		if got := left(l, time.Second, key); got != 10 {
			t.Errorf("%d tokens at the reload, want those of the old rate, 10", got)
		}
		if got := left(l, 2*time.Second, key); got != 60 {
			t.Errorf("%d tokens a second later, want 60", got)
		}
		l.Reconfigure(2*time.Second, config("0/s", 100))
		l.Reconfigure(time.Hour, config("50/s", 100))
		if got := left(l, time.Hour, key); got != 60 {
			t.Errorf("%d tokens after an hour closed, want 60", got)
		}
	})
}

func TestARaisedBurstIsEarnedByUnknownKeysToo(t *testing.T) {
	l := limiter("10/s", 10)
	l.Allow(0, "known", 1)
	l.Reconfigure(time.Minute, config("10/s", 1000))
	for i, key := range []string{"", "known", "new"} {
		if got := admit(l, time.Minute, key, 2000); got != 10 {
			t.Errorf("%q had %d tokens, want 10 as before", key, got)
		}
		if got, want := admit(l, time.Minute+time.Duration(i+1)*time.Second, key, 2000), 10*(i+1); got != want {
			t.Errorf("%q had %d tokens after %d seconds, want %d", key, got, i+1, want)
		}
	}
	if got := admit(l, time.Hour, "later", 2000); got != 1000 {
		t.Errorf("%d tokens after an hour, want 1000", got)
	}
}

func TestALimitThatComesLaterStartsFull(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := ratelimit.New(ratelimit.Config{}, maphash.MakeSeed())
		l.Allow(0, key, 1)
		l.Reconfigure(time.Minute, ratelimit.Config{})
		l.Reconfigure(time.Minute, config("1/h", 5))
		if got := admit(l, time.Minute, key, 9); got != 5 {
			t.Errorf("%d admitted, want 5", got)
		}
	})
}

func TestReservationsSurviveAReload(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		l := limiter("10/s", 2)
		for range 7 { // 2 at once, 5 later
			l.Reserve(0, key, 1, time.Hour)
		}
		l.Reconfigure(0, config("5/s", 2))
		if d := l.Allow(0, key, 1); d.Allowed || d.RetryAfter != 1200*time.Millisecond {
			t.Errorf("%+v, want the five that are owed and one more at the new rate", d)
		}
		l.Reconfigure(0, config("0.00001/24h", 1))
		if d := l.Allow(0, key, 1); d.Allowed || d.RetryAfter != never {
			t.Errorf("%+v, want more than the clock has", d)
		}
		l.Reconfigure(0, config("10/s", 2))
		if d := l.Allow(0, key, 1); d.Allowed {
			t.Errorf("%+v: what was owed is forgotten", d)
		}
	})
}

// Requests beside a storm of reloads get no token more than without.
func TestAReloadStormGivesNothingAway(t *testing.T) {
	both(t, func(t *testing.T, key string) {
		configs := []ratelimit.Config{config("1/24h", 500), config("1/h", 500), config("1/7h", 800), {}}
		configs[3] = ratelimit.Config{Shadow: true, Limit: configs[0].Limit, Burst: 500}
		l := ratelimit.New(configs[0], maphash.MakeSeed())
		var within atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 2000 {
					if d := l.Allow(0, key, 1); d.Allowed && !d.Over {
						within.Add(1)
					}
				}
			})
		}
		for i := range 200 {
			l.Reconfigure(0, configs[i%len(configs)])
		}
		wg.Wait()
		// each change of units may round a bucket down by less than a unit
		if got := within.Load(); got > 500 || got < 499 {
			t.Errorf("%d tokens from a bucket of 500", got)
		}
	})
}
