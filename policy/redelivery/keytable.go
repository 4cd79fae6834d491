package redelivery

import "math/bits"

// keyTable holds a number for each key: a hash table with linear probing that, unlike a map, does not allocate again
// once it has its size. 24 bytes a place, at most two thirds of the places taken.
type keyTable struct {
	places []keyPlace // a power of two many
	taken  int
}

type keyPlace struct {
	key, seq uint64
	taken    bool
}

// home is where a key stands if nobody else does. Keys are hashes, but nothing says of which bits: they are mixed once
// more.
func (t *keyTable) home(key uint64) int {
	return int(key * 0x9e3779b97f4a7c15 >> (64 - bits.TrailingZeros(uint(len(t.places)))))
}

// find is the place of a key, or the one where it would stand.
func (t *keyTable) find(key uint64) int {
	i := t.home(key)
	for t.places[i].taken && t.places[i].key != key {
		i = (i + 1) & (len(t.places) - 1)
	}
	return i
}

// put sets the number of a key, and returns the one it had.
func (t *keyTable) put(key, seq uint64) (before uint64, had bool) {
	if t.taken*3 >= len(t.places)*2 {
		t.grow()
	}
	p := &t.places[t.find(key)]
	before, had = p.seq, p.taken
	if !had {
		t.taken++
	}
	*p = keyPlace{key: key, seq: seq, taken: true}
	return before, had
}

// remove forgets a key, and closes the gap: whoever was pushed on by it moves back.
func (t *keyTable) remove(key uint64) {
	gap := t.find(key)
	if !t.places[gap].taken {
		return
	}
	t.taken--
	mask := len(t.places) - 1
	for i := (gap + 1) & mask; t.places[i].taken; i = (i + 1) & mask {
		if home := t.home(t.places[i].key); (i-home)&mask >= (i-gap)&mask {
			t.places[gap] = t.places[i]
			gap = i
		}
	}
	t.places[gap] = keyPlace{}
}

func (t *keyTable) grow() {
	old := t.places
	t.places = make([]keyPlace, max(16, 2*len(old)))
	for _, p := range old {
		if p.taken {
			t.places[t.find(p.key)] = p
		}
	}
}
