package breaker_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

func TestZeroConfigStaysOff(t *testing.T) {
	c := breaker.Config{}.WithDefaults()
	if c.Enabled() || c.SlowCallDurationThreshold != 0 || c.RampUpFrom != 0 {
		t.Errorf("defaults switched something on: %+v", c)
	}
	want := breaker.Config{
		Mode: breaker.Enforce, MinimumNumberOfCalls: 20, SlidingWindow: breaker.Window{Duration: 10 * s},
		WaitDurationInOpenState: s, WaitDurationMultiplier: 2, MaxWaitDurationInOpenState: 10 * s, WaitDurationJitter: 0.25,
		PermittedCallsInHalfOpen: 3, SuccessThreshold: 3, HalfOpenPermitLease: 10 * s,
	}
	if c != want {
		t.Errorf("defaults\n%+v, want\n%+v", c, want)
	}
}

func TestDefaultsOfOptionalParts(t *testing.T) {
	c := breaker.Config{SlowCallRateThreshold: 0.5, RampUp: s}.WithDefaults()
	if c.SlowCallDurationThreshold != s || c.RampUpFrom != 0.1 {
		t.Errorf("%+v", c)
	}
}

func TestEnabled(t *testing.T) {
	for _, tt := range []struct {
		c    breaker.Config
		want bool
	}{
		{breaker.Config{}, false},
		{breaker.Config{Mode: breaker.Shadow, RampUp: s}, false},
		{breaker.Config{FailureThreshold: 1}, true},
		{breaker.Config{FailureRateThreshold: 0.1}, true},
		{breaker.Config{SlowCallRateThreshold: 0.1}, true},
		{breaker.Config{Mode: breaker.ForcedOpen}, true},
		{breaker.Config{Mode: breaker.ForcedOpen, FailureThreshold: 1, Disabled: true}, false},
	} {
		if got := tt.c.Enabled(); got != tt.want {
			t.Errorf("%+v: enabled %v", tt.c, got)
		}
	}
}

func TestValuesOutsideTheirRangeMoveToTheNearestEnd(t *testing.T) {
	low := breaker.Config{
		Mode:                       "loud",
		FailureThreshold:           -1,
		FailureRateThreshold:       math.NaN(),
		SlowCallRateThreshold:      -1,
		SlowCallDurationThreshold:  -1,
		MinimumNumberOfCalls:       -1,
		SlidingWindow:              breaker.Window{Duration: -1},
		WaitDurationInOpenState:    -1,
		WaitDurationMultiplier:     0.1,
		MaxWaitDurationInOpenState: -1,
		WaitDurationJitter:         -1,
		PermittedCallsInHalfOpen:   -1,
		SuccessThreshold:           -1,
		HalfOpenPermitLease:        -1,
		RampUp:                     -1,
		RampUpFrom:                 -1,
	}
	if got, want := low.WithDefaults(), (breaker.Config{
		Mode:                       breaker.Enforce,
		SlowCallDurationThreshold:  -1,
		MinimumNumberOfCalls:       1,
		SlidingWindow:              breaker.Window{Duration: 10 * ms},
		WaitDurationInOpenState:    ms,
		WaitDurationMultiplier:     1,
		MaxWaitDurationInOpenState: ms,
		WaitDurationJitter:         0.001,
		PermittedCallsInHalfOpen:   1,
		SuccessThreshold:           1,
		HalfOpenPermitLease:        ms,
		RampUpFrom:                 -1,
	}); got != want {
		t.Errorf("low\n%+v, want\n%+v", got, want)
	}
	const day = 24 * time.Hour
	high := breaker.Config{
		FailureThreshold:           math.MaxInt,
		FailureRateThreshold:       math.Inf(1),
		SlowCallRateThreshold:      7,
		SlowCallDurationThreshold:  math.MaxInt64,
		MinimumNumberOfCalls:       math.MaxInt,
		SlidingWindow:              breaker.Window{Calls: math.MaxInt, Duration: 1},
		WaitDurationInOpenState:    math.MaxInt64,
		WaitDurationMultiplier:     math.Inf(1),
		MaxWaitDurationInOpenState: math.MaxInt64,
		WaitDurationJitter:         9,
		PermittedCallsInHalfOpen:   math.MaxInt,
		SuccessThreshold:           math.MaxInt,
		HalfOpenPermitLease:        math.MaxInt64,
		RampUp:                     math.MaxInt64,
		RampUpFrom:                 9,
	}
	if got, want := high.WithDefaults(), (breaker.Config{
		Mode:                       breaker.Enforce,
		FailureThreshold:           1_000_000,
		FailureRateThreshold:       1,
		SlowCallRateThreshold:      1,
		SlowCallDurationThreshold:  day,
		MinimumNumberOfCalls:       1_000_000,
		SlidingWindow:              breaker.Window{Calls: 1_000_000},
		WaitDurationInOpenState:    time.Hour,
		WaitDurationMultiplier:     10,
		MaxWaitDurationInOpenState: day,
		WaitDurationJitter:         1,
		PermittedCallsInHalfOpen:   1000,
		SuccessThreshold:           1000,
		HalfOpenPermitLease:        time.Hour,
		RampUp:                     time.Hour,
		RampUpFrom:                 1,
	}); got != want {
		t.Errorf("high\n%+v, want\n%+v", got, want)
	}
	optional := low
	optional.SlowCallRateThreshold, optional.RampUp = math.SmallestNonzeroFloat64, 1
	for _, c := range []breaker.Config{low, high, optional} {
		once := c.WithDefaults()
		if twice := once.WithDefaults(); twice != once {
			t.Errorf("WithDefaults twice\n%+v, once\n%+v", twice, once)
		}
	}
}

