package comeback

import (
	"math"
	"sync/atomic"
	"time"
)

// What those who are refused are told, wherever nothing better is known.
const (
	Soonest  = time.Second      // nobody who was refused for load should come earlier
	LongAway = 30 * time.Second // nor later, however long the line is
	// between one and the next, for a service of which nobody knows what it can do: 20 a second
	UnknownBy = 50 * time.Millisecond
)

// Terms say how those who are refused can be taken.
type Terms struct {
	First time.Duration // how long until one more can be taken; below 0 counts as 0
	Each  time.Duration // how long after it the next one can; below 0 counts as 0
	Most  time.Duration // nobody is asked to stay away for longer, unless First is
}

// Line holds the times that refused callers were given, one after the other. The zero Line is empty. It is safe for
// concurrent use.
type Line struct {
	next atomic.Uint64 // when the next one can come, see encode
}

// Book returns how long one who is refused now should stay away. Its place in the line is at Terms.First, or Terms.Each
// behind the one before it; it is given a time around its place, which draw, a random number, chooses: from half as far
// behind First to one and a half times as far. If its place is later than Terms.Most it takes none, and is given any
// time between First and Most.
func (l *Line) Book(now time.Duration, t Terms, draw uint64) time.Duration {
	for {
		word := l.next.Load()
		wait, next, booked := t.place(now, decode(word), draw)
		if !booked || l.next.CompareAndSwap(word, encode(next)) {
			return wait
		}
	}
}

// place finds a place in a line that goes on at next.
func (t Terms) place(now, next time.Duration, draw uint64) (wait, after time.Duration, booked bool) {
	first, each := max(t.First, 0), max(min(t.Each, t.Most), 0) // whoever is further behind finds no place anyway
	at := max(next, add(now, first))
	if wait = at - now; wait < 0 { // an overflow
		wait = math.MaxInt64
	}
	if wait > t.Most && wait > first {
		return first + time.Duration(draw%uint64(max(t.Most-first, 0)+1)), next, false
	}
	// Those whose places are close to each other were refused close to each other, and whole seconds would bring them
	// back so: in the tenth part of a second that it took to refuse 200. A time around the place mixes them. As many
	// come in any moment as there are places, and a tenth more.
	behind := wait - first
	spread := min(behind, t.Most-first-behind/2)
	return first + behind/2 + time.Duration(draw%uint64(max(spread, 0)+1)), add(at, each), true
}

// encode makes the zero word the earliest time.
func encode(t time.Duration) uint64 { return uint64(t) ^ 1<<63 }

func decode(word uint64) time.Duration { return time.Duration(word ^ 1<<63) }

// add is a + b without overflow, for a b that is not negative.
func add(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}
