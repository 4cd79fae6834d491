package shed

import (
	"math"
	"time"
)

// How BBR acts, on the evidence of sim/harm's systems for tuning and of the simulated services of this package's tests.
const (
	enough     = 20   // successes that a throughput is measured over, where there are so many
	leastSeen  = 8    // successes below which a window cannot tell that requests stand
	warm       = 8    // times what a request takes: before that only the fast ones have ended
	bounded    = 0.5  // of the patience's worth of throughput in flight: the limit while nothing stands
	tooLong    = 0.5  // of the patience, in the service: requests stand
	decay      = 0.98 // of the peak in a window, while requests are held
	growth     = 1.1  // of the limit in a window, while it is held and requests are quick
	judged     = 64   // answers, after which a halved limit is judged: chance makes an eighth
	tooLate    = 0.1  // of the answers: the limit may be too high
	helps      = 1.05 // times the answers in time: halving the limit helped
	quickly    = 1.5  // times what a request takes: an answer that came no later stood in no queue
	quietFor   = 4    // windows in which nobody was held: the bound is not needed
	roomFor    = 4    // times what is answered within the patience: so many may wait
	leastPipe  = 8    // in flight
	leastBound = 16   // in flight, while nothing stands
)

// pipe finds the limit of BBR: how much is in flight in a service that is busy and whose answers are in time. It is so
// called for what it compares the service with: so much goes in, so much comes out in a second. Guarded by the
// shedder's lock. Times are nanoseconds.
//
// Patience is how long arrivals can wait: the mean of what their deadlines leave, else a second or twenty times what a
// request takes. As many requests as the service answers within half of it are let in; the others are held.
type pipe struct {
	engaged  bool // somebody was held lately, or requests stand
	standing bool
	ready    bool // base can be believed
	limit    float64
	base     float64 // what a request takes
	spread   float64 // how far from base requests are, in the mean
	lately   float64 // what the last few took that came after the last silence
	usual    float64 // in flight
	most     float64 // in flight, lately
	peak     float64 // successes in a nanosecond
	able     float64 // the same, and forgotten as slowly while requests are held
	quiet    int     // windows in which nobody was held
	thin     thinning
	hush     hush

	begin       time.Duration // of the window
	began       bool
	least, last time.Duration // the quickest success in the window, the mean of the last one with any
	sum         float64
	n           int
	answers     int // of n
	took        float64
	before      view // the counters as the window began
	ring        [16]passed
	at          int

	first  time.Duration // when the first window with a success began
	total  int           // successes
	silent bool          // nothing has ended
	since  time.Duration // since then
	probed time.Duration
}

// passed is how many successes there were in which time.
type passed struct {
	n    uint32
	took time.Duration
}

// view is what the shedder counts.
type view struct {
	inFlight           int
	ok, ended, arrived uint32
	late               uint32 // given up after half of the patience
	held               bool
	told               bool // patience is what deadlines leave
	patience           time.Duration
}

// sample takes into account how long a request took. One that its caller has given up would have taken longer; nobody
// knows how much, so it says that requests stand, and not what they take.
func (b *pipe) sample(start, sojourn time.Duration, answered bool) {
	sojourn = min(max(sojourn, 1), longest)
	if b.n == 0 || sojourn < b.least {
		b.least = sojourn
	}
	b.sum += float64(sojourn)
	b.n++
	if start >= b.hush.over && !b.hush.silent {
		b.lately += (float64(sojourn) - b.lately) / 16
	}
	if answered {
		b.varied(sojourn)
		b.took += float64(sojourn)
		b.answers++
	}
}

// windowOf is how long a window lasts.
func windowOf(patience time.Duration) time.Duration {
	return min(max(patience/8, windowLeast), 250*time.Millisecond)
}

// throughput is over the last windows in which there are enough successes, and for longer than one takes: requests that
// came together may end together.
func (b *pipe) throughput() float64 {
	n, took := 0, time.Duration(0)
	for i := range b.ring {
		r := b.ring[(b.at-i+len(b.ring))%len(b.ring)]
		n += int(r.n)
		took += r.took
		if n >= enough && took >= b.last*3/2 {
			break
		}
	}
	return float64(n) / float64(max(took, 1))
}

// close ends a window.
func (b *pipe) close(now time.Duration, v view) {
	t, ok := float64(v.patience), v.ok-b.before.ok
	if b.hush.silent { // nothing is learned from nothing
		if b.engaged { // but it had stood before
			b.peak, b.limit = decay*b.peak, max(decay*b.limit, b.usual, leastPipe)
		}
		b.before, b.begin, b.n, b.sum, b.answers, b.took = v, now, 0, 0, 0, 0
		return
	}
	b.at = (b.at + 1) % len(b.ring)
	b.ring[b.at] = passed{ok, now - b.begin}
	b.listen(now, v)
	mean := b.sum / float64(max(b.n, 1))
	if b.n > 0 {
		b.last = time.Duration(mean)
	}
	switch {
	case b.n >= leastSeen:
		b.standing = float64(b.least) > t*tooLong || mean > t*tooLong && mean > 2*b.base && b.base > 0
	case b.n > 0 && b.standing:
		b.standing = float64(b.least) > t*tooLong
	case b.n == 0 && ok == 0 && !b.standing:
		b.standing = b.silent && now-b.since > v.patience
	}
	if ok > 0 && !b.ready {
		if b.total == 0 {
			b.first = b.begin
		}
		b.ready = b.total >= enough && float64(now-b.first) > warm*mean
	}
	b.total = min(b.total+int(ok), enough)
	takes := b.took / float64(max(b.answers, 1))
	if b.answers > 0 && b.ready && !b.standing && (!b.engaged || takes < b.base) {
		b.learn(takes)
	}
	thr := b.throughput()
	b.able = max(thr, b.able*(1-1.0/512))
	if !b.engaged {
		b.rest(now, v, t, thr)
	}
	if b.engaged {
		if b.quiet++; v.held {
			b.quiet = 0
		}
		b.engaged = b.quiet <= quietFor || b.standing
		b.steer(now, v, t, thr)
	}
	b.before, b.begin, b.n, b.sum, b.answers, b.took = v, now, 0, 0, 0, 0
}

