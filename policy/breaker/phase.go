package breaker

import "time"

// phase is what every call reads: one pointer load gives a consistent picture of state, configuration and
// generation. It is never written after it has been published; a change of anything publishes another one.
type phase struct {
	cfg     *Config // as WithDefaults returned it
	state   State
	quiet   bool // closed, and Allow has nothing to note
	loop    bool // of the kind Adaptive: Breaker.loop has the state
	shadow  bool // decide, reject nothing
	forced  bool // open until reconfigured
	advised bool // open or half-open since another instance said so
	gen     uint32
	since   time.Duration // when the state was entered
	until   time.Duration // open: end of the wait; ramp-up: end of the ramp
	ev      *evidence     // closed and ramp-up
}

// settle fills in what follows from the other fields.
func (p phase) settle(c *Config) *phase {
	p.cfg = c
	p.shadow = c.Mode == Shadow
	p.forced = c.forced()
	p.loop = c.Kind == Adaptive && !p.forced
	p.quiet = p.state == Closed && p.ev.hanging == nil && (!p.loop || c.Disabled)
	if p.state == RampUp {
		p.until = after(p.since, c.RampUp)
	}
	return &p
}

// holds reports whether a call that is refused may wait.
func (p *phase) holds() bool {
	return p.loop && !p.shadow && !p.cfg.Disabled && p.cfg.WhileOpen != Refuse
}

// refuse is the answer to a call the breaker does not want: yes in shadow mode, no otherwise.
func (p *phase) refuse() (Permit, bool) { return Permit{mark: refused}, p.shadow }

// admits decides about one call during ramp-up: the admitted share grows linearly from RampUpFrom to 1.
func (p *phase) admits(now time.Duration, draw uint64) bool {
	done := max(0, float64(now-p.since)/float64(p.cfg.RampUp)) // time may run backwards a little
	return unit(draw) < p.cfg.RampUpFrom+(1-p.cfg.RampUpFrom)*done
}

// verdict is the evidence's, by the minimum that suits the state. A ramp-up starts with an empty window and few
// calls, and exists to notice early that the dependency is not back, so a quarter of the calls must do.
func (p *phase) verdict(now time.Duration) (reason string, pending bool) {
	minimum := p.cfg.MinimumNumberOfCalls
	if p.state == RampUp {
		minimum = (minimum + 3) / 4
	}
	return p.ev.verdict(now, p.cfg, int64(minimum))
}
