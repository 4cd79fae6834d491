package breaker

import "time"

// flights are the attempts that have begun and not ended: when each began, and under which serial number. Places are
// used again, so memory is that of the most attempts that were ever out at once.
type flights struct {
	places []flight
	free   []uint32 // places to use next
	serial uint32   // of the latest attempt
	out    int
}

type flight struct {
	start  time.Duration
	limit  time.Duration // how long it may take; 0: nobody has said
	serial uint32        // 0: the place is free
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
		f.places[place] = flight{now, limit, f.serial}
	} else {
		f.places = append(f.places, flight{now, limit, f.serial})
	}
	f.out++
	return Permit{start: now, gen: adaptiveMark | f.serial, mark: place}
}

// end takes an attempt out and reports whether it was there, and how long it might take.
func (f *flights) end(p Permit) (limit time.Duration, ok bool) {
	if int(p.mark) >= len(f.places) || f.places[p.mark].serial != p.gen&serials || p.gen&serials == 0 {
		return 0, false
	}
	limit = f.places[p.mark].limit
	f.places[p.mark].serial = 0
	f.free = append(f.free, p.mark)
	f.out--
	return limit, true
}

// since reports whether serial a was given after serial b.
func since(a, b uint32) bool { return (a-b)&serials != 0 && (a-b)&serials < serials/2 }

// sum adds up the surprise at all attempts that are out, and counts those older than an age.
func (f *flights) sum(now time.Duration, d *doubts, age time.Duration) (nats float32, older int) {
	for i := range f.places {
		if f.places[i].serial == 0 {
			continue
		}
		at := now - f.places[i].start
		nats += d[class(at)]
		if at >= age {
			older++
		}
	}
	return nats, older
}
