package redelivery

import "time"

// PaceState is a pace at one moment.
type PaceState struct {
	Draining bool
	Normal   float64 // deliveries per second before the trouble; 0 when not known
	Limit    float64 // attempts per second now; 0 for none
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
	} else if n := p.learnt.busiest(); n > 0 {
		s.Normal = n
	}
	return s
}
