package budget

import (
	"sync/atomic"
	"time"
)

// loneAfter is how long nobody may have made a first attempt before a repeat counts as one.
const loneAfter = time.Minute

// mostLone is how many repeats may pass for first attempts before one of them has ended.
const mostLone = 64

// Drawn is what a Repeat has changed in a budget, for Undo.
type Drawn struct {
	// taken out, in millionths; below zero if the repeat passed as a first attempt, which puts some in
	tokens int64
	since  time.Duration // lone.since before
	more   bool          // it was one of lone.more
}

// Repeat is Withdraw for a call that somebody above makes again: a library that retries by itself, around the guard.
// Such an attempt is an extra one, and earns nothing.
//
// Where there are repeats only, some pass as first attempts, whatever the balance: else a program that only ever
// repeats would be refused for ever, as nothing would fill its budget again. So it is where a number is wrong, and
// where a dependency gets only what has failed at another. When nobody has made a first attempt for a minute, one
// repeat in a minute passes, and for each attempt that succeeds two more. A failure ends that, and a first attempt
// does.
func (b *Budget) Repeat(now time.Duration) (d Drawn, ok bool) {
	if b.Withdraw(now, Transient) {
		if s := b.set.Load(); s.kind != "" {
			d.tokens = s.cost(Transient)
		}
		return d, true
	}
	return b.alone(now)
}

// alone asks whether a repeat that the budget has refused may pass as a first attempt, because there are none.
func (b *Budget) alone(now time.Duration) (d Drawn, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.set.Load()
	if !s.banked() {
		return d, s.kind == ""
	}
	b.roll(now, s)
	l := &b.lone
	d.since = l.since
	switch earned := b.deposited.Load(); {
	case earned != l.earned || !l.known:
		l.earned, l.since, l.known = earned, now, true
		l.alone.Store(false)
		l.more.Store(0)
		return d, false
	case l.take():
		d.more = true
	case now-l.since < loneAfter:
		return d, false
	default:
		l.alone.Store(true)
	}
	one := max(b.perFirst.Load(), 1)
	b.deposited.Add(one)
	l.earned += one
	l.since = now
	d.tokens = -one
	return d, true
}

// Undo takes back what a Repeat has done, for an attempt that is not made after all because another budget, which has
// to agree, has said no. Only who has just asked may call it.
func (b *Budget) Undo(now time.Duration, d Drawn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s := b.set.Load(); {
	case s.banked():
		b.bank.spent.Add(-d.tokens)
	case s.kind == Tokens && d.tokens > 0:
		b.bucket.refill(now, s)
		b.bucket.put(d.tokens, s)
	}
	if d.tokens < 0 { // nobody has used what it would have earned, and it may ask again at once
		b.expired -= d.tokens
		b.lone.since = d.since
		if d.more {
			b.lone.more.Add(1)
		}
	}
}

// lone is since when no first attempt has been seen, by those who repeat and are refused. The budget's lock guards the
// fields that are not atomic.
type lone struct {
	earned int64
	since  time.Duration // or since one of them passed
	known  bool
	alone  atomic.Bool  // they pass for first attempts
	more   atomic.Int32 // so many at once
}

// take takes one of those that may pass.
func (l *lone) take() bool {
	for n := l.more.Load(); n > 0; n = l.more.Load() {
		if l.more.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// result notes how an attempt ended while repeats pass for first attempts.
func (l *lone) result(success bool) {
	if !success {
		l.more.Store(0)
		return
	}
	for n := l.more.Load(); !l.more.CompareAndSwap(n, min(n+2, mostLone)); n = l.more.Load() {
	}
}
