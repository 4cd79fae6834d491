package abateredis

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
)

// identity distinguishes keys inside this process, whatever their length: two hashes with different seeds.
type identity struct{ a, b uint64 }

func (f *Fleet) identify(key string) identity {
	return identity{maphash.String(f.seeds[0], key), maphash.String(f.seeds[1], key)}
}

const (
	setSize  = 8       // places of which a key may have one
	minSets  = 1 << 5  // at first
	maxSlots = 1 << 16 // of a table: about 15 MB of buckets
)

// table finds buckets. Readers take no lock: they load pointers. It grows up to a bound, and then forgets buckets that
// were not asked about for long. mu is for those that write.
type table struct {
	sets atomic.Pointer[[]slots]
	mu   sync.Mutex
	n    int
	most int
}

type slots [setSize]atomic.Pointer[bucket]

func newTable(maxKeys int) *table {
	t := &table{most: min(max(maxKeys, setSize*minSets), maxSlots)}
	sets := make([]slots, minSets)
	t.sets.Store(&sets)
	return t
}

func (t *table) find(id identity) *bucket {
	sets := *t.sets.Load()
	set := &sets[id.a&uint64(len(sets)-1)]
	for i := range set {
		if b := set[i].Load(); b != nil && b.id == id {
			return b
		}
	}
	return nil
}

// add returns the bucket of id, made if it is not there.
func (t *table) add(id identity, redis [16]byte) *bucket {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.find(id); b != nil {
		return b
	}
	b := &bucket{id: id, redis: redis}
	sets := *t.sets.Load()
	if t.n >= len(sets)*setSize/2 && len(sets)*2*setSize <= t.most {
		sets = t.grow(sets)
	}
	added, kept := t.place(sets, b)
	if added {
		t.n++
	}
	if !kept {
		b.stray = true // nobody else has it
	}
	return b
}

func (t *table) grow(old []slots) []slots {
	sets := make([]slots, 2*len(old))
	t.n = 0
	for i := range old {
		for j := range old[i] {
			if b := old[i][j].Load(); b != nil {
				if added, _ := t.place(sets, b); added {
					t.n++
				}
			}
		}
	}
	t.sets.Store(&sets)
	return sets
}

// place puts b in its set, instead of the one that has waited longest for an answer if there is no place. added reports
// whether there was; kept is false if all that are there owe something: a debt is not forgotten.
func (t *table) place(sets []slots, b *bucket) (added, kept bool) {
	set := &sets[b.id.a&uint64(len(sets)-1)]
	oldest, since, now := -1, time.Duration(1<<63-1), core.Now()
	for i := range set {
		other := set[i].Load()
		if other == nil {
			set[i].Store(b)
			return true, true
		}
		if other.flight.Load() != nil || other.lease.Owes(now) {
			continue
		}
		at, answered := other.lease.AnsweredAt()
		if !answered {
			oldest, since = i, -1
		} else if at < since {
			oldest, since = i, at
		}
	}
	if oldest < 0 {
		return false, false
	}
	set[oldest].Store(b)
	return false, true
}
