package engine

// A slab keeps entities that come and go by the million in few large pieces of memory. They never move; an index names
// one, and its generation says whether it is still the same. Generations lie together, so that to find out that an
// event came too late touches nothing else.
type slab[T any] struct {
	chunks      [][]T
	generations []uint32 // odd while in use
	free        []uint32
}

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits

	generationMask = 1<<24 - 1 // as many bits as an event carries
)

// at returns the entity with an index.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i>>chunkBits][i&(chunkSize-1)] }

// generation returns what an event for the entity carries.
func (s *slab[T]) generation(i uint32) uint32 { return s.generations[i] & generationMask }

// is tells whether the entity is in use and its generation is the given one.
func (s *slab[T]) is(i, generation uint32) bool {
	g := s.generations[i]
	return g&generationMask == generation && g&1 == 1
}

// get takes a free entity. It keeps the values of its former life.
func (s *slab[T]) get() (uint32, *T) {
	if len(s.free) == 0 {
		s.grow()
	}
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.generations[i]++
	return i, s.at(i)
}

func (s *slab[T]) grow() {
	first := uint32(len(s.chunks)) << chunkBits
	s.chunks = append(s.chunks, make([]T, chunkSize))
	s.generations = append(s.generations, make([]uint32, chunkSize)...)
	for i := uint32(chunkSize); i > 0; i-- {
		s.free = append(s.free, first+i-1)
	}
}

// put gives an entity back.
func (s *slab[T]) put(i uint32) {
	s.generations[i]++
	s.free = append(s.free, i)
}

// renew makes events for the entity that are still on their way do nothing.
func (s *slab[T]) renew(i uint32) { s.generations[i] += 2 }

// each visits all entities in use, by index. A visit may put the entity back.
func (s *slab[T]) each(visit func(i uint32, value *T)) {
	for i, g := range s.generations {
		if g&1 == 1 {
			visit(uint32(i), s.at(uint32(i)))
		}
	}
}

// reset frees all entities. Indices are then given out in the same order as in a new slab.
func (s *slab[T]) reset() {
	s.free = s.free[:0]
	for c := len(s.chunks) - 1; c >= 0; c-- {
		clear(s.chunks[c])
		for i := chunkSize - 1; i >= 0; i-- {
			s.free = append(s.free, uint32(c)<<chunkBits|uint32(i))
		}
	}
	clear(s.generations)
}