func TestWindowText(t *testing.T) {
	for _, tt := range []struct {
		text, want, err string
	}{
		{"100", "100", ""},
		{"1000000", "1000000", ""},
		{"10s", "10s", ""},
		{"90s", "1m30s", ""},
		{"10ms", "10ms", ""},
		{"", "", ""},
		{"0", "", "window of 0 calls: allowed are 1 to 1000000 calls"},
		{"-5", "", "window of -5 calls: allowed are 1 to 1000000 calls"},
		{"1000001", "", "window of 1000001 calls: allowed are 1 to 1000000 calls"},
		{"9ms", "", "window of 9ms: allowed are 10ms to 24h0m0s"},
		{"-10s", "", "window of -10s: allowed are 10ms to 24h0m0s"},
		{"25h", "", "window of 25h0m0s: allowed are 10ms to 24h0m0s"},
		{"ten", "", `window "ten": write 100 for the last 100 calls or 10s for the last ten seconds`},
		{"10 s", "", `window "10 s": write 100 for the last 100 calls or 10s for the last ten seconds`},
		{"99999999999999999999", "", `window "99999999999999999999": write 100 for the last 100 calls or 10s for the last ` +
			`ten seconds`},
	} {
		was := breaker.Window{Calls: 7}
		w := was
		err := w.UnmarshalText([]byte(tt.text))
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err || w != was {
				t.Errorf("%q: %v, %+v, want error %q and no change", tt.text, err, w, tt.err)
			}
		case err != nil || w.String() != tt.want:
			t.Errorf("%q: %q, %v, want %q", tt.text, w, err, tt.want)
		}
	}
}

func FuzzWindowText(f *testing.F) {
	for _, s := range []string{"100", "10s", "", "0", "1h30m", "+5", "1e3", "10ms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var w, again breaker.Window
		if w.UnmarshalText([]byte(text)) != nil {
			return
		}
		out, _ := w.MarshalText()
		if err := again.UnmarshalText(out); err != nil || again != w {
			t.Errorf("%q became %+v, %q, then %+v, %v", text, w, out, again, err)
		}
		if d := (breaker.Config{SlidingWindow: w}).WithDefaults().SlidingWindow; w != (breaker.Window{}) && d != w {
			t.Errorf("%q: accepted as %+v but used as %+v", text, w, d)
		}
	})
}
