package hedge_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/hedge"
)

func TestDefaults(t *testing.T) {
	if off := (hedge.Config{}).WithDefaults(); off != (hedge.Config{}) {
		t.Errorf("defaults of a policy that is off = %+v", off)
	}
	want := hedge.Config{Quantile: 0.9, MinDelay: time.Millisecond, MaxHedges: 1}
	got := hedge.Config{Quantile: 0.9}.WithDefaults()
	if got != want {
		t.Errorf("defaults = %+v, want %+v", got, want)
	}
	if again := got.WithDefaults(); again != got {
		t.Errorf("defaults of the defaults = %+v, want no change", again)
	}
}

func TestEnabledNeedsADelayOrAQuantile(t *testing.T) {
	for _, tt := range []struct {
		config hedge.Config
		want   bool
	}{
		{hedge.Config{}, false},
		{hedge.Config{MinDelay: time.Second, MaxHedges: 2}, false},
		{hedge.Config{Delay: time.Second}, true},
		{hedge.Config{Quantile: 0.9}, true},
		{hedge.Config{Delay: time.Second, Quantile: 0.9, Disabled: true}, false},
	} {
		if got := tt.config.Enabled(); got != tt.want {
			t.Errorf("%+v: enabled = %v, want %v", tt.config, got, tt.want)
		}
	}
}

func TestValuesOutOfRangeMoveToTheNearestEnd(t *testing.T) {
	for _, tt := range []struct {
		config hedge.Config
		delay  time.Duration
		hedges int
	}{
		{hedge.Config{Delay: 1, MaxHedges: -1}, time.Millisecond, 1},
		{hedge.Config{Delay: 1000 * time.Hour, MaxHedges: 1000}, time.Hour, 3},
	} {
		p := hedge.New(tt.config)
		if d, _ := p.Delay(0); d != tt.delay || p.MaxHedges() != tt.hedges {
			t.Errorf("%+v: delay %v, %d hedges; want %v, %d", tt.config, d, p.MaxHedges(), tt.delay, tt.hedges)
		}
	}
	// 2 ms for 40 %, 10 ms for most of the rest, 1 s for 1 in 200.
	learned := func(c hedge.Config) time.Duration {
		p := hedge.New(c)
		now := feed(p, 0, 400, time.Second, 2*time.Millisecond)
		now = feed(p, now, 595, time.Second, 10*time.Millisecond)
		now = feed(p, now, 5, time.Second, time.Second)
		d, _ := p.Delay(now + time.Second)
		return d
	}
	if d := learned(hedge.Config{Quantile: 0.01}); !near(d, 10*time.Millisecond) {
		t.Errorf("quantile 0.01: delay = %v, want that of 0.5", d)
	}
	if d := learned(hedge.Config{Quantile: 7}); !near(d, time.Second) {
		t.Errorf("quantile 7: delay = %v, want that of 0.999", d)
	}
	if d := learned(hedge.Config{Quantile: 0.9, MinDelay: 1000 * time.Hour}); d != time.Hour {
		t.Errorf("floor of 1000h: delay = %v, want 1h", d)
	}
}
