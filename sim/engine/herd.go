package engine

import "math/bits"

// A herd is a slab that gives neighbours out one after the other, by blocks. What begins together ends together where
// time limits decide, so a storm goes through memory from one end of a block to the other, which processors see coming.
// At most a quarter of the entities that it has ever needed at once lies idle.
//
// It is for what nobody visits by index: which index is given out next depends on the blocks.
type herd[T any] struct {
	slab[T]
	blocks []block
	left   uint64   // of the block that is being given out: those that are free
	first  uint32   // the first index of that block
	open   []uint32 // blocks that are given out next, the last one first
}

// block are 64 neighbours.
type block struct {
	free  uint64
	count uint8 // of those free
	open  bool  // is among those that are given out next
}

const (
	blockBits = 6
	blockSize = 1 << blockBits
	openFrom  = blockSize / 4 // free ones that open a block
)

// get takes a free entity. It has the values of its former life, if it had one.
func (h *herd[T]) get() (uint32, *T) {
	if h.left == 0 {
		h.turn()
	}
	i := h.first + uint32(bits.TrailingZeros64(h.left))
	h.left &= h.left - 1
	h.generations[i]++
	return i, h.at(i)
}

// turn goes to the next block.
func (h *herd[T]) turn() {
	if last := len(h.open) - 1; last >= 0 {
		n := h.open[last]
		h.open = h.open[:last]
		h.first, h.left = n<<blockBits, h.blocks[n].free
		h.blocks[n] = block{}
		return
	}
	if int(h.fresh) == len(h.generations) {
		h.chunks = append(h.chunks, new([chunkSize]T))
		h.generations = append(h.generations, make([]uint32, chunkSize)...)
		h.blocks = append(h.blocks, make([]block, chunkSize/blockSize)...)
	}
	h.first, h.left = h.fresh, 1<<blockSize-1
	h.fresh += blockSize
}

// put gives an entity back.
func (h *herd[T]) put(i uint32) {
	if h.generations[i]&1 == 0 {
		panic("engine: an entity was given back twice")
	}
	h.generations[i]++
	b := &h.blocks[i>>blockBits]
	b.free |= 1 << (i % blockSize)
	if b.count++; b.count >= openFrom && !b.open {
		b.open = true
		h.open = append(h.open, i>>blockBits)
	}
}

// emptied is the herd with all entities free, keeping its memory. Indices are given out as by a new one.
func (h *herd[T]) emptied() herd[T] {
	clear(h.blocks)
	return herd[T]{slab: h.slab.emptied(), blocks: h.blocks, open: h.open[:0]}
}
