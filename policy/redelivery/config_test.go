package redelivery_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

func TestDelaysComeFromTiersOrFromDelayAndMultiplier(t *testing.T) {
	for name, row := range map[string]struct {
		c    redelivery.Config
		want []time.Duration
	}{
		"the defaults of delay": {redelivery.Config{Delay: s30}, []time.Duration{s30, m5, m30}},
		"tiers": {
			redelivery.Config{Tiers: []time.Duration{time.Second, time.Hour}}, []time.Duration{time.Second, time.Hour},
		},
		"capped": {
			redelivery.Config{Delay: time.Second, Multiplier: 3, MaxDelay: 5 * time.Second, Attempts: 5}, []time.Duration{
				time.Second, 3 * time.Second, 5 * time.Second, 5 * time.Second,
			},
		},
		"a delay above 30m": {redelivery.Config{Delay: time.Hour, Attempts: 3}, []time.Duration{time.Hour, time.Hour}},
		"whole milliseconds": {
			redelivery.Config{Delay: time.Second, Multiplier: 1.0001, Attempts: 3, MaxDelay: 2 * time.Second},
			[]time.Duration{time.Second, time.Second},
		},
		"too large for 64 bits": {
			redelivery.Config{Delay: 24 * time.Hour, Multiplier: 100, Attempts: 100, MaxDelay: 24 * time.Hour},
			slices.Repeat([]time.Duration{24 * time.Hour}, 99),
		},
		"out of range": {redelivery.Config{Tiers: []time.Duration{0, 1000 * time.Hour}}, []time.Duration{
			100 * time.Millisecond, 24 * time.Hour,
		}},
		"not a number": {redelivery.Config{Delay: s30, Multiplier: math.NaN()}, []time.Duration{s30, m5, m30}},
		"off":          {redelivery.Config{}, nil},
	} {
		if got := row.c.Delays(); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestEqualDelaysShareARetryTopic(t *testing.T) {
	c := redelivery.Config{Delay: time.Second, MaxDelay: 10 * time.Second, Attempts: 5}
	want := []redelivery.Hop{{Delay: time.Second, Deliveries: 1}, {Delay: 10 * time.Second, Deliveries: 3}}
	if got := c.Hops(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if p := redelivery.NewPlan(c); !slices.Equal(p.Hops(), want) || p.Deliveries() != 5 {
		t.Errorf("%v, %d deliveries", p.Hops(), p.Deliveries())
	}
}

func TestDefaultsAreFilledInOnceAndOnlyWhereThereIsSomethingToDo(t *testing.T) {
	if c := (redelivery.Config{Concurrency: 4}).WithDefaults(); !reflect.DeepEqual(c, redelivery.Config{Concurrency: 4}) {
		t.Errorf("a Config that is off has become %+v", c)
	}
	for _, c := range []redelivery.Config{
		three, {Delay: s30}, {Delay: s30, Naming: redelivery.NamingSpring, Drain: redelivery.Drain{
			Factor: math.NaN(), MaxRate: -1,
		}}, {Disabled: true, Delay: -5, Tiers: []time.Duration{1}},
	} {
		once := c.WithDefaults()
		if twice := once.WithDefaults(); !reflect.DeepEqual(once, twice) {
			t.Errorf("%+v has become %+v", once, twice)
		}
		if once.Window != 10_000 || once.Concurrency != 1 || once.HandlerTimeout != 5*time.Minute ||
			once.Drain.Factor != 1.2 || once.Drain.MaxRate != 0 || once.Order != redelivery.Unordered {
			t.Errorf("defaults are missing: %+v", once)
		}
	}
	spring := redelivery.Config{Delay: s30, Naming: redelivery.NamingSpring}.WithDefaults()
	if spring.DLTSuffix != "-dlt" || spring.RetrySuffix != "-retry" {
		t.Errorf("spring: %+v", spring)
	}
}

func TestEnabled(t *testing.T) {
	for want, list := range map[bool][]redelivery.Config{
		true:  {three, {Delay: time.Second}},
		false: {{}, {Disabled: true, Delay: time.Second}, {Concurrency: 5}},
	} {
		for _, c := range list {
			if c.Enabled() != want {
				t.Errorf("%+v: %v", c, !want)
			}
		}
	}
}

func TestCloneSharesNoLists(t *testing.T) {
	c := redelivery.Config{Tiers: []time.Duration{1}, RetryErrors: []string{"a"}, NeverRetryErrors: []string{"b"}}
	d := c.Clone()
	d.Tiers[0], d.RetryErrors[0], d.NeverRetryErrors[0] = 2, "x", "x"
	if c.Tiers[0] != 1 || c.RetryErrors[0] != "a" || c.NeverRetryErrors[0] != "b" {
		t.Errorf("%+v", c)
	}
}
