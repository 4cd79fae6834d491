package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

var closedConfigs = []struct {
	name string
	cfg  breaker.Config
}{
	{"consecutive", breaker.Config{FailureThreshold: 5}},
	{"count100", breaker.Config{FailureRateThreshold: 0.5, SlidingWindow: breaker.Window{Calls: 100}}},
	{"time10s", breaker.Config{FailureRateThreshold: 0.5}},
	{"time10s_slow", breaker.Config{FailureRateThreshold: 0.5, SlowCallRateThreshold: 0.8}},
	{"adaptive", breaker.Config{Kind: breaker.Adaptive}},
}

// BenchmarkClosed is Allow and Record of a success, the time standing still: what the policy itself costs.
func BenchmarkClosed(bb *testing.B) {
	for _, c := range closedConfigs {
		bb.Run(c.name+"/seq", func(bb *testing.B) {
			b := breaker.New(c.cfg, nil, nil)
			bb.ReportAllocs()
			for bb.Loop() {
				p, _ := b.Allow(time.Second)
				b.Record(time.Second, p, breaker.Success)
			}
		})
		bb.Run(c.name+"/par", func(bb *testing.B) {
			b := breaker.New(c.cfg, nil, nil)
			bb.ReportAllocs()
			bb.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p, _ := b.Allow(time.Second)
					b.Record(time.Second, p, breaker.Success)
				}
			})
		})
	}
}

// BenchmarkClosedClocked adds the two clock reads a driver makes.
func BenchmarkClosedClocked(bb *testing.B) {
	for _, c := range closedConfigs {
		origin := time.Now()
		bb.Run(c.name+"/seq", func(bb *testing.B) {
			b := breaker.New(c.cfg, nil, nil)
			bb.ReportAllocs()
			for bb.Loop() {
				p, _ := b.Allow(time.Since(origin))
				b.Record(time.Since(origin), p, breaker.Success)
			}
		})
		bb.Run(c.name+"/par", func(bb *testing.B) {
			b := breaker.New(c.cfg, nil, nil)
			bb.ReportAllocs()
			bb.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p, _ := b.Allow(time.Since(origin))
					b.Record(time.Since(origin), p, breaker.Success)
				}
			})
		})
	}
}

// BenchmarkClosedFailure records failures that do not open the breaker: each one adds up the window.
func BenchmarkClosedFailure(bb *testing.B) {
	b := breaker.New(breaker.Config{FailureRateThreshold: 0.9, MinimumNumberOfCalls: 2}, nil, nil)
	bb.ReportAllocs()
	for i := 0; bb.Loop(); i++ {
		p, _ := b.Allow(time.Second)
		b.Record(time.Second, p, breaker.Result(i&1))
	}
}

func BenchmarkOpen(bb *testing.B) {
	b := breaker.New(breaker.Config{FailureThreshold: 1}, nil, nil)
	p, _ := b.Allow(0)
	b.Record(0, p, breaker.Failure)
	bb.Run("seq", func(bb *testing.B) {
		bb.ReportAllocs()
		for bb.Loop() {
			if _, ok := b.Allow(time.Millisecond); ok {
				bb.Fatal("admitted")
			}
		}
	})
	bb.Run("par", func(bb *testing.B) {
		bb.ReportAllocs()
		bb.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				b.Allow(time.Millisecond)
			}
		})
	})
}

func BenchmarkHalfOpenFull(bb *testing.B) {
	b := breaker.New(breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: time.Second}, nil, nil)
	p, _ := b.Allow(0)
	b.Record(0, p, breaker.Failure)
	for range 3 {
		b.Allow(time.Minute)
	}
	bb.ReportAllocs()
	for bb.Loop() {
		b.Allow(time.Minute)
	}
}
