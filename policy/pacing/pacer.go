package pacing

import (
	"sync"
	"time"
)

// Pacer gives turns. All methods may be called from many goroutines at once. Times are durations since any fixed origin,
// the same for all calls. Make one with New.
type Pacer struct {
	mu      sync.Mutex
	config  Config
	next    time.Duration // when the bucket has the next turn, had it no burst
	since   time.Duration // the beginning of the ramp-up
	started bool
}

// New returns a pacer for c. Values outside their range are moved to its nearest end.
func New(c Config) *Pacer { return &Pacer{config: c.WithDefaults()} }

// Turn asks for one attempt at now. It answers how long to wait before it is sent, which is at most patience and at most the
// MaxWait of the policy; false is a refusal, which takes nothing. A turn that is not used is not given back. draw is 64
// uniform random bits. Its cost is one lock; it does not allocate.
func (p *Pacer) Turn(now time.Duration, draw uint64, patience time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.config
	if !c.Enabled() {
		return 0, true
	}
	if !p.started {
		p.started, p.since, p.next = true, now, now
	}
	interval := p.interval(now)
	earliest := p.next
	if spare := float64(interval) * float64(c.Burst-1); spare < float64(now)-float64(p.next) {
		earliest = now - time.Duration(spare)
	}
	wait = max(earliest-now, 0)
	if wait > min(patience, c.MaxWait) {
		return wait, false
	}
	unit := float64(draw>>11) / (1 << 53)
	step := float64(interval) * (1 + c.Jitter*(2*unit-1))
	p.next = earliest + time.Duration(step)
	return wait, true
}

// interval is the time between two turns at the pace of now.
func (p *Pacer) interval(now time.Duration) time.Duration {
	return time.Duration(float64(time.Second) / (p.config.PerSecond * p.share(now)))
}

// share is how much of the full pace is granted at now.
func (p *Pacer) share(now time.Duration) float64 {
	c := &p.config
	if !p.started || c.RampUp == 0 || now-p.since >= c.RampUp {
		return 1
	}
	done := max(0, float64(now-p.since)/float64(c.RampUp)) // time may run backwards a little
	return c.RampUpFrom + (1-c.RampUpFrom)*done
}

// Restart begins the ramp-up anew: the other side has just come back. The next turn comes at a random time within the first
// interval, drawn from draw, so that instances that saw it come back together do not go on together; those who wait keep
// their turns.
func (p *Pacer) Restart(now time.Duration, draw uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started, p.since = true, now
	if c := &p.config; c.Enabled() && c.RampUp > 0 {
		unit := float64(draw>>11) / (1 << 53)
		p.next = max(p.next, now+time.Duration(unit*float64(p.interval(now))))
	}
}

// Reconfigure puts another policy in force. Turns that were given stay given.
func (p *Pacer) Reconfigure(now time.Duration, c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.config
	p.config = c.WithDefaults()
	if p.started && p.config.Enabled() && was.Enabled() && p.next > now {
		// What is ahead was counted in intervals of the old pace.
		p.next = now + time.Duration(float64(p.next-now)*min(was.PerSecond/p.config.PerSecond, 1e6))
	}
}

// State is where a pacer stands.
type State struct {
	PerSecond float64       // the pace now
	Wait      time.Duration // of whoever asks now
}

// State reads the pacer at now, and changes nothing.
func (p *Pacer) State(now time.Duration) State {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.config.Enabled() {
		return State{}
	}
	s := State{PerSecond: p.config.PerSecond * p.share(now)}
	if p.started {
		s.Wait = max(p.next-now, 0)
	}
	return s
}
