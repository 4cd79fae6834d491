package balance_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/policy/balance"
)

const golden = 0x9e3779b97f4a7c15 // the next of a row of well spread numbers

// BenchmarkPickDone is an attempt that succeeds, the time standing still: what the policy itself costs.
func BenchmarkPickDone(b *testing.B) {
	for _, n := range []int{1, 2, 4, 16, 256} {
		l := balance.New(three, n)
		measure(b, fmt.Sprintf("%d", n), func(rnd uint64) {
			l.Done(l.Pick(s, rnd, -1), s, balance.Success)
		})
	}
}

// BenchmarkRetry is the second attempt, which avoids the endpoint of the first, while another one is ejected.
func BenchmarkRetry(b *testing.B) {
	l := balance.New(three, 4)
	for l.In() == 4 {
		l.Done(l.Pick(s, 0, -1), s, balance.Failure)
	}
	measure(b, "4", func(rnd uint64) {
		l.Done(l.Pick(s, rnd, 2), s, balance.Success)
	})
}

// BenchmarkFailure is an attempt that fails while as many endpoints are out as may be.
func BenchmarkFailure(b *testing.B) {
	l := balance.New(three, 4)
	for n := range uint64(100) {
		l.Done(l.Pick(s, n*golden, -1), s, balance.Failure)
	}
	measure(b, "4", func(rnd uint64) {
		l.Done(l.Pick(s, rnd, -1), s, balance.Failure)
	})
}

// BenchmarkZones is BenchmarkPickDone where the own zone is preferred.
func BenchmarkZones(b *testing.B) {
	for _, n := range []int{4, 256} {
		zones := make([]string, n)
		for i := range zones {
			zones[i] = thirds[i%3]
		}
		l := balance.New(three, n)
		l.Locate("a", zones)
		measure(b, fmt.Sprintf("%d", n), func(rnd uint64) {
			l.Done(l.Pick(s, rnd, -1), s, balance.Success)
		})
	}
}

// BenchmarkReload is New and Carry.
func BenchmarkReload(b *testing.B) {
	for _, n := range []int{4, 256, 1000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			l, index := balance.New(three, n), make([]int, n)
			for i := range index {
				index[i] = i - 1
			}
			b.ReportAllocs()
			for b.Loop() {
				next := balance.New(three, n)
				next.Carry(l, index)
				l = next
			}
		})
	}
}

// The yardstick: two atomic additions to one counter, which an attempt costs at the least.
func BenchmarkYardstick(b *testing.B) {
	var n atomic.Int64
	measure(b, "atomic", func(uint64) { n.Add(1); n.Add(-1) })
}

func measure(b *testing.B, name string, f func(rnd uint64)) {
	b.Run(name+"/seq", func(b *testing.B) {
		b.ReportAllocs()
		rnd := uint64(1)
		for b.Loop() {
			rnd += golden
			f(rnd)
		}
	})
	b.Run(name+"/par", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			rnd := uint64(1)
			for pb.Next() {
				rnd += golden
				f(rnd)
			}
		})
	})
}
