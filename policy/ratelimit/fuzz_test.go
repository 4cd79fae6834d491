package ratelimit_test

import (
	"hash/maphash"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

var limits = []string{
	"1000/s", "50/m", "100/10s", "3/s", "7/m", "1/24h", "0.1/s", "33.3/s", "0.00001/24h", "700/s", "800000/s", "1/3h17m",
	"1000000/s", "1000000000/s", "999999937/s", "123456789/24h", "1/1ms", "1000000/1ms", "2.5/7ms",
}

// exact is a token bucket in rational numbers.
type exact struct {
	rate, burst, tokens *big.Rat // per nanosecond; what it holds, below 0 while reservations are owed
	last                time.Duration
	step                *big.Rat // what the real one may be off by: a unit, as documented
}

func newExact(c ratelimit.Config) *exact {
	tokens, _ := new(big.Rat).SetString(strconv.FormatFloat(c.Limit.Tokens, 'f', -1, 64))
	m := &exact{burst: new(big.Rat).SetInt64(int64(c.Burst))}
	m.rate = tokens.Quo(tokens, new(big.Rat).SetInt64(int64(c.Limit.Per)))
	m.tokens = new(big.Rat).Set(m.burst)
	m.step = new(big.Rat).Mul(m.rate, big.NewRat(10, 1))
	if least := new(big.Rat).Quo(m.burst, big.NewRat(1e17, 1)); m.step.Cmp(least) < 0 {
		m.step = least
	}
	return m
}

func (m *exact) advance(now time.Duration) {
	earned := new(big.Rat).SetInt64(int64(now - m.last))
	m.tokens.Add(m.tokens, earned.Mul(earned, m.rate))
	if m.last = now; m.tokens.Cmp(m.burst) > 0 {
		m.tokens.Set(m.burst)
	}
}

// spend holds the answer to a request for cost against what the bucket has after wait, and takes what was granted.
func (m *exact) spend(t *testing.T, cost float64, wait time.Duration, granted bool, d ratelimit.Decision) {
	t.Helper()
	c := new(big.Rat).SetFloat64(cost)
	then := new(big.Rat).Mul(m.rate, new(big.Rat).SetInt64(int64(wait)))
	lack := new(big.Rat).Sub(c, then.Add(then, m.tokens))
	if granted && lack.Cmp(m.step) > 0 {
		t.Fatalf("granted %v with %s tokens: %+v", cost, then.FloatString(20), d)
	}
	if !granted && lack.Cmp(new(big.Rat).Neg(m.step)) < 0 {
		t.Fatalf("refused %v with %s tokens: %+v", cost, then.FloatString(20), d)
	}
	if granted {
		m.tokens.Sub(m.tokens, c)
	}
	for _, side := range []int{-1, 1} { // what is left is what the model has, but for a unit, in whole tokens
		left := new(big.Rat).Add(m.tokens, new(big.Rat).Mul(m.step, big.NewRat(int64(side), 1)))
		whole := new(big.Int).Div(left.Num(), left.Denom())
		if n := max(whole.Int64(), 0); side < 0 && d.Remaining < n || side > 0 && d.Remaining > n {
			t.Fatalf("%d remain, the model has %s: %+v", d.Remaining, m.tokens.FloatString(20), d)
		}
	}
}

// FuzzExact compares a bucket with rational numbers over any number of requests. Two bytes are one operation.
func FuzzExact(f *testing.F) {
	for i := range limits {
		f.Add(byte(i), uint32(1+i*i*i*i), []byte{
			0, 3, 1, 200, 0, 1, 2, 9, 3, 77, 4, 5, 0, 255, 5, 2, 0, 4, 1, 255, 1, 255, 6, 40, 0, 9,
		})
	}
	f.Fuzz(func(t *testing.T, limit byte, burst uint32, ops []byte) {
		c := config(limits[int(limit)%len(limits)], int(burst%1e9)+1)
		l, keyed, m := ratelimit.New(c, maphash.MakeSeed()), ratelimit.New(c, maphash.MakeSeed()), newExact(c)
		now := time.Duration(0)
		for ; len(ops) >= 2 && now < 1<<60; ops = ops[2:] {
			n := float64(ops[1])
			cost, maxWait := n, time.Duration(0)
			switch ops[0] % 7 {
			case 0:
				cost = min(n+1, float64(c.Burst))
			case 1:
				now += time.Duration(n * n * n * n * 1000)
			case 2:
				cost = float64(c.Burst) / 2
				if c.Limit.PerSecond() > 1e6 {
					cost = float64(c.Burst / 2)
				}
			case 3:
				maxWait = time.Duration(n * n * n * 1e6)
			case 4:
				now += time.Duration(n)
			case 5:
				cost = float64(c.Burst) * n / 2
			case 6: // wait as long as told
				d := l.Allow(now, "", float64(c.Burst))
				m.advance(now)
				m.spend(t, float64(c.Burst), 0, d.Allowed, d)
				keyed.Allow(now, "k", float64(c.Burst))
				if d.Allowed || d.RetryAfter > 1<<60 {
					continue
				}
				if e := l.Allow(now+d.RetryAfter-1, "", float64(c.Burst)); e.Allowed {
					t.Fatalf("allowed a nanosecond early: %+v, %+v", d, e)
				}
				now, cost = now+d.RetryAfter, float64(c.Burst)
				if e := keyed.Allow(now, "k", 0); e.Remaining != int64(c.Burst) {
					t.Fatalf("not full in time: %+v, %+v", d, e)
				}
			}
			d, wait := l.Reserve(now, "", cost, maxWait)
			if e, w := keyed.Reserve(now, "k", cost, maxWait); e != d || w != wait {
				t.Fatalf("a key gets %+v, %v, the empty key %+v, %v", e, w, d, wait)
			}
			m.advance(now)
			if d.RetryAfter != never {
				m.spend(t, cost, max(wait, min(maxWait, d.RetryAfter-1)), d.Allowed, d)
			} else if d.Allowed || cost <= float64(c.Burst) && d.Reset != never {
				t.Fatalf("cost %v: %+v", cost, d)
			}
		}
	})
}

// FuzzKeys compares a small table of keys, which fills, sheds and moves its buckets, with one limiter per key.
func FuzzKeys(f *testing.F) {
	f.Add(uint16(3), []byte{1, 2, 3, 4, 5, 6, 1, 2, 3, 200, 1, 2, 255, 3, 4, 5, 6, 7, 8, 9, 250, 1, 2})
	f.Add(uint16(200), []byte{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 255, 0, 10, 20, 30, 199, 0, 10, 254, 7})
	f.Fuzz(func(t *testing.T, maxKeys uint16, ops []byte) {
		c := config("1/s", 3)
		c.MaxKeys = int(maxKeys%300) + 1
		l, model := ratelimit.New(c, maphash.MakeSeed()), map[string]*ratelimit.Limiter{}
		now := time.Duration(0)
		for i, op := range ops {
			if op >= 200 {
				now += time.Duration(op-199) * 50 * time.Millisecond
				continue
			}
			for j := range 1 + i%5*7 {
				key := strconv.Itoa(int(op) + j)
				before := l.State().Shared
				got := l.Allow(now, key, 1)
				if l.State().Shared != before {
					continue
				}
				if model[key] == nil {
					model[key] = ratelimit.New(c, maphash.MakeSeed())
				}
				if want := model[key].Allow(now, "", 1); got != want {
					t.Fatalf("operation %d, key %s: %+v, want %+v", i, key, got, want)
				}
			}
			if got := l.State().Keys; got < 0 || got > c.MaxKeys {
				t.Fatalf("operation %d: %d keys of %d", i, got, c.MaxKeys)
			}
		}
	})
}

// FuzzAnyClock lets the clock jump and the limit change, with one key or two. A key gets no more than the largest burst
// and what the fastest rate brings between the first and the last time; no decision is nonsense.
func FuzzAnyClock(f *testing.F) {
	f.Add([]byte{0, 3, 1, 200, 0, 1, 2, 9, 3, 77, 4, 5, 0, 255, 5, 2, 0, 4, 1, 255, 1, 255, 3, 1, 0, 9}, false)
	f.Add([]byte{0, 9, 3, 1, 0, 9, 3, 2, 0, 9, 3, 3, 3, 0, 0, 9, 2, 100, 0, 9, 1, 100, 0, 9}, true)
	f.Fuzz(func(t *testing.T, ops []byte, two bool) {
		configs := []ratelimit.Config{
			config("3/s", 7), config("1/s", 9), config("2/m", 1), config("0/s", 4), {}, config("50/17s", 9),
		}
		l, at := ratelimit.New(configs[0], maphash.MakeSeed()), 0
		key, admitted := "", 0
		var now, first, latest time.Duration
		for ; len(ops) >= 2; ops = ops[2:] {
			n := time.Duration(ops[1])
			switch ops[0] % 5 {
			case 0:
				for range n {
					d := l.Allow(now, key, 1)
					if d.Remaining < 0 || d.Remaining > d.Limit || d.Reset < 0 || d.RetryAfter < 0 || d.Over == d.Allowed {
						t.Fatalf("%+v", d)
					}
					if d.Allowed && d.Limit > 0 {
						admitted++
					}
				}
			case 1:
				now += n * 10 * time.Millisecond
			case 2:
				now -= n * 10 * time.Millisecond
			case 3:
				at = int(n) % len(configs)
				l.Reconfigure(now, configs[at])
			case 4:
				if two {
					key = "a" // has another 9 at most
				}
			}
			first, latest = min(first, now), max(latest, now)
			most := 9 + 3*(latest-first).Seconds()
			if two {
				most *= 2
			}
			if float64(admitted) > most+1e-6 {
				t.Fatalf("%d admitted in %v", admitted, latest-first)
			}
		}
	})
}
