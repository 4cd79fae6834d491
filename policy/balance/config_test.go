package balance_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

func TestDefaults(t *testing.T) {
	full := balance.Config{
		ConsecutiveFailures: 5, BaseEjectionTime: 10 * s, MaxEjectionTime: 5 * time.Minute, MaxEjectionShare: 0.5,
		PanicThreshold: 0.5,
	}
	low := balance.Config{ConsecutiveFailures: 1, BaseEjectionTime: 10 * time.Millisecond,
		MaxEjectionTime: 10 * time.Millisecond, MaxEjectionShare: 0.001, PanicThreshold: 0.001}
	high := balance.Config{ConsecutiveFailures: 1_000_000, BaseEjectionTime: time.Hour, MaxEjectionTime: 24 * time.Hour,
		MaxEjectionShare: 1, PanicThreshold: 1}
	with := func(c balance.Config, change func(*balance.Config)) balance.Config {
		change(&c)
		return c
	}
	for _, tt := range []struct {
		name     string
		in, want balance.Config
	}{
		{"zero is off", balance.Config{}, balance.Config{}},
		{"one field switches it on", balance.Config{ConsecutiveFailures: 5}, full},
		{"any field does", balance.Config{MaxEjectionTime: 5 * time.Minute}, full},
		{"disabled", balance.Config{Disabled: true}, with(full, func(c *balance.Config) { c.Disabled = true })},
		{"too low", balance.Config{
			ConsecutiveFailures: -1, BaseEjectionTime: -1, MaxEjectionTime: math.MinInt64, MaxEjectionShare: math.Inf(-1),
			PanicThreshold: math.Inf(-1),
		}, low},
		{"too high", balance.Config{ConsecutiveFailures: math.MaxInt, BaseEjectionTime: math.MaxInt64,
			MaxEjectionTime: math.MaxInt64, MaxEjectionShare: 1.1, PanicThreshold: 7}, high},
		{"not a number", with(full, func(c *balance.Config) {
			c.MaxEjectionShare = math.NaN()
		}), with(full, func(c *balance.Config) { c.MaxEjectionShare = 0.001 })},
		{"base above the default maximum", balance.Config{BaseEjectionTime: time.Hour},
			with(full, func(c *balance.Config) { c.BaseEjectionTime, c.MaxEjectionTime = time.Hour, time.Hour })},
		{"base above the maximum", balance.Config{BaseEjectionTime: time.Minute, MaxEjectionTime: s},
			with(full, func(c *balance.Config) { c.BaseEjectionTime, c.MaxEjectionTime = time.Minute, time.Minute })},
	} {
		got := tt.in.WithDefaults()
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if twice := got.WithDefaults(); twice != got {
			t.Errorf("%s: twice %+v, once %+v", tt.name, twice, got)
		}
	}
}

func TestEnabled(t *testing.T) {
	for _, tt := range []struct {
		c    balance.Config
		want bool
	}{
		{balance.Config{}, false},
		{balance.Config{Disabled: true}, false},
		{balance.Config{Disabled: true, ConsecutiveFailures: 5}, false},
		{balance.Config{ConsecutiveFailures: 5}, true},
		{balance.Config{MaxEjectionShare: 0.1}, true},
	} {
		if got := tt.c.Enabled(); got != tt.want || tt.c.WithDefaults().Enabled() != tt.want {
			t.Errorf("%+v: enabled %v, with defaults %v", tt.c, got, tt.c.WithDefaults().Enabled())
		}
	}
}

func TestAnyConfigWorks(t *testing.T) {
	for _, c := range []balance.Config{
		{ConsecutiveFailures: -7, BaseEjectionTime: -7, MaxEjectionTime: -7, MaxEjectionShare: -7},
		{ConsecutiveFailures: 1, BaseEjectionTime: math.MaxInt64, MaxEjectionTime: math.MaxInt64,
			MaxEjectionShare: math.Inf(1)},
		{BaseEjectionTime: 10 * time.Millisecond, MaxEjectionTime: 24 * time.Hour, MaxEjectionShare: math.NaN()},
	} {
		b := balance.New(c, 3)
		for n := range uint64(1000) {
			now := time.Duration(n) * s
			i := b.Pick(now, n*0x9e3779b97f4a7c15, -1)
			b.Done(i, now, balance.Failure)
			if e := b.Endpoint(i, now); e.Ejected &&
				(e.EjectedUntil < now+10*time.Millisecond || e.EjectedUntil > now+24*time.Hour) {
				t.Fatalf("%+v: out at %v until %v", c, now, e.EjectedUntil)
			}
		}
		if got := out(b, 3, 1000*s); got > 2 {
			t.Errorf("%+v: %d of 3 out", c, got)
		}
	}
}
