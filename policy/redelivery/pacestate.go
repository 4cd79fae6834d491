package redelivery

import "time"

// PaceState is a pace at one moment.
type PaceState struct {
	Draining bool
	Normal   float64 // deliveries per second before the trouble; 0 when not known
	Limit    float64 // attempts per second now; 0 for none
	Behind   int64   // of a drain: messages that are due and not delivered
	// ETA is how long the drain will take from now: at the pace of its last 10 s, live messages taken off, and before
	// that as if as many came as is normal. 0 outside a drain, and when nobody knows.
	ETA time.Duration
}

// State reads it.
func (p *Pace) State(now time.Duration) PaceState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.draining.Load() {
		p.learnt.count(now, 0)
	}
	s := PaceState{Draining: p.draining.Load(), Normal: p.usual}
	if s.Draining {
		s.Limit = p.limit(now)
		if p.recovering {
			spare := p.c.Factor*p.usual - p.usual
			if p.c.MaxRate > 0 {
				spare = min(spare, p.c.MaxRate-p.usual)
			}
			s.Behind, s.ETA = p.drain.left, p.drain.eta(spare)
		}
	} else if n := p.learnt.busiest(); n > 0 {
		s.Normal = n
	}
	return s
}
