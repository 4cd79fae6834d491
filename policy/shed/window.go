package shed

import (
	"time"
)

// learnPatience takes the time that an arrival has left into account. Two at once may count as one.
func (s *Shedder) learnPatience(now, deadline time.Duration) {
	old, left := s.waits.Load(), int64(min(deadline-now, longest))
	if old == 0 {
		old = left
	}
	s.waits.Store(old + (left-old)/64)
}

// patience is how long requests may take. The lock is held.
func (s *Shedder) patience() time.Duration {
	if t := s.waits.Load(); t != 0 {
		return time.Duration(t)
	}
	if !s.pipe.ready {
		return time.Hour
	}
	return max(time.Second, time.Duration(20*s.pipe.base))
}

// window closes a window of the pipe's. The lock is held.
func (s *Shedder) window(now time.Duration, woken *chain) {
	b := &s.pipe
	word, ended := s.word.Load(), s.ended.Load()
	b.close(now, view{inFlight: inFlight(word), ok: uint32(ended), ended: uint32(ended >> 32),
		arrived: uint32(word >> arrivalShift), held: s.heldBack.Swap(waiting(word) > 0) || waiting(word) > 0,
		patience: s.patience(), late: s.late.Load(), told: s.waits.Load() != 0})
	s.halfT.Store(int64(s.patience()) / 2)
	s.apply()
	s.serve(now, woken)
}

// turn does what is due now: a window of the pipe's ends, or a slot of arrivals.
func (s *Shedder) turn(now time.Duration) {
	if s.bbr.Load() {
		woken := chain{}
		now = s.lock(now)
		b := &s.pipe
		w := windowOf(s.patience())
		if !b.began {
			b.began, b.begin = true, now
		}
		if now-b.begin >= w {
			s.window(now, &woken)
		}
		if now >= b.hush.due {
			s.attend(now, &woken)
		}
		s.nextRoll.Store(int64(min(b.begin+w, s.slotEnd, b.hush.due)))
		s.unlock(now, &woken)
	}
	s.roll(now)
}

// roll brings the counts of arrivals, and what follows from them, up to now.
func (s *Shedder) roll(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.slotEnd {
		return
	}
	word := s.word.Load()
	lately := s.arrived.roll(now, word)
	s.arrived.tooMany.Store(s.c.Enabled() && lately.total() >= fewest && lately.retryShare() > s.c.MaxRetryShare)
	places := int(s.places[CriticalPlus-Sheddable].Load())
	if places >= unlimited { // only the processor refuses
		places = inFlight(word)
	}
	takes := s.learn.latency
	if s.c.Concurrency == BBR {
		takes = s.pipe.base
	}
	if takes == 0 {
		takes = float64(time.Second)
	}
	s.arrived.each.Store(int64(min(takes, float64(longest)) / float64(max(places, 1))))
	s.learn.tick()
	s.mask.Store(s.learn.mask)
	if now-s.cpu.at > cpuStale {
		s.cpu.forget()
		s.setMode(modeBusy, false)
	}
	s.slotEnd = s.arrived.current + slot
	s.nextSlot.Store(int64(s.slotEnd))
	next := s.slotEnd
	if s.c.Concurrency == BBR {
		next = min(next, s.pipe.begin+windowOf(s.patience()), s.pipe.hush.due)
	}
	s.nextRoll.Store(int64(next))
}
