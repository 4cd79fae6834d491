package pacing_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		c, want pacing.Config
		on      bool
	}{
		{pacing.Config{}, pacing.Config{}, false},
		{pacing.Config{Burst: 7, RampUp: s}, pacing.Config{Burst: 7, RampUp: s}, false},
		{pacing.Config{PerSecond: 10}, pacing.Config{PerSecond: 10, Burst: 1, Jitter: 0.5, MaxWait: s}, true},
		{pacing.Config{PerSecond: 10, RampUp: s}, pacing.Config{
			PerSecond: 10, Burst: 1, Jitter: 0.5, RampUp: s, RampUpFrom: 0.1, MaxWait: s,
		}, true},
		{pacing.Config{PerSecond: 1e-9, Burst: -1, Jitter: -1, RampUp: -1, RampUpFrom: -1, MaxWait: -1},
			pacing.Config{PerSecond: 0.01, Burst: 1, Jitter: 0.001, RampUpFrom: -1, MaxWait: ms}, true},
		{pacing.Config{PerSecond: math.Inf(1), Burst: math.MaxInt, Jitter: math.Inf(1), RampUp: never, RampUpFrom: 2,
			MaxWait: never},
			pacing.Config{PerSecond: 1e6, Burst: 1_000_000, Jitter: 1, RampUp: time.Hour, RampUpFrom: 1, MaxWait: time.Hour},
			true},
		{pacing.Config{PerSecond: 5, Jitter: math.NaN(), RampUp: 1, RampUpFrom: math.NaN(), Disabled: true},
			pacing.Config{PerSecond: 5, Burst: 1, Jitter: 0.5, RampUp: 1, RampUpFrom: 0.1, MaxWait: s, Disabled: true}, false},
		{pacing.Config{PerSecond: math.NaN(), Burst: 2}, pacing.Config{Burst: 2}, false},
		{pacing.Config{PerSecond: -1}, pacing.Config{}, false},
	} {
		got := tt.c.WithDefaults()
		if got != tt.want || got.WithDefaults() != got || got.Enabled() != tt.on || tt.c.Enabled() != tt.on {
			t.Errorf("%+v:\n got %+v\nwant %+v", tt.c, got, tt.want)
		}
	}
}
