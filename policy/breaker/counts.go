package breaker

import (
	"sync/atomic"
	"time"
)

// tally is a window summed up.
type tally struct{ calls, failed, slow int64 }

func rate(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	// A quotient is correctly rounded, so 7 of 100 is exactly the threshold 0.07. A product would not be.
	return min(float64(part)/float64(whole), 1)
}

const buckets = 10

// timeWindow counts the calls of the last so much time in a ring of buckets. A call touches the head bucket
// only; once per bucket somebody rotates the ring.
type timeWindow struct {
	pace               // one step is one bucket
	head atomic.Uint32 // the bucket that counts now: its place in the ring, and above placeBits its number
	_    [cacheLine]byte
	ring [buckets]bucket
}

// placeBits are enough for a place in the ring. It is kept beside the number, because a call should not have to divide.
const placeBits = 4

func place(head uint32) uint32 { return head & (1<<placeBits - 1) }

// following returns the head after one.
func following(head uint32) uint32 {
	return (head>>placeBits+1)<<placeBits | (place(head)+1)%buckets
}

// bucket fills a cache line.
type bucket struct {
	ok, failed, slow atomic.Int64 // a slow call is also ok or failed
	_                [cacheLine - 24]byte
}

func newTimeWindow(d time.Duration) *timeWindow {
	w := &timeWindow{}
	w.init(d, buckets)
	return w
}

func (w *timeWindow) add(failed, slow bool) {
	b := &w.ring[place(w.head.Load())]
	if failed {
		b.failed.Add(1)
	} else {
		b.ok.Add(1)
	}
	if slow {
		b.slow.Add(1)
	}
}

// rotate makes the bucket of now the head. The breaker's lock is held.
func (w *timeWindow) rotate(now time.Duration) {
	n := w.passed(now, buckets)
	if n == 0 {
		return
	}
	head := w.head.Load()
	for range n {
		head = following(head)
		b := &w.ring[place(head)]
		b.failed.Store(0)
		b.slow.Store(0)
		b.ok.Store(0)
	}
	w.head.Store(head)
	w.advance(now, n, buckets)
}

// sum adds up what the window holds at now, without rotating it. Beside a rotation it may be a little off.
func (w *timeWindow) sum(now time.Duration) (t tally) {
	head := place(w.head.Load())
	for i := w.passed(now, buckets) + 1; i <= buckets; i++ { // the oldest buckets follow the head
		b := &w.ring[(head+i)%buckets]
		slow, failed := b.slow.Load(), b.failed.Load() // before ok, so that no rate comes out too high
		t.slow += slow
		t.failed += failed
		t.calls += failed + b.ok.Load()
	}
	t.calls = max(t.calls, t.failed) // ok is below zero for a moment, if a success is taken back as its bucket leaves
	return t
}

// countWindow keeps the last so many calls as two bits each. A fast success that replaces a fast success
// costs one atomic add.
type countWindow struct {
	size                 uint64
	failedBits, slowBits []atomic.Uint64
	_                    [cacheLine]byte
	next                 atomic.Uint64 // calls so far
	_                    [cacheLine - 8]byte
	failed, slow         atomic.Int64
}

func newCountWindow(calls int) *countWindow {
	words := (calls + 63) / 64
	return &countWindow{
		size:       uint64(calls),
		failedBits: make([]atomic.Uint64, words),
		slowBits:   make([]atomic.Uint64, words),
	}
}

func (w *countWindow) add(failed, slow bool) {
	i := (w.next.Add(1) - 1) % w.size
	put(&w.failed, &w.failedBits[i/64], 1<<(i%64), failed)
	put(&w.slow, &w.slowBits[i/64], 1<<(i%64), slow)
}

// put sets or clears one bit and keeps the count of set bits. The count goes up before the bit is set and
// down after it is cleared, so it is never negative.
func put(count *atomic.Int64, word *atomic.Uint64, bit uint64, on bool) {
	switch {
	case on:
		count.Add(1)
		if word.Or(bit)&bit != 0 {
			count.Add(-1)
		}
	case word.Load()&bit != 0:
		if word.And(^bit)&bit != 0 {
			count.Add(-1)
		}
	}
}

func (w *countWindow) sum() tally {
	slow, failed := w.slow.Load(), w.failed.Load()
	return tally{calls: int64(min(w.next.Load(), w.size)), failed: failed, slow: slow}
}
