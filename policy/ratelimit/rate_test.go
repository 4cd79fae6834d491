package ratelimit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

func TestRateText(t *testing.T) {
	for _, tt := range []struct {
		text   string
		tokens float64
		per    time.Duration
		form   string
	}{
		{"1000/s", 1000, time.Second, "1000/s"},
		{"50/m", 50, time.Minute, "50/m"},
		{" 5 / 1h ", 5, time.Hour, "5/h"},
		{"100/10s", 100, 10 * time.Second, "100/10s"},
		{"0/s", 0, time.Second, "0/s"},
		{"0.5/ms", 0.5, time.Millisecond, "0.5/1ms"},
		{"1e3/1h30m", 1000, 90 * time.Minute, "1000/1h30m"},
		{"1/24h", 1, 24 * time.Hour, "1/24h"},
		{"1/.5s", 1, 500 * time.Millisecond, "1/500ms"},
		{"1000000000/s", 1e9, time.Second, "1000000000/s"},
		{"0.00001/24h", 0.00001, 24 * time.Hour, "0.00001/24h"},
		{"", 0, 0, ""},
	} {
		r := ratelimit.Rate{Tokens: 7, Per: 7}
		if err := r.UnmarshalText([]byte(tt.text)); err != nil || r.Tokens != tt.tokens || r.Per != tt.per ||
			r.String() != tt.form {
			t.Errorf("%q: %+v, %q, %v", tt.text, r, r, err)
		}
	}
}

func TestTextThatIsNoRate(t *testing.T) {
	for text, want := range map[string]string{
		"1000":                  "is not a rate; write for example 1000/s",
		"/s":                    "is not a rate",
		"5/":                    "is not a rate",
		"5/day":                 "is not a rate",
		"5/s/s":                 "is not a rate",
		"x/s":                   "is not a rate",
		"5/-1s":                 "is out of range",
		"-1/s":                  "is out of range; allowed: 0 to 1000000000 in 1ms to 24h",
		"NaN/s":                 "is out of range",
		"inf/s":                 "is out of range",
		"2000000000/s":          "is out of range",
		"5/25h":                 "is out of range",
		"5/0s":                  "is out of range",
		"5/999us":               "is out of range",
		"1000000000/1ms":        "is out of range; allowed: 0, or from 0.00001 in 24h to 1000000000 in 1s",
		"0.000001/s":            "is out of range; allowed: 0, or from 0.00001 in 24h",
		strings.Repeat("9", 99): `"... is not a rate`,
	} {
		r := ratelimit.Rate{Tokens: 7, Per: 7}
		if err := r.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) ||
			len(err.Error()) > 200 || r.Tokens != 7 {
			t.Errorf("%q: %v, %+v", text, err, r)
		}
	}
}

func FuzzRate(f *testing.F) {
	for _, text := range append([]string{"", "x", "1/2/3", "1e-9/s", "5/999ns", "0x1p4/s"}, limits...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r, again ratelimit.Rate
		if r.UnmarshalText([]byte(text)) != nil {
			return
		}
		form, _ := r.MarshalText()
		if err := again.UnmarshalText(form); err != nil || again != r {
			t.Fatalf("%q is %+v, whose text %q is %+v, %v", text, r, form, again, err)
		}
		c := ratelimit.Config{Limit: r}
		if c.WithDefaults().Limit != r {
			t.Fatalf("%q is moved to %v", text, c.WithDefaults().Limit)
		}
	})
}

func TestDefaults(t *testing.T) {
	per := func(tokens float64, per time.Duration) ratelimit.Rate {
		return ratelimit.Rate{Tokens: tokens, Per: per}
	}
	for _, tt := range []struct{ c, want ratelimit.Config }{
		{ratelimit.Config{}, ratelimit.Config{}},
		{ratelimit.Config{Burst: 5}, ratelimit.Config{Burst: 5}},
		{ratelimit.Config{Limit: per(50, time.Second)}, ratelimit.Config{
			Limit: per(50, time.Second), Burst: 50, MaxKeys: 1_000_000,
		}},
		{ratelimit.Config{Limit: per(50, time.Minute)}, ratelimit.Config{
			Limit: per(50, time.Minute), Burst: 1, MaxKeys: 1_000_000,
		}},
		{ratelimit.Config{Limit: per(0, time.Second)}, ratelimit.Config{
			Limit: per(0, time.Second), Burst: 1, MaxKeys: 1_000_000,
		}},
		{ratelimit.Config{Limit: per(-5, -5), Burst: -5, MaxKeys: -5}, ratelimit.Config{
			Limit: per(0, time.Millisecond), Burst: 1, MaxKeys: 1,
		}},
		{ratelimit.Config{Limit: per(math.NaN(), time.Second)}, ratelimit.Config{
			Limit: per(0, time.Second), Burst: 1, MaxKeys: 1_000_000,
		}},
		{ratelimit.Config{Limit: per(math.Inf(1), 99*time.Hour), Burst: math.MaxInt, MaxKeys: math.MaxInt},
			ratelimit.Config{Limit: per(1e9, 24*time.Hour), Burst: 1_000_000_000, MaxKeys: 100_000_000}},
	} {
		got := tt.c.WithDefaults()
		if got != tt.want || got.WithDefaults() != got {
			t.Errorf("%+v:\n got %+v\nwant %+v", tt.c, got, tt.want)
		}
		if on := got.Enabled(); on != !tt.c.Limit.IsZero() {
			t.Errorf("%+v: enabled %v", tt.c, on)
		}
	}
}
