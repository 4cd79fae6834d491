package ratelimit

import (
	"math/bits"
	"sync"
)

// shard is an open-addressing hash table under a lock, a cache line in size. A bucket stands in the first line that had
// a place when it came, counted from its home, so that nearly every search touches one cache line: a line is full as
// long as a bucket stands behind it whose home is that line or one before it.
type shard struct {
	mu    sync.Mutex
	s     *settings
	lines []line
	used  int    // slots in use
	hand  int    // the line where sweep goes on
	seen  uint64 // when something was last taken from a full bucket
}

// slot is one bucket. A hash of 0 is no bucket.
type slot struct{ hash, tat uint64 }

const perLine = 4

// line fills a cache line.
type line [perLine]slot

// home is the line where the search for hash begins.
func (h *shard) home(hash uint64) int {
	hi, _ := bits.Mul64(hash, uint64(len(h.lines)))
	return int(hi)
}

func (h *shard) after(i int) int {
	if i++; i < len(h.lines) {
		return i
	}
	return 0
}

// behind is how many lines j is behind i.
func (h *shard) behind(j, i int) int {
	if j < i {
		j += len(h.lines)
	}
	return j - i
}

// find returns the slot of hash, or an empty one where the search for it ended; nil if there is no slot at all.
func (h *shard) find(hash uint64) (b *slot, found bool) {
	if len(h.lines) == 0 {
		return nil, false
	}
	for i := h.home(hash); b == nil; i = h.after(i) {
		l := &h.lines[i]
		if at := l.index(hash); at < perLine {
			return &l[at], true
		}
		if at := l.index(0); at < perLine {
			b = &l[at]
		}
	}
	return b, false
}

// index returns where in the line hash is, perLine if nowhere. It looks at all of them because a branch that depends on
// where would be mispredicted, after a wait for memory.
func (l *line) index(hash uint64) int {
	at := perLine
	if l[0].hash == hash {
		at = 0
	}
	if l[1].hash == hash {
		at = 1
	}
	if l[2].hash == hash {
		at = 2
	}
	if l[3].hash == hash {
		at = 3
	}
	return at
}

// findSpare returns a slot on the way to where hash would stand whose bucket is not needed at time x.
func (h *shard) findSpare(hash, x uint64) *slot {
	if len(h.lines) == 0 {
		return nil
	}
	for i, end := h.home(hash), false; !end; i = h.after(i) {
		l := &h.lines[i]
		for j := range l {
			if l[j].hash == 0 {
				end = true
			} else if h.s.spare(x, l[j].tat) {
				return &l[j]
			}
		}
	}
	return nil
}

// grow drops the buckets that are not needed at time x, returns how many, and makes room for more.
func (h *shard) grow(x uint64) (dropped int) {
	old, used := h.lines, 0
	for i := range old {
		for j := range old[i] {
			if b := &old[i][j]; b.hash != 0 && !h.s.spare(x, b.tat) {
				used++
			}
		}
	}
	h.lines = make([]line, h.size(used+1))
	for i := range old {
		for _, b := range old[i] {
			if b.hash != 0 && !h.s.spare(x, b.tat) {
				empty, _ := h.find(b.hash)
				*empty = b
			}
		}
	}
	dropped, h.used, h.hand = h.used-used, used, 0
	return dropped
}

// size is how many lines a shard with so many buckets gets: for twice as many, but no more than what makes 24 bytes a
// bucket when MaxKeys are kept, unless chance has given this shard more than its part of them.
func (h *shard) size(buckets int) int {
	share := int(h.s.maxKeys) * 4 / 3 / shards
	return (max(min(2*buckets, share), buckets*5/4) + perLine) / perLine
}

// sweep looks at the next n lines, drops the buckets that are not needed at time x and returns how many.
func (h *shard) sweep(x uint64, n int) (dropped int) {
	for range n {
		for j := 0; j < perLine; {
			if b := &h.lines[h.hand][j]; b.hash != 0 && h.s.spare(x, b.tat) {
				h.remove(h.hand, j) // which may put another bucket there: look again
				dropped++
			} else {
				j++
			}
		}
		h.hand = h.after(h.hand)
	}
	return dropped
}

// remove empties slot j of line i and moves buckets up into the gap that would not be found behind it.
func (h *shard) remove(i, j int) {
	gap := &h.lines[i][j]
	full := h.lines[i].full()
	for k := h.after(i); full && k != i; k = h.after(k) {
		full = h.lines[k].full()
		for m := range h.lines[k] {
			b := &h.lines[k][m]
			if b.hash != 0 && h.behind(k, h.home(b.hash)) >= h.behind(k, i) {
				*gap = *b
				gap, i = b, k
				break
			}
		}
	}
	*gap = slot{}
	h.used--
}

// full reports whether every slot of the line is in use.
func (l *line) full() bool {
	for i := range l {
		if l[i].hash == 0 {
			return false
		}
	}
	return true
}

// adopt carries all buckets over to other settings.
func (h *shard) adopt(s *settings, x uint64) {
	for i := range h.lines {
		for j := range h.lines[i] {
			b := &h.lines[i][j]
			b.tat = s.adopt(h.s, x, b.tat)
		}
	}
}
