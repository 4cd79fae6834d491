package series

import (
	"sync/atomic"
	"time"
)

// Counter counts events. The zero value counts for nobody but its owner. It is safe for concurrent use.
type Counter struct {
	n atomic.Uint64
	label
}

// Inc counts one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value returns how many were counted.
func (c *Counter) Value() float64 { return float64(c.n.Load()) }

// Counters are the counters of one metric, by the values of its labels.
type Counters struct{ vector[Counter] }

// NewCounters makes the counters of a metric, none at first.
func NewCounters(d *Desc) *Counters {
	return &Counters{vector[Counter]{desc: d, fresh: func(l label) *Counter { return &Counter{label: l} }}}
}

// Collect sends all of them.
func (c *Counters) Collect(send func(Sample)) {
	for _, one := range c.all() {
		send(Sample{Desc: c.desc, Kind: CounterKind, Value: one.Value(), Values: one.values, Created: one.created})
	}
}

// label is whose a counter or histogram is.
type label struct {
	values  []string // in the order in which they are written
	created time.Time
}
