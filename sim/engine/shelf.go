package engine

import "github.com/abate-go/abate/sim/kernel"

// shelf is what one replica of a cache holds: some of the keys that belong to it, in the order in which they were asked
// for. Keys of a replica are numbered from 0, the most popular first.
type shelf struct {
	places []uint32 // + 1: of each key; 0 where it is not held
	slots  []slot
	free   []uint32 // places of keys that are gone
	newest uint32   // + 1: place of the key that was asked for last
	oldest uint32   // + 1
	most   int
}

// slot is a key that is held.
type slot struct {
	key          uint32
	newer, older uint32 // + 1: places
	expires      int64  // never without a time to live
}

// reset empties a shelf for so many keys, of which it holds at most some.
func (s *shelf) reset(keys, most int) {
	if len(s.places) != keys {
		s.places = make([]uint32, keys)
	}
	clear(s.places)
	s.slots, s.free, s.newest, s.oldest, s.most = s.slots[:0], s.free[:0], 0, 0, most
}

// held is how many keys are held, those among them that have expired.
func (s *shelf) held() int { return len(s.slots) - len(s.free) }

// take reports whether a key is held, and makes it the newest.
func (s *shelf) take(key uint32, now int64) bool {
	at := s.places[key]
	if at == 0 {
		return false
	}
	if s.slots[at-1].expires <= now {
		s.drop(key)
		return false
	}
	s.unlink(at)
	s.link(at)
	return true
}

// put holds a key until it expires. The oldest makes room.
func (s *shelf) put(key uint32, expires int64) {
	if at := s.places[key]; at > 0 {
		s.slots[at-1].expires = expires
		s.unlink(at)
		s.link(at)
		return
	}
	if s.held() == s.most {
		s.drop(s.slots[s.oldest-1].key)
	}
	var at uint32
	if last := len(s.free) - 1; last >= 0 {
		at, s.free = s.free[last], s.free[:last]
	} else {
		s.slots = append(s.slots, slot{})
		at = uint32(len(s.slots))
	}
	s.slots[at-1] = slot{key: key, expires: expires}
	s.places[key] = at
	s.link(at)
}

// drop forgets a key, if it is held.
func (s *shelf) drop(key uint32) {
	at := s.places[key]
	if at == 0 {
		return
	}
	s.unlink(at)
	s.places[key] = 0
	s.free = append(s.free, at)
}

// link makes a place the newest.
func (s *shelf) link(at uint32) {
	x := &s.slots[at-1]
	x.newer, x.older = 0, s.newest
	if s.newest > 0 {
		s.slots[s.newest-1].newer = at
	} else {
		s.oldest = at
	}
	s.newest = at
}

func (s *shelf) unlink(at uint32) {
	x := &s.slots[at-1]
	if x.newer > 0 {
		s.slots[x.newer-1].older = x.older
	} else {
		s.newest = x.older
	}
	if x.older > 0 {
		s.slots[x.older-1].newer = x.newer
	} else {
		s.oldest = x.newer
	}
}

// zipf draws keys: the k-th in proportion to 1/k^skew.
type zipf struct {
	keys int
	sums []float64 // of the weights up to each key; nil where all are alike
}

func newZipf(keys int, skew float64) zipf {
	z := zipf{keys: keys}
	if skew == 0 {
		return z
	}
	sum := 0.0
	z.sums = make([]float64, keys)
	for k := range z.sums {
		sum += kernel.Exp(-float64(skew * kernel.Log(float64(k+1))))
		z.sums[k] = sum
	}
	return z
}

// draw returns the number of a key, from 0.
func (z *zipf) draw(random *kernel.Stream) uint32 {
	if z.sums == nil {
		return uint32(random.IntN(z.keys))
	}
	u := float64(random.Float64() * z.sums[z.keys-1])
	low, high := 0, z.keys-1
	for low < high {
		if middle := (low + high) / 2; z.sums[middle] > u {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return uint32(low)
}
