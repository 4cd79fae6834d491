package redelivery

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// What a drain begins with and how it goes on.
const (
	rampFrom  = 0.1                   // of the limit
	burstFor  = 20 * time.Millisecond // of the limit may come at once
	debtFor   = 10 * time.Second      // of the limit may be owed
	patience  = 10 * time.Minute      // after which the limit may grow
	growth    = 1.1                   // a minute, as long as the backlog would take more than
	tooLong   = 10 * time.Hour
	calm      = 60          // tellings of Behind without anybody waiting: nothing is left to bound
	longWait  = time.Second // the longest wait that is returned
	shortWait = longWait / 2
)

// Pace bounds how fast a backlog is worked off after trouble. Before, it only learns what is normal. It is for all
// consumers of one service in a process together; it is safe for concurrent use.
//
// # What is normal
//
// The busiest 10 s of the last 10 min, in deliveries per second that succeeded, trouble and drains left out: what the
// service has lately been seen to bear from this process. A pause of 10 min or more says nothing: until 10 s after it,
// what was normal before counts too. After a start in the middle of an outage nothing is known; then only maxRate
// bounds the drain. After a start when the outage is over there has been no trouble, and nothing bounds it.
//
// # The bound
//
// From the first word of trouble until the backlog is gone, in every window of time t of a drain, the deliveries
// started here are at most
//
//	rate × t + burst
//
// where the burst is what 20 ms bring, at least 1, and rate and burst together are the limit: factor × normal, at most
// maxRate, in any one second. Attempts that the guard adds are charged when a delivery is done, so that the ones after
// it pay for them: at most what 10 s of the limit bring. Until something has succeeded the limit is a tenth, then rises
// evenly to all of it in rampUp; more trouble begins that again. Live messages count like those of the backlog. If
// these alone have grown to more than the limit, the backlog would never be gone: so from 10 min after the recovery the
// limit grows by 10 % in each minute that takes so little off the backlog that the rest would need more than 10 h.
// Behind is what reports it.
//
// It is the limit of one process: when others have gone, and this one has got their partitions, their share of what is
// normal is not its own.
//
// # Waiting
//
// A caller that must wait gets the time to ask again, at most 1 s from now, and each caller another time, as tokens
// come. That is no reservation: whoever asks when there is a token gets it. A caller that does not come back costs
// nothing.
//
// Outside a drain Start costs 2 ns and Done 15 ns, during one some 25 ns each; nothing is allocated. A Pace takes 2.5
// KB.
type Pace struct {
	draining atomic.Bool // written under mu
	mu       sync.Mutex
	c        Drain
	learnt   normal
	usual    float64 // what was normal before the trouble, in deliveries per second; 0 when not known

	probed     bool          // something was started since the trouble: a success may be of it
	recovering bool          // and has succeeded
	since      time.Duration // when it did

	grown  float64       // by how much the limit has been raised since, 1 for not
	looked time.Duration // when that was last decided
	left   int64         // what was behind then
	moved  bool          // something was started since Behind was called
	waited bool          // somebody had to wait since then
	drain  drained       // how it goes
	easy   int           // tellings in a row with the one and without the other

	tokens float64       // may be owed
	filled time.Duration // when tokens were last counted
	token  time.Duration // when the next one comes, which somebody who must wait was given
	next   time.Duration // the next moment to give to somebody who must wait
}

// NewPace makes one. c is a Config.Drain with its defaults.
func NewPace(c Drain) *Pace { return &Pace{c: c.WithDefaults()} }

// Reconfigure changes the bounds; what was learnt stays.
func (p *Pace) Reconfigure(c Drain) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.c = c.WithDefaults()
	if p.c.Disabled {
		p.draining.Store(false)
	}
}

// Start asks for one delivery now. If it must wait, wait is how long; the caller asks again then. Each delivery that
// may start is followed by one Done.
func (p *Pace) Start(now time.Duration) (wait time.Duration) {
	if !p.draining.Load() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.fill(now)
	if limit == 0 {
		p.probed = true
		return 0
	}
	if p.tokens >= 1-1e-9 { // a wait is whole nanoseconds, so that a token can be short of a trillionth
		p.tokens--
		p.probed, p.moved = true, true
		return 0
	}
	p.waited = true
	return p.stagger(now, limit)
}

