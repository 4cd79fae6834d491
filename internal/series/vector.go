package series

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// vector has the counters or histograms of one metric.
type vector[T any] struct {
	desc  *Desc
	fresh func(label) *T

	mu    sync.RWMutex
	known map[string]*T
	list  []*T // in the order in which they were needed first
}

// With returns the one of some values of the labels, in the order that NewDesc was given the labels in. It is made when
// it is needed first, and shown from then on. It takes a lock and allocates: keep what it returns.
func (v *vector[T]) With(values ...string) *T {
	key := strings.Join(values, "\xff") // which is in no valid text
	v.mu.RLock()
	one := v.known[key]
	v.mu.RUnlock()
	if one != nil {
		return one
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if one = v.known[key]; one == nil {
		if v.known == nil {
			v.known = make(map[string]*T)
		}
		one = v.fresh(label{slices.Clone(v.desc.ordered(values)), time.Now()})
		v.known[key] = one
		v.list = append(v.list, one)
	}
	return one
}

// Desc returns the description of the metric.
func (v *vector[T]) Desc() *Desc { return v.desc }

// Describe sends it.
func (v *vector[T]) Describe(send func(*Desc)) { send(v.desc) }

// all returns what there is now; nothing is sent under the lock.
func (v *vector[T]) all() []*T {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.list[:len(v.list):len(v.list)] // which nobody changes, but appends to
}
