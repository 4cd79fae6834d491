package hedge_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/hedge"
)

func BenchmarkDelay(b *testing.B) {
	p := hedge.New(hedge.Config{Quantile: 0.95})
	b.ReportAllocs()
	for b.Loop() {
		p.Delay(0)
	}
}

func BenchmarkRecord(b *testing.B) {
	p := hedge.New(hedge.Config{Quantile: 0.95})
	latency := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		latency = (latency + 997*time.Microsecond) & (1<<28 - 1)
		p.Record(0, latency)
	}
}

func BenchmarkRecordParallel(b *testing.B) {
	p := hedge.New(hedge.Config{Quantile: 0.95})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() { // all in one bucket: the worst case
			p.Record(0, 10*time.Millisecond)
		}
	})
}

// What one call a second pays.
func BenchmarkCompute(b *testing.B) {
	p := hedge.New(hedge.Config{Quantile: 0.95})
	feed(p, 0, 1000, time.Second, 10*time.Millisecond)
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second
		p.Delay(now)
	}
}
