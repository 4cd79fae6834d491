package population

import (
	"math"
	"time"
)

// fate is what comes of the attempts of one slot, in shares of them, and over which time, in slots since the start, the
// answers of those served are spread.
type fate struct{ served, refused, timedOut, from, to float64 }

// fluid is the server of a cohort run: a tank of work that drains at a constant rate. It is the server of Exact for
// attempts without number.
type fluid struct {
	c       *Config
	clock   calendar
	backlog float64 // attempts that wait; without a queue, what was taken ahead of its time
	limit   float64 // of the backlog
}

func newFluid(c *Config) fluid {
	f := fluid{c: c, clock: calendar{outages: c.Outages}}
	switch {
	case c.QueueLimit < 0:
		f.limit = math.Inf(1)
	case c.QueueLimit == 0:
		f.limit = max(float64(c.rate()*c.Slot.Seconds()), 1)
	default:
		f.limit = float64(c.QueueLimit) + 1 // and the one that is taken next
	}
	return f
}

// slot takes in the attempts of one slot; slots are run in order.
func (f *fluid) slot(slot int, all float64) fate {
	begin := int64(slot) * int64(f.c.Slot)
	end := begin + int64(f.c.Slot)
	up, _ := f.clock.at(begin)
	down, hanging := f.lost(begin, end)
	first := f.wait(begin, up)
	later, _ := f.clock.at(end)

	var r fate
	r.refused = down
	if f.c.QueueLimit == 0 {
		r.timedOut = hanging
	}
	joins := max(1-r.refused-r.timedOut, 0)
	drains := float64(f.c.rate() * time.Duration(later-up).Seconds())
	room := max(f.limit-f.backlog+drains, 0)
	accepted := joins
	if float64(all*joins) > room {
		accepted = room / all
		r.refused += joins - accepted
	}
	f.backlog = max(f.backlog+float64(all*accepted)-drains, 0)
	f.answer(&r, accepted, slot, first, f.wait(end, later))
	return r
}

// lost returns the shares of a time in which arrivals are refused, and in which they are held.
func (f *fluid) lost(begin, end int64) (refused, held float64) {
	for _, o := range f.clock.outages[f.clock.next:] {
		overlap := min(end, int64(o.To)) - max(begin, int64(o.From))
		if overlap <= 0 {
			break
		}
		if o.Hang {
			held += float64(overlap)
		} else {
			refused += float64(overlap)
		}
	}
	return refused / float64(end-begin), held / float64(end-begin)
}

// wait returns how long an attempt that joins at a moment waits, in ns. The clock has just been asked about it.
func (f *fluid) wait(t, up int64) float64 {
	if f.c.QueueLimit == 0 {
		return 0
	}
	const longest = 1e17 // ns; nobody waits for three years
	work := min(float64(f.backlog/f.c.rate()*1e9), longest)
	return float64(f.clock.real(up+int64(work)) - t)
}

// answer sees to those accepted: all of a slot are answered in time, or none. Their waits change evenly from the begin
// to the end of the slot.
func (f *fluid) answer(r *fate, accepted float64, slot int, first, last float64) {
	service, width := float64(f.c.ServiceTime), float64(f.c.Slot)
	if f.c.AttemptTimeout > 0 && (first+last)/2+service > float64(f.c.AttemptTimeout) {
		r.timedOut += accepted
		return
	}
	r.served = accepted
	r.from = float64(slot) + (first+service)/width
	r.to = max(float64(slot+1)+(last+service)/width, r.from)
}
