package breaker

import (
	"math"
	"time"
)

// reset begins anew. Attempts that are out stay known, so that their permits find their places. It returns who waited,
// to be woken.
func (a *adaptive) reset() (woken []*Waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.flights.places {
		a.flights.places[i].foreign = true
	}
	a.learned = learned{}
	a.begun, a.good, a.idle, a.judged, a.ended, a.failing, a.costs = false, 0, 0, math.MinInt64/2, 0, 0, 0
	a.typical, a.advised, a.out, a.places = 0, false, 0, 0
	a.congestion = congestion{}
	a.state.Store(uint32(Closed))
	woken = waiters(a)
	for _, w := range woken {
		leaves(a, w)
	}
	a.vigil = vigil{}
	return woken
}

// waiters returns all who wait.
func waiters(a *adaptive) (all []*Waiter) {
	for _, l := range []*line{&a.line, &a.vigil.line} {
		for w := l.newest; w != nil; w = w.older {
			all = append(all, w)
		}
	}
	return all
}

// reconfigured begins anew, if the breaker has come to be of this kind, or no longer is. It returns who is to be woken,
// because nobody may wait any more.
func (a *adaptive) reconfigured(was, is *phase) (all []*Waiter) {
	switch {
	case was.loop != is.loop || was.loop && was.cfg.Disabled != is.cfg.Disabled:
		return a.reset()
	case is.holds() || !was.holds():
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return waiters(a)
}

// awaits reports whether a waiter has still to be admitted, or is in no line only because all has begun anew.
func awaits(a *adaptive, w *Waiter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return w.waits || !w.Sign
}

// taken returns the permit that a waiter has been given, once.
func (a *adaptive) taken(w *Waiter) (Permit, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ok := w.admitted
	w.admitted = false
	return w.permit, ok
}

// waiting is Breaker.Patience.
func (a *adaptive) waiting(timeout time.Duration, scarce bool) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if timeout <= 0 {
		timeout = a.learned.limit()
	}
	if scarce {
		timeout = min(timeout, a.learned.silence())
	}
	return timeout
}

// rejecting reports whether an attempt would be refused now.
func (a *adaptive) rejecting(now time.Duration) bool {
	if a.current() == Closed {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.current() {
	case Open:
		return now < a.probeAt
	case HalfOpen:
		return a.out >= int(a.places)
	}
	return false
}

// retryIn returns when the next probe may be sent.
func (a *adaptive) retryIn(now time.Duration) time.Duration {
	if a.current() != Open {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.probeAt-now, 0)
}

// brokeOff takes an answer that has begun well and broke off. One that has flowed for longer than callers wait says
// nothing: streams that somebody cuts every hour are no outage.
func (a *adaptive) brokeOff(now, start time.Duration) Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now-start >= 2*a.learned.limit() {
		return Change{}
	}
	a.learned.pending++
	a.ended += a.learned.surprise(math.MaxInt64)
	return a.judge(now)
}

// finding is Breaker.Finding: the silence that this instance has found is one that the others have, too.
func (a *adaptive) finding(now time.Duration, p *phase) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current() != Open || p.shadow || a.advised || !p.cfg.Fleet {
		return 0, false
	}
	return longestGap, true
}

// advise is Breaker.Advise: the circuit opens if its own silence is long enough to be one.
func (a *adaptive) advise(now time.Duration, p *phase, wait time.Duration) Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	silent := a.begun && now-a.good >= a.learned.silence() // also if nobody has called
	if a.current() != Closed || !p.cfg.Fleet || p.cfg.Disabled || wait <= 0 || !silent {
		return Change{}
	}
	change := a.open(now, reasonAdvised)
	a.openings--
	a.advised = true
	return change
}

// snapshot writes what there is to say of the state.
func (a *adaptive) snapshot(now time.Duration, s *Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.State, s.Since, s.Openings = a.current(), a.since, a.openings
	l := &s.Learned
	*l = Learned{Latency: a.learned.smoothed, Overdue: a.learned.overdue(), Patience: a.learned.patience,
		Alarm: alarm, InFlight: a.flights.out, Held: a.line.length,
		Waiting: a.vigil.line.length}
	if a.flights.out > 0 || s.State != Closed {
		l.Silence = max(now-a.good, 0)
	}
	l.Late = a.flights.began(math.MinInt64, now-l.Overdue)
	if a.silent(now) {
		a.learned.surprises(&a.doubts)
		l.Surprise = float64(a.flights.sum(now, a.good, &a.doubts) + a.ended)
	}
	failed := a.learned.failures + a.learned.pending
	if all := a.learned.successes + failed; all > 0 {
		s.Calls, s.FailureRate = int(all), float64(failed/all)
	}
	switch s.State {
	case Open:
		s.OpenUntil = a.probeAt
		s.Probes = a.out
	case HalfOpen:
		s.Probes = a.out
		l.Places, l.Limits = int(a.places), a.limits
	}
	s.Hanging = l.Late
}