// listen notices when something has arrived and nothing has ended since.
func (b *pipe) listen(now time.Duration, v view) {
	switch {
	case v.ended != b.before.ended || v.inFlight == 0:
		b.silent = false
	case !b.silent && v.arrived != b.before.arrived:
		b.silent, b.since, b.probed = true, now, now
	}
}

// learn learns from the mean of a window in which nothing stood.
func (b *pipe) learn(mean float64) {
	w := float64(min(b.answers, 16)) / 64
	if b.base == 0 {
		b.base, b.spread = mean, mean/2
	}
	b.base += w * (mean - b.base)
}

// rest follows the service while nobody is held, and engages.
func (b *pipe) rest(now time.Duration, v view, t, thr float64) {
	flying := float64(v.inFlight)
	b.usual += (flying - b.usual) / 64
	b.most = max(flying, b.most*(1-1.0/256))
	b.peak = max(thr, b.peak*(1-1.0/512))
	most, crowded := b.crowded(now, v, t, thr)
	if b.standing || v.held || crowded {
		b.engaged, b.quiet = true, 0
		b.thin = thinning{cut: 1, began: v, at: now}
		if b.limit = b.bound(t); b.limit == 0 {
			b.limit = flying
		}
		if crowded {
			b.limit = min(b.limit, most)
		}
	}
}

// crowded reports whether more is in flight than is answered in time at the rate of the window, and all answers show
// it, and how much that is (Little's law). It takes deadlines to know.
func (b *pipe) crowded(now time.Duration, v view, t, thr float64) (most float64, yes bool) {
	if !v.told || !b.ready || b.n < leastSeen || float64(b.least) < quickly*b.base {
		return 0, false
	}
	ended := v.ended - b.before.ended - (v.late - b.before.late) // those that failed, too: their places are free
	thr = max(thr, float64(ended)/float64(now-b.begin))
	most = max(thr*t*tooLong, 2*b.usual, leastBound)
	return most, float64(v.inFlight) > most
}

// steer finds the limit while requests are held.
func (b *pipe) steer(now time.Duration, v view, t, thr float64) {
	b.peak = max(thr, decay*b.peak)
	b.thin.judge(now, v)
	part := max(t*tooLong*b.thin.cut, min(2*b.base, t*tooLong))
	switch limit := b.peak * part; {
	case b.thin.cut < 1:
		b.limit = max(leastPipe, b.usual, limit)
	case b.standing:
		b.limit = max(leastPipe, b.usual, limit)
	case b.n > 0:
		b.limit = max(growth*b.limit, bounded*thr*t, leastPipe)
	default:
		b.limit = max(b.limit, bounded*thr*t, leastPipe)
	}
	if most, yes := b.crowded(now, v, t, thr); yes {
		b.limit = min(b.limit, max(most, leastPipe))
	}
	// Places that are never given back would keep everybody out: every so often one more is tried.
	if b.silent && now-b.probed > 8*v.patience {
		b.probed, b.limit = now, max(b.limit, float64(v.inFlight+1))
	}
}

// thinning halves the limit of a service that works on all that it has at once, so that much of it is late: it would
// answer more in time if it had less.
type thinning struct {
	cut    float64       // what is left of the limit
	began  view          // the counters as the round began
	at     time.Duration // when it began
	before float64       // answers in time in a nanosecond, before the last cut; 0: there was none
	rounds int           // until the next cut
	next   int           // rounds, after a cut that did not help
}

// judge looks at a round: enough answers, and long enough that all that was let in before it has ended.
func (h *thinning) judge(now time.Duration, v view) {
	ok, late := v.ok-h.began.ok, v.late-h.began.late
	if ok+late < judged || now-h.at < v.patience {
		return
	}
	inTime := float64(ok) / float64(now-h.at)
	switch {
	case h.before > 0 && inTime < h.before*helps:
		h.cut, h.before = min(2*h.cut, 1), 0
		h.next = min(2*h.next+8, 256)
		h.rounds = h.next
	case h.rounds > 0:
		h.rounds--
		h.before = 0
	case v.held && float64(late) > tooLate*float64(ok+late):
		h.cut, h.before = max(h.cut/2, 1.0/64), inTime
	default:
		h.before = 0
	}
	h.began, h.at = v, now
}

// bound is the limit while nobody is held; 0: none.
func (b *pipe) bound(t float64) float64 {
	if !b.ready {
		return 0
	}
	return max(bounded*b.peak*t, 2*b.most, leastBound)
}

// places is the limit in effect.
func (b *pipe) places(patience time.Duration, c *Config) int {
	limit := float64(unlimited)
	if b.hush.silent {
		limit = float64(c.MinConcurrency)
	} else if b.engaged {
		limit = max(b.limit, float64(c.MinConcurrency))
	} else if bound := b.bound(float64(patience)); bound > 0 {
		limit = max(bound, float64(c.MinConcurrency))
	}
	return int(min(math.Ceil(limit), float64(c.MaxConcurrency)))
}

// room is how many can wait and still be answered in time.
func (b *pipe) room(patience time.Duration) int {
	return int(min(max(b.able*float64(patience), leastBound), most))
}
