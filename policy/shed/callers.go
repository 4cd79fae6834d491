package shed

import "sync/atomic"

// callers counts the requests of each caller that are in flight or wait, in fixed memory: a count-min sketch of two
// rows. A caller is blamed for another's requests only if both rows put the two together, one pair in a million.
type callers struct {
	most atomic.Int32 // that one caller may hold before it is unfair
	rows [2][callerSlots]atomic.Int32
}

const (
	callerBits  = 10
	callerSlots = 1 << callerBits
)

// hashOf spreads a caller's hash, whatever its quality, over the bits used. 0 stays 0, nobody in particular.
func hashOf(caller uint64) uint32 {
	if caller == 0 {
		return 0
	}
	return max(uint32((caller^caller>>32)*0x9e3779b97f4a7c15>>32), 1)
}

func (c *callers) slots(hash uint32) (a, b *atomic.Int32) {
	return &c.rows[0][hash%callerSlots], &c.rows[1][hash>>callerBits%callerSlots]
}

func (c *callers) add(hash uint32, n int32) {
	a, b := c.slots(hash)
	a.Add(n)
	b.Add(n)
}

func (c *callers) held(hash uint32) int32 {
	a, b := c.slots(hash)
	return min(a.Load(), b.Load())
}
