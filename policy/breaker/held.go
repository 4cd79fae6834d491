package breaker

import (
	"math"
	"time"
)

// Never is the time of Hold and Look for a waiter that need not look: it is woken.
const Never time.Duration = math.MaxInt64

// Waiter is one call that waits for a circuit that is not closed, or for a sign of life. It is used for one wait, and
// must not move meanwhile.
type Waiter struct {
	// Wake is called when the call should Look: in the goroutine of whoever makes it so, under no lock. It should only
	// signal. It may be called while Hold, Look or Leave has not returned yet, and once more than needed.
	Wake func()
	// Sign has the call wait for a sign of life, as Discourages allows: for a success of an attempt that begins after
	// Hold. What it is admitted to is its retry.
	Sign bool
	// Among is how many calls may wait for a sign of life at once, this one included; 2048 at most. For one more the
	// oldest is refused, who has the least time left. Without Sign it means nothing.
	Among int
	// Last says, with Sign, that the call has no other retry left: it is tried late rather than early.
	Last bool

	older, newer *Waiter
	deadline     time.Duration // when the caller stops waiting
	patience     time.Duration // how long its attempt may take; 0: nobody has said
	failed       time.Duration // when its attempt has failed, with Sign
	waits        bool
	admitted     bool // it has permit, and does not know it yet
	permit       Permit
}

// line is who waits, in the order of their coming.
type line struct {
	oldest, newest *Waiter
	// lookout is the one whose driver comes back when the next probe is due, so that a thousand waiters need one timer.
	lookout *Waiter
	length  int
}

func (l *line) add(w *Waiter) {
	w.waits, w.older, w.newer = true, l.newest, nil
	if l.newest = w; w.older != nil {
		w.older.newer = w
	} else {
		l.oldest = w
	}
	if l.lookout == nil {
		l.lookout = w
	}
	l.length++
}

func (l *line) remove(w *Waiter) {
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		l.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		l.newest = w.older
	}
	if l.lookout == w {
		l.lookout = nil
	}
	w.older, w.newer, w.waits = nil, nil, false
	l.length--
}

// take takes the newest out that has time for an attempt of usual length, which is the best probe, or the oldest, so
// that as many as can be are in time. Those without are left where they are: their time is nearly up.
func (l *line) take(now, usual time.Duration, oldest bool) *Waiter {
	w := l.able(now, usual)
	if oldest && w != nil {
		for w = l.oldest; after(now, usual) >= w.deadline; {
			w = w.newer
		}
	}
	if w != nil {
		l.remove(w)
	}
	return w
}

// able returns the newest who has time for an attempt of usual length; nil if there is none.
func (l *line) able(now, usual time.Duration) *Waiter {
	for w := l.newest; w != nil; w = w.older {
		if after(now, usual) < w.deadline {
			return w
		}
	}
	return nil
}

// hold puts a waiter in its line. It returns whom to wake: who has had to leave it.
func (a *adaptive) hold(now, deadline, patience time.Duration, w *Waiter) (woken []*Waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.deadline, w.patience = deadline, patience
	if !w.Sign {
		a.line.add(w)
		return nil
	}
	if left := a.vigil.join(now, w); left != nil {
		return []*Waiter{left}
	}
	return nil
}

// leaves takes a waiter out of its line, if it is in it.
func leaves(a *adaptive, w *Waiter) {
	switch {
	case !w.waits:
	case w.Sign:
		a.vigil.line.remove(w)
	default:
		a.line.remove(w)
	}
}

// look brings the state up to now, and returns whether the waiter is admitted; if not, when it is to look again.
func (a *adaptive) look(now time.Duration, w *Waiter) (look time.Duration, woken []*Waiter, change Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change = a.judge(now)
	if w.Sign && w.waits {
		alone(a, now, w)
	}
	woken = a.release(now)
	return a.lookAt(now, w), woken, change
}

// lookAt returns when the driver of a waiter is to look. Where that time has come already nobody in the line has time
// for an attempt: then nobody looks out, until somebody comes who has.
func (a *adaptive) lookAt(now time.Duration, w *Waiter) time.Duration {
	if w.Sign && w.waits {
		if at := lonelyAt(a, w); at > now {
			return at
		}
		return after(now, a.learned.lonely()) // nobody may go now, or he has no time for it
	}
	if w.admitted || a.line.lookout != w {
		return Never
	}
	at := a.probeAt
	if a.current() != Open {
		silence := a.learned.silence()
		at = max(after(a.good, silence), after(a.judged, max(silence/16, 1)))
	}
	if at <= now {
		a.line.lookout = nil
		return Never
	}
	return at
}

// leave takes a waiter out of the line. If it has been given a permit, it has it now.
func (a *adaptive) leave(now time.Duration, w *Waiter) (woken []*Waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	leaves(a, w)
	return a.release(now)
}

// withdraw takes a waiter out of the line where nobody may wait any more.
func (a *adaptive) withdraw(w *Waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	leaves(a, w)
}

// release lets those who wait begin, as far as attempts and retries may. It returns whom to wake: them, and who looks
// out from now on.
func (a *adaptive) release(now time.Duration) (woken []*Waiter) {
	usual := a.learned.smoothed
	if a.current() == Closed {
		usual = 0 // nobody needs what somebody without much time takes
	}
	for a.line.newest != nil && a.admits(now) {
		w := a.line.take(now, usual, a.current() == HalfOpen)
		if w == nil {
			break
		}
		w.permit, w.admitted = a.begin(now, w.patience), true
		woken = append(woken, w)
	}
	if a.line.lookout == nil && a.line.newest != nil {
		if w := a.line.able(now, usual); w != nil {
			a.line.lookout = w
			woken = append(woken, w)
		}
	}
	if a.vigil.line.newest != nil && a.current() == Closed {
		woken = signalled(a, now, woken)
	}
	return woken
}

// wake wakes waiters. No lock is held.
func wake(woken []*Waiter) {
	for _, w := range woken {
		if w.Wake != nil {
			w.Wake()
		}
	}
}
