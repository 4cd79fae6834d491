package hedge

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// MinSamples is how many successful attempts must be known before a quantile of
// them is used: with fewer, one slow attempt is several per cent of all. A Quantile q
// means its share only from 1/(1−q) successes on; until then the delay is the longest
// latency known.
const MinSamples = 50

const (
	window  = 30 * time.Second // how long one window of latencies is filled at least
	refresh = time.Second      // how often the quantile is computed
	never   = math.MaxInt64    // the next refresh of a policy that does not learn
)

// A Policy says when to send a second copy. All methods are safe for concurrent
// use and never wait, other than for a computation of some microseconds by
// Reconfigure or State. Times named now are since an arbitrary fixed origin and the
// same clock for all calls.
type Policy struct {
	delay     atomic.Int64  // until the next copy; 0: do not hedge now
	refreshAt atomic.Int64  // when the quantile is computed next
	young     atomic.Uint32 // which window is being filled
	maxHedges atomic.Uint32

	mu         sync.Mutex // held by the one call that looks at the counts
	config     Config     // bounded
	youngSince time.Duration

	// The fields above are read by every call and hardly ever written. Every
	// success writes the counts, so they are kept off those cache lines.
	_       [64]byte
	windows [2]histogram
}

// New returns the policy of c. It fills in defaults and moves values outside
// their range to the nearest end. A Delay or Quantile that is not above zero is
// not set. New never fails; errors are found where the configuration is read.
func New(c Config) *Policy {
	p := &Policy{youngSince: never}
	p.configure(c)
	p.delay.Store(int64(p.config.Delay))
	p.refreshAt.Store(math.MinInt64) // the first call computes
	return p
}

// Delay returns how long after one copy of an attempt the next is sent, or false
// when there is to be no next one: hedging is off, or the policy is still
// learning and has no fixed delay to use meanwhile.
func (p *Policy) Delay(now time.Duration) (time.Duration, bool) {
	if int64(now) >= p.refreshAt.Load() {
		p.update(now)
	}
	d := time.Duration(p.delay.Load())
	return d, d > 0
}

// MaxHedges returns how many extra copies one attempt may have; 0 when hedging is off.
func (p *Policy) MaxHedges() int { return int(p.maxHedges.Load()) }

// Record learns from a successful attempt. The latency is the time from
// sending its first copy to the success, whichever copy succeeded. Do not
// record failures, or copies that were cancelled. A latency below zero counts as
// zero. Without a Quantile there is nothing to learn and Record does nothing.
func (p *Policy) Record(now, latency time.Duration) {
	at := p.refreshAt.Load()
	if int64(now) >= at {
		p.update(now)
		at = p.refreshAt.Load()
	}
	if at != never {
		p.windows[p.young.Load()].add(latency)
	}
}

// Reconfigure changes the configuration at once and keeps what was learned. It
// treats c as [New] does. An attempt that is already waiting keeps its delay.
func (p *Policy) Reconfigure(now time.Duration, c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.configure(c)
	p.compute(now)
}

// State returns what the policy knows now. To look changes nothing: the delay of the calls to come is computed when
// they would have computed it anyway.
func (p *Policy) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	delay, learned, samples := p.learn()
	return State{Delay: delay, Learned: learned, Samples: int(samples)}
}

// update computes the delay anew, unless another call is about to.
func (p *Policy) update(now time.Duration) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	if int64(now) >= p.refreshAt.Load() {
		p.compute(now)
	}
}

// configure takes on a configuration. The caller holds mu, or is New.
func (p *Policy) configure(c Config) {
	p.config = c.WithDefaults().bounded()
	p.maxHedges.Store(uint32(p.config.MaxHedges))
}

// learn works the delay out from the configuration and the samples. The caller holds mu.
func (p *Policy) learn() (delay time.Duration, learned bool, samples uint64) {
	delay = p.config.Delay
	if p.config.Quantile == 0 {
		return delay, false, 0
	}
	samples = p.windows[0].total() + p.windows[1].total()
	if samples >= MinSamples {
		delay = max(quantile(&p.windows[0], &p.windows[1], samples, p.config.Quantile), p.config.MinDelay)
		learned = true
	}
	return delay, learned, samples
}

// compute sets the delay, and moves the windows on when it is time. The caller
// holds mu.
func (p *Policy) compute(now time.Duration) {
	delay, _, _ := p.learn()
	p.delay.Store(int64(delay))
	if p.config.Quantile == 0 {
		p.refreshAt.Store(never)
		return
	}
	p.refreshAt.Store(int64(now + refresh))
	young := p.young.Load()
	fresh := p.windows[young].total()
	switch {
	case p.youngSince == never: // the first time
		p.youngSince = now
	case now >= p.youngSince+window && fresh >= MinSamples:
		p.windows[1-young].clear()
		p.young.Store(1 - young)
		p.youngSince = now
	}
}
