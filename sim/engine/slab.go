package engine

// A slab keeps entities that come and go by the million in few large pieces of memory. They never move; an index names
// one, and its generation says whether it is still the same. Generations lie together, so that to find out that an
// event came too late touches nothing else.
type slab[T any] struct {
	chunks      []*[chunkSize]T // arrays: their bounds need no check
	generations []uint32        // odd while in use
	free        []uint32
	fresh       uint32 // the first index that has never been given out
}

const (
	chunkBits = 12
	chunkSize = 1 << chunkBits

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
	var i uint32
	if last := len(s.free) - 1; last >= 0 {
		i = s.free[last]
		s.free = s.free[:last]
	} else {
		if i = s.fresh; int(i) == len(s.generations) {
			s.chunks = append(s.chunks, new([chunkSize]T))
			s.generations = append(s.generations, make([]uint32, chunkSize)...)
		}
		s.fresh++
	}
	s.generations[i]++
	return i, s.at(i)
}

// put gives an entity back.
func (s *slab[T]) put(i uint32) {
	if s.generations[i]&1 == 0 {
		panic("engine: an entity was given back twice")
	}
	s.generations[i]++
	s.free = append(s.free, i)
}

// renew makes events for the entity that are still on their way do nothing, and returns what new ones carry.
func (s *slab[T]) renew(i uint32) uint32 {
	g := &s.generations[i]
	*g += 2
	return *g & generationMask
}

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
	return slab[T]{chunks: s.chunks, generations: s.generations, free: s.free[:0]}
}
