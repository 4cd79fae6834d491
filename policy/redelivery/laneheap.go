package redelivery

import "time"

// entry is a record that has lost its place in the row: it waits for its time, or to be started out of order.
type entry struct {
	ready time.Duration
	seq   uint64
}

func earlier(a, b entry) bool { return a.ready < b.ready || a.ready == b.ready && a.seq < b.seq }

// laneHeap is a binary heap with the earliest entry at its top.
type laneHeap []entry

func (h *laneHeap) push(e entry) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !earlier(e, s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
	*h = s
}

// pop takes the top away. There is one.
func (h *laneHeap) pop() entry {
	s := *h
	top, e := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	for i := 0; len(s) > 0; {
		down := 2*i + 1
		if down+1 < len(s) && earlier(s[down+1], s[down]) {
			down++
		}
		if down >= len(s) || !earlier(s[down], e) {
			s[i] = e
			break
		}
		s[i] = s[down]
		i = down
	}
	*h = s
	return top
}
