package breaker

import "time"

// State returns the state now. An open breaker whose wait is over stays open, and a ramp-up that is over stays
// a ramp-up, until the next Allow.
func (b *Breaker) State() State {
	if p := b.cur.Load(); !p.loop {
		return p.state
	}
	return b.loop.current()
}

// ClosedOff reports whether nothing at all would be let through at now: Rejecting, but for the ramp-up, during which
// first attempts pass.
func (b *Breaker) ClosedOff(now time.Duration) bool {
	return b.State() != RampUp && b.Rejecting(now)
}

// Rejecting reports whether a retry should be given up at now rather than slept for: open before the end of the wait,
// forced open, half-open with all permits out, or ramping up, when what may be sent belongs to first attempts. It takes
// no permit and changes nothing. Shadow mode, which refuses nothing, is not rejecting.
func (b *Breaker) Rejecting(now time.Duration) bool {
	p := b.cur.Load()
	switch {
	case p.shadow:
		return false
	case p.loop:
		return b.loop.rejecting(now)
	case p.state == Open:
		return p.forced || now < p.until
	case p.state == RampUp:
		return now < p.until
	case p.state == HalfOpen:
		b.mu.Lock()
		defer b.mu.Unlock()
		p = b.cur.Load()
		return p.state == HalfOpen && b.probes.full(now, p.cfg.PermittedCallsInHalfOpen)
	}
	return false
}

// RetryIn returns how much of an open breaker's wait is left at now, as a hint for Retry-After. It is 0 when
// the breaker is not open, in shadow mode, and when it is forced open, because then nobody knows.
func (b *Breaker) RetryIn(now time.Duration) time.Duration {
	p := b.cur.Load()
	if p.loop && !p.shadow {
		return b.loop.retryIn(now)
	}
	if p.state != Open || p.shadow || p.forced {
		return 0
	}
	return max(p.until-now, 0)
}

// TracksStart reports whether a closed breaker looks at the time given to Allow, which it does with slow-call
// detection. When it does not and State is Closed, any earlier time will do, and a driver may save a clock read.
func (b *Breaker) TracksStart() bool {
	p := b.cur.Load()
	return p.loop || p.cfg.SlowCallRateThreshold > 0
}

// TracksEnd reports whether a closed breaker looks at the time given to Record for a Success, which it does
// with a time window or slow-call detection. A Failure always needs the time.
func (b *Breaker) TracksEnd() bool {
	p := b.cur.Load()
	c := p.cfg
	return p.loop || c.SlowCallRateThreshold > 0 || c.FailureRateThreshold > 0 && c.SlidingWindow.Calls == 0
}

// Snapshot is the state of a breaker at one moment, for pages, metrics and logs.
type Snapshot struct {
	State State
	Mode  Mode
	// FailureRate and SlowRate are fractions, 0 when there are no calls. Hanging calls are part of SlowRate.
	FailureRate, SlowRate float64
	// Calls is how many finished calls the window holds; 0 when no rate threshold is set. Of the kind Adaptive it is how
	// many calls are remembered.
	Calls int
	// Hanging is how many calls run longer than the slow threshold; 0 without slow-call detection.
	Hanging int
	// Probes is how many permits of a half-open breaker are out and within their lease.
	Probes int
	// Generation changes whenever results of the calls running then stop counting.
	Generation uint32
	// Openings is how often the breaker opened by itself since New.
	Openings uint64
	// Since is when the breaker got into its State.
	Since time.Duration
	// OpenUntil is when an open breaker will let probes through; 0 when it is not open, or forced open.
	OpenUntil time.Duration
	// Learned is what the kind Adaptive has learned, and why it refuses; zero with Thresholds.
	Learned Learned
}

// Learned is what a breaker of the kind Adaptive has learned.
type Learned struct {
	// Latency is what a success takes, smoothed. 0: there was none yet.
	Latency time.Duration
	// Overdue is the age at which a success is late.
	Overdue time.Duration
	// Patience is what attempts are given, smoothed: their attempt timeout or the time to their deadline. 0: no limit.
	Patience time.Duration
	// Silence is the time since the last success, without times in which nobody asked.
	Silence time.Duration
	// Surprise is how surprising the attempts without a success since then are, in nats; Alarm is where the circuit
	// opens. 0 while the silence is shorter than twice Overdue.
	Surprise, Alarm float64
	// InFlight is how many attempts are out, and Late how many of them are overdue.
	InFlight, Late int
	// Held is how many calls wait for the circuit, and Waiting how many have failed and wait for a sign of life.
	Held, Waiting int
	// Places is how many attempts may be out while half-open; 0 in other states.
	Places int
	// Limits reports whether it is half-open because answers come too late, and not after it was open.
	Limits bool
}

// Snapshot returns the state at now. It changes nothing. Beside calls in progress its numbers may be off by a few.
func (b *Breaker) Snapshot(now time.Duration) Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.cur.Load()
	s := Snapshot{State: p.state, Mode: p.cfg.Mode, Generation: p.gen, Openings: b.openings, Since: p.since}
	if p.loop && !p.cfg.Disabled {
		b.loop.snapshot(now, &s)
		return s
	}
	if p.state == Open && !p.forced {
		s.OpenUntil = p.until
	}
	if p.state == HalfOpen {
		s.Probes = b.probes.running(now)
	}
	if p.ev != nil {
		t, hanging := p.ev.tally(now), p.ev.hangingAt(now)
		s.FailureRate = rate(t.failed, t.calls)
		s.SlowRate = rate(t.slow+hanging, t.calls+hanging)
		s.Calls, s.Hanging = int(t.calls), int(hanging)
	}
	return s
}
