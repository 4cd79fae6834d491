package comeback

import (
	"math"
	"sync"
	"time"
)

const (
	sets = 64
	ways = 8
)

// Lines are a Line for each key. The zero Lines is empty. Of the keys that were refused lately 512 are kept, those with
// the longest lines: one that is forgotten begins anew. It is safe for concurrent use.
type Lines struct{ sets [sets]set }

type set struct {
	mu   sync.Mutex
	ways [ways]way
}

// way is the line of one key.
type way struct {
	key  uint64
	next uint64 // see encode
}

// Book is Line.Book for the line of key, a hash.
func (l *Lines) Book(now time.Duration, key uint64, t Terms, draw uint64) time.Duration {
	s := &l.sets[key%sets]
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.find(key)
	from := decode(w.next)
	if w.key != key {
		from = math.MinInt64
	}
	wait, next, booked := t.place(now, from, draw)
	if booked {
		*w = way{key, encode(next)}
	}
	return wait
}

// find returns the way of key, or the one whose line ends first.
func (s *set) find(key uint64) *way {
	oldest := &s.ways[0]
	for i := range s.ways {
		switch w := &s.ways[i]; {
		case w.key == key && w.next != 0:
			return w
		case w.next < oldest.next:
			oldest = w
		}
	}
	return oldest
}
