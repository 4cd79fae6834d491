package throttle_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/throttle"
)

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		c, want throttle.Config
		on      bool
	}{
		{throttle.Config{}, throttle.Config{}, false},
		{throttle.Config{Window: time.Second}, throttle.Config{Window: time.Second}, false},
		{throttle.Config{K: 2}, throttle.Config{K: 2, Window: 30 * time.Second, MaxRejection: 0.9, MinimumNumberOfCalls: 20},
			true},
		{throttle.Config{K: 1, Window: 1, MaxRejection: -1, MinimumNumberOfCalls: -1},
			throttle.Config{K: 1.01, Window: time.Second, MaxRejection: 0.01, MinimumNumberOfCalls: 1}, true},
		{throttle.Config{K: math.Inf(1), Window: time.Hour, MaxRejection: 1, MinimumNumberOfCalls: math.MaxInt},
			throttle.Config{K: 100, Window: 10 * time.Minute, MaxRejection: 0.99, MinimumNumberOfCalls: 1_000_000}, true},
		{throttle.Config{K: 2, MaxRejection: math.NaN(), Disabled: true},
			throttle.Config{K: 2, Window: 30 * time.Second, MaxRejection: 0.9, MinimumNumberOfCalls: 20, Disabled: true}, false},
	} {
		got := tt.c.WithDefaults()
		if got != tt.want || got.WithDefaults() != got || got.Enabled() != tt.on || tt.c.Enabled() != tt.on {
			t.Errorf("%+v:\n got %+v\nwant %+v", tt.c, got, tt.want)
		}
	}
}

func TestResultsHaveNames(t *testing.T) {
	for r, want := range map[throttle.Result]string{
		throttle.Accepted: "accepted", throttle.Rejected: "rejected", throttle.Neutral: "neutral", 9: "unknown",
	} {
		if got := r.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(r), got, want)
		}
	}
}
