package bulkhead_test

import (
	"sync"
	"testing"

	"github.com/abate-go/abate/policy/bulkhead"
)

func BenchmarkAcquireRelease(b *testing.B) {
	h := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1000, MaxQueue: 10})
	both(b, func() {
		if h.TryAcquire() {
			h.Release()
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	h := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true})
	h.TryAcquire()
	w := &bulkhead.Waiter{}
	b.Run("TryAcquire", func(b *testing.B) { both(b, func() { h.TryAcquire() }) })
	b.Run("Enqueue", func(b *testing.B) { both(b, func() { h.Enqueue(0, w) }) })
}

// BenchmarkHandOver is a wait in full: queue, release, wake.
func BenchmarkHandOver(b *testing.B) {
	h := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 10})
	h.TryAcquire()
	n := 0
	wake := func() { n++ }
	b.ReportAllocs()
	for b.Loop() {
		h.Enqueue(0, &bulkhead.Waiter{Wake: wake})
		h.Release()
	}
}

// The yardsticks for the ratios in the package comment.
func BenchmarkYardstick(b *testing.B) {
	var mu sync.Mutex
	n := 0
	b.Run("mutex", func(b *testing.B) { both(b, func() { mu.Lock(); n++; mu.Unlock() }) })
	sem := make(chan struct{}, 1000)
	b.Run("channel", func(b *testing.B) { both(b, func() { sem <- struct{}{}; <-sem }) })
}

func both(b *testing.B, f func()) {
	b.Run("seq", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	})
	b.Run("par", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				f()
			}
		})
	})
}
