package breaker

import "time"

// flights are the attempts that have begun and not ended: when each began, and under which serial number. Places are
// used again, so memory is that of the most attempts that were ever out at once.
type flights struct {
	places []flight
	free   []uint32 // places to use next
	serial uint32   // of the latest attempt
	out    int
	aside  int // of those that are out
}

type flight struct {
	start  time.Duration
	limit  time.Duration // how long it may take; 0: nobody has said
	serial uint32        // 0: the place is free
	// foreign: it began before the breaker began anew, or came to be of this kind: its result is nobody's.
	foreign bool
	waited  bool // for a sign of life: it is a retry
	aside   bool // its caller is still sending: it takes no place of a half-open circuit
}

// serials wrap around below the bit that marks the permits of this kind.
const serials = adaptiveMark - 1

// begin notes an attempt and returns its permit.
func (f *flights) begin(now, limit time.Duration) Permit {
	if f.serial = (f.serial + 1) & serials; f.serial == 0 {
		f.serial = 1
	}
	place := uint32(len(f.places))
	if n := len(f.free); n > 0 {
		place = f.free[n-1]
		f.free = f.free[:n-1]
		f.places[place] = flight{start: now, limit: limit, serial: f.serial}
	} else {
		f.places = append(f.places, flight{start: now, limit: limit, serial: f.serial})
	}
	f.out++
	return Permit{start: now, gen: adaptiveMark | f.serial, mark: place}
}

// end takes an attempt out and reports whether it was there.
func (f *flights) end(p Permit) (was flight, ok bool) {
	if int(p.mark) >= len(f.places) || f.places[p.mark].serial != p.gen&serials || p.gen&serials == 0 {
		return was, false
	}
	was = f.places[p.mark]
	f.places[p.mark].serial = 0
	f.free = append(f.free, p.mark)
	f.out--
	if was.aside {
		f.aside--
	}
	return was, true
}

// busy returns how many attempts are out that the dependency has, or could have if it took them.
func (f *flights) busy() int { return f.out - f.aside }

// since reports whether serial a was given after serial b.
func since(a, b uint32) bool { return (a-b)&serials != 0 && (a-b)&serials < serials/2 }

// sum adds up the surprise at all attempts that are out since good, when the last success was. Of one that was late by
// then already there is nothing to learn from its being later now: a success has come since it began.
func (f *flights) sum(now, good time.Duration, d *doubts) (nats float32) {
	for i := range f.places {
		if f.places[i].serial == 0 || f.places[i].aside {
			continue
		}
		start := f.places[i].start
		nats += d[class(now-start)]
		if start < good {
			nats -= d[class(good-start)]
		}
	}
	return nats
}

// began counts the attempts that are out and began after one time, and not after the other.
func (f *flights) began(after, until time.Duration) (n int) {
	for i := range f.places {
		if p := &f.places[i]; p.serial != 0 && p.start > after && p.start <= until {
			n++
		}
	}
	return n
}