// stagger returns when a caller asks again: one of them when the next token comes, so that none is lost, the others
// each another time.
func (p *Pace) stagger(now time.Duration, limit float64) time.Duration {
	each := time.Duration(min(1/limit, 0.05) * float64(time.Second))
	first := now + min(seconds((1-p.tokens)/limit), shortWait)
	if first > p.token+each/2 {
		p.token, p.next = first, max(p.next, first)
		return max(first-now, 1)
	}
	if p.next = max(p.next+each, first); p.next > now+longWait {
		p.next = first
	}
	return max(p.next-now, 1)
}

// Done reports how many attempts a delivery made, 0 if the service has not seen it, and whether it was handled.
// Attempts after the first are charged; of none, what Start took is given back.
func (p *Pace) Done(now time.Duration, attempts int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.draining.Load() {
		if ok && attempts > 0 { // until the circuit opens, failures come again from the retry topics: more than is normal
			p.learnt.count(now, 1)
		} else if attempts > 0 {
			p.learnt.fail(now)
		}
		return
	}
	if limit := p.fill(now); limit > 0 {
		p.tokens = min(max(p.tokens-float64(attempts-1), -limit*debtFor.Seconds()), burst(limit))
	}
	if ok && attempts > 0 && p.probed && !p.recovering {
		p.recovering, p.since = true, now
		p.grown, p.looked, p.left, p.easy, p.drain = 1, now, math.MaxInt64, 0, drained{}
	}
}

// Trouble reports that the service has failed: its circuit is open. It may be called as often as that is seen. The
// drain begins when it stops being said and deliveries succeed again.
func (p *Pace) Trouble(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c.Disabled {
		return
	}
	p.probed, p.recovering = false, false
	if p.draining.Load() {
		p.fill(now)
		return
	}
	p.learnt.count(now, 0)
	if n := p.learnt.busiest(); n > 0 {
		p.usual = n
	}
	p.learnt.miss(now)
	p.draining.Store(true)
	p.tokens, p.filled, p.token, p.next = 1, now, now, now
}

// Behind reports how many messages are due and not delivered, in all partitions of this process: once a second or so.
// The drain ends, but not before the ramp is over, when there are no more than what normally comes in 100 ms: so many
// are always on their way. It ends, too, when for a minute deliveries were started and none had to wait: where handlers
// are slow, something is always due.
func (p *Pace) Behind(now time.Duration, due int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.draining.Load() || !p.recovering {
		return
	}
	p.drain.behind(now, due)
	if p.easy++; p.waited || !p.moved {
		p.easy = 0
	}
	p.moved, p.waited = false, false
	switch {
	case now < p.since+p.c.RampUp:
	case float64(due) <= p.usual/10 || p.easy >= calm:
		p.draining.Store(false)
		p.learnt.miss(now)
	case now >= p.looked+time.Minute:
		p.fill(now)
		if off := float64(p.left) - float64(due); now > p.since+patience && off < float64(due)/tooLong.Minutes() {
			p.grown = min(p.grown*growth, 1e9)
		}
		p.looked, p.left = now, due
	}
}

// fill counts the tokens that have come until now, and returns how many come in a second; 0 if nothing is bounded.
func (p *Pace) fill(now time.Duration) float64 {
	rate := p.rate(now)
	if now > p.filled {
		mean := (p.rate(p.filled) + rate) / 2
		p.tokens += mean * (now - p.filled).Seconds()
		p.filled = now
	}
	p.tokens = min(p.tokens, burst(rate))
	return rate
}

// limit is how many attempts a second may be made at a moment of the drain; 0 for any number.
func (p *Pace) limit(now time.Duration) float64 {
	share, passed := 1.0, now-p.since
	switch {
	case !p.recovering || passed < 0:
		share = rampFrom
	case passed < p.c.RampUp:
		share = rampFrom + (1-rampFrom)*passed.Seconds()/p.c.RampUp.Seconds()
	default:
		share = p.grown
	}
	if p.usual == 0 {
		return p.c.MaxRate * min(share, 1)
	}
	limit := p.c.Factor * p.usual * share
	if p.c.MaxRate > 0 {
		limit = min(limit, p.c.MaxRate)
	}
	return limit
}

// rate is how fast tokens come: so much below the limit that a burst and a second's tokens together are the limit of a
// second.
func (p *Pace) rate(now time.Duration) float64 { return p.limit(now) / (1 + burstFor.Seconds()) }

// burst is how many attempts may be made at once.
func burst(limit float64) float64 { return max(limit*burstFor.Seconds(), 1) }

func seconds(s float64) time.Duration {
	return time.Duration(min(math.Ceil(s*float64(time.Second)), math.MaxInt64/2))
}
