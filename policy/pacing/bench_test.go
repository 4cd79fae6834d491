package pacing_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

func BenchmarkTurn(b *testing.B) {
	for _, row := range []struct {
		name string
		c    pacing.Config
		step time.Duration
	}{
		{"off", pacing.Config{}, s},
		{"given", pacing.Config{PerSecond: 10}, s},
		{"refused", pacing.Config{PerSecond: 0.01}, 0},
		{"ramping up", pacing.Config{PerSecond: 10, RampUp: time.Hour}, time.Microsecond},
	} {
		b.Run(row.name, func(b *testing.B) {
			p, now := pacing.New(row.c), time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += row.step
				p.Take(now, even, never)
			}
		})
	}
}
