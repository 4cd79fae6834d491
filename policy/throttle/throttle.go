package throttle

import (
	"sync"
	"sync/atomic"
	"time"
)

// Throttle counts requests and accepts. It is shared state: all requests to one dependency use the same Throttle. It is
// safe for concurrent use; now is the time since any fixed origin, and one before a now already seen counts as that
// one.
type Throttle struct {
	on      atomic.Bool
	mu      sync.Mutex // guards what follows, for some 10 ns
	c       Config
	w       window
	refused uint64
}

// New returns a throttle that has seen nothing. Values outside their range are moved to the nearest end.
func New(c Config) *Throttle {
	t := &Throttle{}
	t.Reconfigure(0, c)
	return t
}

// Allow counts a request at the moment it is made and reports whether it may be sent: ok. over reports whether there
// were too many for what the dependency accepts: it was refused, or would have been but for the shadow mode. rnd is a
// random number, uniform over all values. What was not over must be followed by Record; what was over must not, even if
// it was sent.
func (t *Throttle) Allow(now time.Duration, rnd uint64) (ok, over bool) {
	if !t.on.Load() {
		return true, false
	}
	t.mu.Lock()
	t.w.advance(now)
	step := t.w.at(t.w.head)
	if p := t.rejection(); p > 0 && float64(rnd>>11) < p*(1<<53) {
		over = true
		step.refused++
		t.refused++
	}
	step.made++
	t.w.made++
	ok = !over || t.c.Shadow
	t.mu.Unlock()
	return ok, over
}

// Record records the outcome of a request for which Allow said at time began that it is not over.
func (t *Throttle) Record(now, began time.Duration, r Result) {
	if !t.on.Load() {
		return
	}
	t.mu.Lock()
	t.w.advance(now)
	if step := t.w.of(now, began); step != nil && step.accepted+step.rejected < step.sent() {
		switch r {
		case Accepted:
			step.accepted++
			t.w.accepted++
		case Rejected:
			step.rejected++
		default:
			step.made--
			t.w.made--
		}
	}
	t.mu.Unlock()
}

// Count counts a request of which Record has said Neutral again, as one that began at began: until then its caller was
// still sending it. Record must follow, with the same began.
func (t *Throttle) Count(now, began time.Duration) {
	if !t.on.Load() {
		return
	}
	t.mu.Lock()
	t.w.advance(now)
	if step := t.w.of(now, began); step != nil {
		step.made++
		t.w.made++
	}
	t.mu.Unlock()
}

// Reconfigure puts c into effect and keeps what was counted. A throttle that is switched off counts nothing meanwhile;
// requests without an answer at that time are forgotten.
func (t *Throttle) Reconfigure(now time.Duration, c Config) {
	c = c.WithDefaults()
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.on.Swap(c.Enabled())
	if !c.Enabled() {
		return
	}
	if !was {
		t.w.settle()
	}
	t.c = c
	if t.w.begun {
		t.w.advance(now)
	}
	t.w.resize(c.Window / steps)
}

// rejection is the share of the requests that is refused now.
func (t *Throttle) rejection() float64 {
	// The corrections of window.rejection only lower it, so that where this is 0 the window need not be looked at.
	if t.w.made < int64(t.c.MinimumNumberOfCalls) || float64(t.w.made) <= t.c.K*float64(t.w.accepted) {
		return 0
	}
	return min(t.w.rejection(t.c.K), t.c.MaxRejection)
}

// State is what a throttle looks like at one moment.
type State struct {
	Requests, Accepts float64 // in the window; requests are all that were made, those refused here included
	Rejection         float64 // the share of requests that is refused now, 0 to 1
	Refused           uint64  // so far; in shadow mode, what would have been
	Waiting           int     // requests of the window that were let pass, and whose end has not been recorded yet
}

// State returns the counts of the window that ends now.
func (t *Throttle) State(now time.Duration) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := State{Refused: t.refused}
	if !t.on.Load() {
		return s
	}
	t.w.advance(now)
	for i := range t.w.tally {
		s.Requests += float64(t.w.tally[i].made)
		s.Accepts += float64(t.w.tally[i].accepted)
		s.Waiting += int(t.w.tally[i].sent() - t.w.tally[i].accepted - t.w.tally[i].rejected)
	}
	s.Rejection = t.rejection()
	return s
}
