package hedge

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The layout of the buckets. Values are counted in units of 2^unitBits ns. The
// first perOctave buckets are one unit wide; from there each power of two has
// perOctave buckets, up to 2^topBits ns. What lies above is in the last bucket.
const (
	unitBits  = 10 // 1.024 µs
	octave    = 4  // log2 of perOctave
	perOctave = 1 << octave
	topBits   = 40 // 18 minutes
	buckets   = (topBits - unitBits - octave + 1) * perOctave
)

// A histogram counts latencies. Adding is safe at any time and from anywhere.
type histogram struct{ counts [buckets]atomic.Uint32 }

// bucket returns the bucket of a latency. It never falls as the latency rises;
// negative latencies are in the first bucket.
func bucket(latency time.Duration) int {
	units := uint64(min(max(latency, 0), 1<<topBits-1)) >> unitBits
	if units < perOctave {
		return int(units)
	}
	// Keep the leading octave+1 bits; shift is the number of bits dropped.
	shift := bits.Len64(units) - octave - 1
	return shift<<octave + int(units>>shift)
}

// upperEnd returns the first latency above bucket i.
func upperEnd(i int) time.Duration {
	if i < perOctave {
		return time.Duration(i+1) << unitBits
	}
	shift := i>>octave - 1
	return time.Duration(i-shift<<octave+1) << shift << unitBits
}

func (h *histogram) add(latency time.Duration) { h.counts[bucket(latency)].Add(1) }

func (h *histogram) clear() {
	for i := range h.counts {
		h.counts[i].Store(0)
	}
}

// total returns how many latencies are in h.
func (h *histogram) total() uint64 {
	n := uint64(0)
	for i := range h.counts {
		n += uint64(h.counts[i].Load())
	}
	return n
}

// quantile returns a delay that at least the share q of the total latencies in
// the two histograms are below.
func quantile(a, b *histogram, total uint64, q float64) time.Duration {
	above := uint64(float64(total) * (1 - q)) // how many may be longer
	for i := buckets - 1; i > 0; i-- {
		n := uint64(a.counts[i].Load()) + uint64(b.counts[i].Load())
		if n > above {
			return upperEnd(i)
		}
		above -= n
	}
	return upperEnd(0)
}
