package breaker

import "time"

// Reconfigure makes c the configuration, from the next call on. The state survives: an open breaker stays open
// (no longer than the new longest wait from now), probes and ramp-up go on under the new limits, the window is
// kept when SlidingWindow stays the same. Calls in flight keep counting, unless slow-call detection itself
// changes. Switching the breaker off, forcing it open, and undoing either start anew: closed, or forced open.
//
// It returns the change of state that this made; From and To are the same when it made none. onChange is not called:
// the caller knows, and can report it when it holds no lock of its own.
func (b *Breaker) Reconfigure(now time.Duration, c Config) Change {
	c = c.effective()
	b.mu.Lock()
	was := b.cur.Load()
	change := b.adopt(was, &c, now)
	woken := b.loop.reconfigured(was, b.cur.Load())
	b.mu.Unlock()
	wake(woken)
	return change
}

func (b *Breaker) adopt(p *phase, c *Config, now time.Duration) Change {
	switch {
	case *p.cfg == *c:
		return Change{}
	case p.loop != (c.Kind == Adaptive && !c.forced()) || p.loop && p.cfg.Disabled != c.Disabled:
		b.reopens = 0
		next := phase{state: Closed, ev: newEvidence(c, nil, nil)}
		reason := reasonReconfigured
		if c.forced() {
			next, reason = phase{state: Open}, reasonForced
		}
		return b.enter(next, c, now, reason)
	case p.loop: // whose state is not that of the phase
		b.cur.Store(p.settle(c))
		return Change{}
	case c.forced():
		return b.enter(phase{state: Open}, c, now, reasonForced)
	case p.forced || !c.Enabled() || !p.cfg.Enabled():
		b.reopens = 0
		return b.enter(phase{state: Closed, ev: newEvidence(c, nil, nil)}, c, now, reasonReconfigured)
	}
	next := *p
	switch p.state {
	case Open:
		next.until = min(next.until, after(now, c.MaxWaitDurationInOpenState))
	case Closed, RampUp:
		next.ev = newEvidence(c, p.cfg, p.ev)
		if !c.sameHanging(p.cfg) { // the calls in flight are not in the new books
			return b.enter(next, c, now, reasonReconfigured)
		}
	}
	return b.publish(next, c, now, reasonReconfigured)
}
