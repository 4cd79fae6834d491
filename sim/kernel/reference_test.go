package kernel_test

import (
	"container/heap"
	"math"

	"github.com/abate-go/abate/sim/kernel"
)

// reference is a queue that is slow and plainly right: one heap, ordered by time,
// then by rank (0 for Push, 1 + lane number for lanes, or lanes first), then by push.
type reference struct {
	lanesFirst bool
	delays     []int64
	events     entries
	pushes     int
}

type entry struct {
	kernel.Event
	rank, seq int
}

type entries []entry

func (h entries) Len() int { return len(h) }
func (h entries) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.At != b.At {
		return a.At < b.At
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.seq < b.seq
}
func (h entries) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(x any)   { *h = append(*h, x.(entry)) }
func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

func (r *reference) add(rank int, at int64, target, meta uint32) {
	r.pushes++
	heap.Push(&r.events, entry{kernel.Event{At: at, Target: target, Meta: meta}, rank, r.pushes})
}

func (r *reference) Push(at int64, target, meta uint32) { r.add(0, at, target, meta) }

func (r *reference) PushLane(lane int, now int64, target, meta uint32) {
	rank := 1 + lane
	if r.lanesFirst {
		rank = lane - math.MaxInt32
	}
	r.add(rank, now+r.delays[lane], target, meta)
}

func (r *reference) Pop() (kernel.Event, bool) {
	if len(r.events) == 0 {
		return kernel.Event{}, false
	}
	return heap.Pop(&r.events).(entry).Event, true
}
