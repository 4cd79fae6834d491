package breaker

import (
	"math"
	"time"
)

// rare is the surprise, in nats, from which an attempt without a success is an exception: one of twenty has none by
// then.
const rare = 3

// Doubt says whether an attempt that has failed is worth another one.
type Doubt uint8

// The answers of Discourages.
const (
	NoDoubt  Doubt = iota // it may be tried again
	Doubtful              // it should not be
	Lifeless              // not before there is a sign of life: it may wait for one, see Waiter.Sign
)

// Discourages reports whether an attempt that began then and has failed should not be tried again. A quick failure
// should not if successes have become slow; if others have failed since the last success, beyond chance, it should not
// before there is a sign of life, for which it may wait: nothing is known but that it would be in vain. After a
// slow attempt another one may hang as well, so it needs a reason: a success since it began, or that it is a rare
// exception and the only late one. A dependency that has never answered, or has done so a few times only, has none.
// Thresholds discourages nothing.
func (b *Breaker) Discourages(now, began time.Duration, scarce bool) Doubt {
	p := b.cur.Load()
	if !p.loop {
		return NoDoubt
	}
	doubt := b.loop.discourages(now, began, scarce)
	if doubt == Lifeless && (!p.holds() || scarce && p.cfg.WhileOpen != Hold) {
		return Doubtful
	}
	return doubt
}

// discourages is Breaker.Discourages, for who may wait.
func (a *adaptive) discourages(now, began time.Duration, scarce bool) Doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limits || a.current() == HalfOpen && a.line.newest != nil {
		return Doubtful // it would take the place of a call that has had none
	}
	if age := now - began; age >= a.learned.overdue() {
		if scarce || hangs(a, now, began) {
			return Doubtful
		}
		return NoDoubt
	}
	switch {
	case a.learned.strained():
		return Doubtful
	case a.learned.lifeless(a.failing):
		return Lifeless
	}
	return NoDoubt
}

// hangs reports whether another attempt may take as long as one that was slow, and began then.
func hangs(a *adaptive, now, began time.Duration) bool {
	if a.good > began {
		return false
	}
	overdue := a.learned.overdue()
	return a.learned.surprise(now-began) < rare || a.flights.began(a.good-overdue, now-overdue) > 0
}

// lifeless reports whether there were other failures since the last success than chance explains, by the surprise at
// all of them.
func (l *learned) lifeless(failing float32) bool {
	return l.successes > 0 && failing-l.surprise(math.MaxInt64) > rare
}
