package shed

import (
	"math"
	"time"
)

const (
	alarm      = 5  // requests that are overdue, while nothing is answered: chance brings that once in a million
	marks      = 4  // looks in the time after which a request is overdue
	probeGap   = 12 // of the silence is between two probes
	alone      = 2  // times as often, where nobody waits
	longestGap = 500 * time.Millisecond
)

// hush notices when a service has stopped to answer. Each request that is overdue is a surprise of about three nats;
// when there are five of them, and nothing has been answered since they were let in, newcomers are held: nothing comes
// out of the service anyway, so nobody is worse off, and what would stand in it afterwards can be chosen from. The
// first answer ends it. Some are let in to see whether they are answered: what is inside may never be. Guarded by the
// shedder's lock.
type hush struct {
	silent bool
	alive  bool          // something was answered since the last look
	since  time.Duration // when something last was, about
	begun  uint32        // arrivals until then
	ok     uint32        // successes until the last look
	due    time.Duration // of the next look
	ring   [marks]uint32 // arrivals until the last looks
	looks  int           // since something was answered
	probed time.Duration
	over   time.Duration // when the last silence ended
}

// look notices that the service has become silent: arrived have come, ok were answered, inFlight are inside.
func (h *hush) look(now, overdue time.Duration, arrived, ok uint32, inFlight int) {
	h.due = now + max(overdue/marks, time.Millisecond)
	alive := h.alive || ok != h.ok
	h.alive, h.ok = false, ok
	switch {
	case h.silent && !alive:
		return
	case alive || arrived == h.begun || inFlight < alarm:
		h.silent, h.since, h.begun, h.looks = false, now, arrived, 0
		return
	}
	old := h.ring[h.looks%marks]
	h.ring[h.looks%marks] = arrived
	if h.looks++; h.looks > marks && (old-h.begun)&(1<<arrivalBits-1) >= alarm {
		h.silent, h.probed = true, now
	}
}

// gap is how long no probe is sent after the last one.
func (h *hush) gap() time.Duration { return min((h.probed-h.since)/probeGap, longestGap) }

// probe reports whether one may be let in to see whether it is answered. One that comes while nobody waits may be the
// probe of a gate before this one, which must not stand in two lines.
func (h *hush) probe(now time.Duration, waiting int) bool {
	gap := h.gap()
	if waiting == 0 {
		gap /= alone
	}
	if !h.silent || now-h.probed < gap {
		return false
	}
	h.probed = now
	return true
}

// overdue is how long a request takes at most, nearly always (RFC 6298), and at least a quarter of the patience: where
// less has passed, what is inside is still answered in time, in its order, and holding would only change that order.
func (b *pipe) overdue(patience time.Duration) time.Duration {
	d := time.Duration(b.base + max(4*b.spread, b.base))
	return max(min(max(d, patience/4), patience/2), windowLeast)
}

// varied learns how far from base requests are.
func (b *pipe) varied(sojourn time.Duration) {
	if b.ready && !b.engaged {
		b.spread += (math.Abs(float64(sojourn)-b.base) - b.spread) / 64
	}
}

// attend notices when the service has stopped to answer, and lets some in to see whether it does again. The lock is
// held.
func (s *Shedder) attend(now time.Duration, woken *chain) {
	h := &s.pipe.hush
	if !s.pipe.ready || s.room.Load() == 0 || s.mode.Load()&(modeOff|modeShadow) != 0 {
		h.due = now + windowOf(s.patience())
		return
	}
	word := s.word.Load()
	h.look(now, s.pipe.overdue(s.patience()), uint32(word>>arrivalShift), uint32(s.ended.Load()), inFlight(word))
	if h.silent != s.silent.Load() {
		s.silent.Store(h.silent)
		s.apply()
		s.serve(now, woken)
	}
	if n := s.queue.len(); n > 0 && h.probe(now, n) {
		s.hand(now, h.prober(now, s.patience(), s.queue.lists[s.queue.most()]), woken)
	}
	if h.silent {
		h.due = min(h.due, now+max(h.gap()/alone, time.Millisecond))
	}
}

// prober is who of l is let in while the service is silent: the oldest, as long as it has as much time left as the
// silence has lasted, and then the newest, who can wait longest for an answer.
func (h *hush) prober(now, patience time.Duration, l list) *Waiter {
	left := l.oldest.deadline - now
	if l.oldest.deadline == 0 {
		left = l.oldest.since + patience - now
	}
	if left >= now-h.since {
		return l.oldest
	}
	return l.newest
}

// heard notes a sign of life, and reports whether it ends a silence.
func (h *hush) heard(now time.Duration) bool {
	h.alive = true
	if !h.silent {
		return false
	}
	h.silent, h.over = false, now
	return true
}
