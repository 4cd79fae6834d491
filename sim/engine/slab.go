package engine

import "math/bits"

// A slab keeps entities that come and go by the million in few large pieces of memory. They never move; an index names
// one, and its generation says whether it is still the same. Generations lie together, so that to find out that an
// event came too late touches nothing else.
//
// Neighbours are given out one after the other, by blocks. What begins together ends together where time limits decide,
// so a storm goes through memory from one end of a block to the other, which processors see coming.
type slab[T any] struct {
	chunks      []*[chunkSize]T // arrays: their bounds need no check
	generations []uint32        // odd while in use
	blocks      []block         // of 64 entities each
	now         uint64          // of the block that is being given out: those that are left
	first       uint32          // its first index
	open        []uint32        // blocks that have many free ones, the last opened last
	fresh       uint32          // the first index that has never been given out, nor is about to be
}

// block are 64 neighbours.
type block struct {
	free  uint64
	count uint8 // of those free
	open  bool  // is among those to be given out
}

const (
	chunkBits = 12
	chunkSize = 1 << chunkBits

	blockBits = 6
	blockSize = 1 << blockBits
	openFrom  = 16 // free ones that open a block

	generationMask = 1<<24 - 1 // as many bits as an event carries
)

// at returns the entity with an index.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i>>chunkBits][i&(chunkSize-1)] }

// generation returns what an event for the entity carries.
func (s *slab[T]) generation(i uint32) uint32 { return s.generations[i] & generationMask }

// is reports whether the entity is in use and its generation is the given one.
func (s *slab[T]) is(i, generation uint32) bool {
	g := s.generations[i]
	return g&generationMask == generation && g&1 == 1
}

// get takes a free entity. It has the values of its former life, if it had one.
func (s *slab[T]) get() (uint32, *T) {
	if s.now == 0 {
		s.turn()
	}
	i := s.first + uint32(bits.TrailingZeros64(s.now))
	s.now &= s.now - 1
	s.generations[i]++
	return i, s.at(i)
}

// turn goes to the next block.
func (s *slab[T]) turn() {
	if last := len(s.open) - 1; last >= 0 {
		n := s.open[last]
		s.open = s.open[:last]
		s.first, s.now = n<<blockBits, s.blocks[n].free
		s.blocks[n] = block{}
		return
	}
	if int(s.fresh) == len(s.generations) {
		s.chunks = append(s.chunks, new([chunkSize]T))
		s.generations = append(s.generations, make([]uint32, chunkSize)...)
		s.blocks = append(s.blocks, make([]block, chunkSize/blockSize)...)
	}
	s.first, s.now = s.fresh, 1<<blockSize-1
	s.fresh += blockSize
}

// put gives an entity back.
func (s *slab[T]) put(i uint32) {
	if s.generations[i]&1 == 0 {
		panic("engine: an entity was given back twice")
	}
	s.generations[i]++
	b := &s.blocks[i>>blockBits]
	b.free |= 1 << (i % blockSize)
	if b.count++; b.count >= openFrom && !b.open {
		b.open = true
		s.open = append(s.open, i>>blockBits)
	}
}

// renew makes events for the entity that are still on their way do nothing.
func (s *slab[T]) renew(i uint32) { s.generations[i] += 2 }

// each visits all entities in use, by index. A visit may put the entity back.
func (s *slab[T]) each(visit func(i uint32, value *T)) {
	for i, g := range s.generations[:s.fresh] {
		if g&1 == 1 {
			visit(uint32(i), s.at(uint32(i)))
		}
	}
}

// emptied is the slab with all entities free, keeping its memory. Indices are given out as by a new slab.
func (s *slab[T]) emptied() slab[T] {
	clear(s.generations[:s.fresh])
	clear(s.blocks)
	return slab[T]{chunks: s.chunks, generations: s.generations, blocks: s.blocks, open: s.open[:0]}
}
