package breaker

import "time"

// silence is how long a breaker that had a success must go without another one before it believes that its dependency
// is down because somebody else says so.
const silence = 2 * time.Second

// advice is what a breaker remembers of the findings of others. The breaker's lock guards it.
type advice struct {
	asked     time.Duration // when works was last taken back
	was       *evidence     // in which it was
	deafUntil time.Duration // the last advice was wrong: others may have a problem of their own
}

// Finding reports whether the breaker is open because of its own calls, and for how long yet: what is worth reporting
// to other instances. Being open on advice, forced open, or open in shadow mode is not.
func (b *Breaker) Finding(now time.Duration) (wait time.Duration, ok bool) {
	p := b.cur.Load()
	if p.loop {
		return b.loop.finding(now, p)
	}
	if p.state != Open || p.forced || p.shadow || p.advised || !p.cfg.Fleet || now >= p.until {
		return 0, false
	}
	return p.until - now, true
}

// Advise reports to the breaker that another instance found the dependency down and will not call it for wait. A closed
// breaker with Config.Fleet opens for as long, at most for its longest wait, and then probes by itself. It stays closed
// on evidence to the contrary: a success within the last two seconds or so, unless its own calls have begun to fail
// too. Where advice opened it and its probes then succeeded, it hears no other for the longest wait: an instance with a
// problem of its own must not keep the others from calling.
//
// An opening on advice is not one of Snapshot.Openings and is no Finding, so instances cannot keep each other open.
// Repeat the advice every quarter second while the finding stands: one that is lost does no harm then. It reports
// whether the breaker opened; onChange is called.
func (b *Breaker) Advise(now, wait time.Duration) bool {
	if p := b.cur.Load(); p.loop {
		change := b.loop.advise(now, p, wait)
		b.notify(change)
		return change.From != change.To
	} else if p.state != Closed || !p.cfg.Fleet || !p.cfg.Enabled() || wait <= 0 {
		return false
	}
	b.mu.Lock()
	p := b.cur.Load()
	if p.state != Closed || now < b.advice.deafUntil || !b.advice.agrees(now, p) {
		b.mu.Unlock()
		return false
	}
	b.reopens = -1 // an opening of its own that follows is the first
	until := after(now, min(wait, p.cfg.MaxWaitDurationInOpenState))
	change := b.enter(phase{state: Open, until: until, advised: true}, p.cfg, now, reasonAdvised)
	b.mu.Unlock()
	b.notify(change)
	return true
}

// agrees reports whether what the breaker has seen itself allows for the dependency being down.
func (a *advice) agrees(now time.Duration, p *phase) bool {
	ev := p.ev
	if reason, _ := ev.verdict(now, p.cfg, 1); reason != "" || ev.row.length() >= 2 {
		return true // its own calls say so, only not clearly enough yet
	}
	waited := a.was != ev || now-a.asked >= silence
	if !ev.works.Load() {
		return waited
	}
	if waited {
		a.asked, a.was = now, ev
		ev.works.Store(false)
	}
	return false
}
