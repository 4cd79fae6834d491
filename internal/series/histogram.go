package series

import (
	"math"
	"sync/atomic"
	"time"
)

// Histogram counts values by buckets. It is safe for concurrent use. Whoever reads it while a value is observed may see
// that in its bucket and not in the sum, or the other way round; the number of all is always that of the buckets.
type Histogram struct {
	bounds    []float64
	counts    []atomic.Uint64 // of each bucket alone; the last has no bound
	sum       atomic.Uint64   // the bits of a float64
	exemplars []atomic.Pointer[Exemplar]
	label
}

// Observe counts a value.
func (h *Histogram) Observe(v float64) { h.observe(v) }

// ObserveWith is Observe, and leaves labels that lead to what took so long beside the bucket, where they replace those
// before. They may have 128 characters in all. It allocates.
func (h *Histogram) ObserveWith(v float64, labels ...Label) {
	h.exemplars[h.observe(v)].Store(&Exemplar{Labels: labels, Value: v, At: time.Now()})
}

// observe returns the bucket.
func (h *Histogram) observe(v float64) (bucket int) {
	for bucket < len(h.bounds) && !(v <= h.bounds[bucket]) { // what is no number is in the last
		bucket++
	}
	h.counts[bucket].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return bucket
		}
	}
}

// read returns what was observed.
func (h *Histogram) read() *Distribution {
	d := &Distribution{Buckets: make([]Bucket, len(h.counts))}
	for i := range d.Buckets {
		b := &d.Buckets[i]
		b.Exemplar = h.exemplars[i].Load() // before the count: one that is shown has been counted
		d.Count += h.counts[i].Load()
		if b.Count, b.Bound = d.Count, math.Inf(1); i < len(h.bounds) {
			b.Bound = h.bounds[i]
		}
	}
	d.Sum = math.Float64frombits(h.sum.Load())
	return d
}

// Histograms are the histograms of one metric, by the values of its labels.
type Histograms struct{ vector[Histogram] }

// NewHistograms makes the histograms of a metric, none at first. bounds are the upper bounds of their buckets, rising;
// a last bucket without one is added.
func NewHistograms(d *Desc, bounds []float64) *Histograms {
	return &Histograms{vector[Histogram]{desc: d, fresh: func(l label) *Histogram {
		return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1),
			exemplars: make([]atomic.Pointer[Exemplar], len(bounds)+1), label: l}
	}}}
}

// Collect sends all of them.
func (h *Histograms) Collect(send func(Sample)) {
	for _, one := range h.all() {
		send(Sample{Desc: h.desc, Kind: HistogramKind, Distribution: one.read(), Values: one.values,
			Created: one.created})
	}
}
