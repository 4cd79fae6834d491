package shed

import "time"

// Lend gives the place of p to others for a while, because its request waits for its client and the service has
// nothing to do for it. What became of the request stays open, so nothing is learned. Resume has to follow before
// p is released. A permit without a place, and one that is lent already, are left alone.
func (s *Shedder) Lend(now time.Duration, p *Permit) {
	if p.kind&(held|lent) != held {
		return
	}
	s.Release(now, Permit{caller: p.caller, kind: held}, Ignored)
	p.kind |= lent
	p.start = now - p.start
}

// Resume takes a place for p again, at once and whatever the limit says: the work has begun, and may hold what others
// wait for. So there may be more requests in flight than the limit for a while, by as many as were lent at a time; no
// other is admitted until some have ended. How long p was lent is not a part of the time that Release learns from. A
// permit that is not lent is left alone.
func (s *Shedder) Resume(now time.Duration, p *Permit) {
	if p.kind&lent == 0 {
		return
	}
	p.kind &^= lent
	p.start = now - p.start
	for {
		word := s.word.Load()
		if inFlight(word) >= unlimited { // there is no room to count it
			*p = Permit{}
			return
		}
		if s.word.CompareAndSwap(word, word+oneInFlight) {
			s.count(p.caller, 1)
			return
		}
	}
}
