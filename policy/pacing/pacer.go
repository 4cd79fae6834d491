package pacing

import (
	"math"
	"sync"
	"time"
)

// Pacer gives out tokens. All methods may be called from many goroutines at once. Times are durations since any fixed
// origin, the same for all calls; a time a little earlier than one seen before does no harm. Make one with New.
type Pacer struct {
	mu      sync.Mutex
	config  Config
	started bool
	since   time.Duration // the beginning of the last ramp-up, long ago if there was none
	last    time.Duration // when the last token was due
	gap     float64       // from it to the next one, in tokens: 1 but for the jitter
}

// New returns a pacer for c. Values outside their range are moved to its nearest end.
func New(c Config) *Pacer { return &Pacer{config: c.WithDefaults(), since: math.MinInt64} }

// Take asks at now for the token of one attempt. It returns how long to wait before the attempt is sent, at most
// patience and at most the MaxWait of the policy; a patience below 0 counts as 0. If ok is false the attempt is refused
// and takes no token; wait is then how long it would have had to wait. A token that is not used is not given back. draw
// is 64 uniform random bits. Take takes one lock and does not allocate.
func (p *Pacer) Take(now time.Duration, draw uint64, patience time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.config
	if !c.Paces() {
		return 0, true
	}
	if !p.started {
		p.started, p.last = true, now
	}
	due := p.due(now)
	wait = max(minus(due, now), 0)
	if wait > max(min(patience, c.MaxWait), 0) {
		return wait, false
	}
	if p.last, p.gap = due, 1; due >= now { // with jitter, what a pause has earned could be more than the burst
		p.gap += c.Jitter * (2*unit(draw) - 1)
	}
	return wait, true
}

// due returns when the token of a caller that asks at now is due: not before the gap after the last token is over, and
// no earlier than the burst allows.
func (p *Pacer) due(now time.Duration) time.Duration {
	interval := float64(time.Second) / p.config.PerSecond
	return max(p.along(p.last, p.gap*interval), p.along(now, -interval*float64(p.config.Burst-1)))
}

// along returns the time that is full nanoseconds of the full pace after t. During the ramp-up such a nanosecond takes
// longer. The result is exact where the ramp-up has no part in it.
func (p *Pacer) along(t time.Duration, full float64) time.Duration {
	c, u := &p.config, minus(t, p.since)
	if full == 0 || c.RampUp == 0 || u >= c.RampUp && float64(u)+full >= float64(c.RampUp) {
		return plus(t, full)
	}
	return plus(p.since, c.when(c.granted(float64(u))+full))
}

// granted returns what the first u nanoseconds of the ramp-up are worth at the full pace: the area below the pace,
// which grows linearly.
func (c *Config) granted(u float64) float64 {
	ramp, from := float64(c.RampUp), c.RampUpFrom
	switch {
	case u >= ramp:
		return u - ramp*(1-from)/2
	case u <= 0: // time may run backwards a little
		return u * from
	}
	return u*from + u*u*(1-from)/(2*ramp)
}

// when is the inverse of granted.
func (c *Config) when(full float64) float64 {
	ramp, from := float64(c.RampUp), c.RampUpFrom
	switch {
	case full >= ramp*(1+from)/2:
		return full + ramp*(1-from)/2
	case full <= 0:
		return full / from
	}
	return 2 * full / (from + math.Sqrt(from*from+2*(1-from)*full/ramp))
}

// Restart begins the ramp-up anew, because the other side has just come back. The next token is then due at a random
// time within the first interval, drawn from draw, so that instances that saw it come back together do not go on
// together. Callers that wait keep their tokens. Without a ramp-up it changes nothing.
func (p *Pacer) Restart(now time.Duration, draw uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := &p.config; !c.Paces() || c.RampUp == 0 {
		return
	}
	if !p.started || p.last < now {
		p.last, p.gap = now, unit(draw)
	}
	p.started, p.since = true, now
}

// Reconfigure puts another policy in force. Tokens that were given out stay valid, and the time to the one after them
// is that of the new pace. A pacer that is switched off and on again goes on from where it was.
func (p *Pacer) Reconfigure(c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config = c.WithDefaults()
}

// State is the state of a pacer at one moment.
type State struct {
	PerSecond float64       // the pace now; 0 if it is adaptive
	Wait      time.Duration // of a caller that asks now
	AtOnce    int           // attempts that may begin together, by an adaptive pace; 0 for any number
}

// State reads the pacer at now, and changes nothing. It is the zero State while the pacing is off.
func (p *Pacer) State(now time.Duration) State {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.config
	if !c.Paces() {
		return State{}
	}
	s := State{PerSecond: c.PerSecond}
	if p.started {
		s.Wait = max(minus(p.due(now), now), 0)
	}
	if u := minus(now, p.since); c.RampUp > 0 && u < c.RampUp {
		s.PerSecond *= c.RampUpFrom + (1-c.RampUpFrom)*max(float64(u), 0)/float64(c.RampUp)
	}
	return s
}

// unit makes a number from 0 up to but not including 1 of random bits.
func unit(draw uint64) float64 { return float64(draw>>11) / (1 << 53) }

// minus is a - b, or the nearest time there is.
func minus(a, b time.Duration) time.Duration {
	switch d := a - b; {
	case b < 0 && d < a:
		return math.MaxInt64
	case b > 0 && d > a:
		return math.MinInt64
	default:
		return d
	}
}

// plus is t + d, rounded up, or the nearest time there is.
func plus(t time.Duration, d float64) time.Duration {
	d = math.Ceil(d)
	switch { // an int64 has no 2^63
	case d >= 1<<63:
		return math.MaxInt64
	case d <= -1<<63:
		return math.MinInt64
	}
	return minus(t, -time.Duration(d))
}
