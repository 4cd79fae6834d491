package breaker

import "time"

// vigil is the calls that have failed quickly while nothing but failures was known of the dependency, and wait for a
// sign of life: for a success of an attempt that began after they had failed. The breaker's lock guards it.
type vigil struct {
	line   line
	sign   time.Duration // when the latest attempt began that has succeeded, while somebody waits
	places float64       // how many of their retries may be out; below 1: there is no sign yet
	out    int           // of their retries
	from   time.Duration // when the first of them has failed since the last success; 0: nobody has
	swept  time.Duration // when it was looked last whether some of them hang
	cut    uint32        // serial of the last attempt of the round before
}

// idle reports whether nobody waits, and no retry of somebody who has waited is out.
func (v *vigil) idle() bool { return v.line.newest == nil && v.out == 0 }

// join puts a call that has failed now into the line. Where there is no room the oldest leaves, who has the least time
// left; join returns him.
func (v *vigil) join(now time.Duration, w *Waiter) (left *Waiter) {
	if v.idle() {
		v.places = 0
	}
	if v.line.length > 0 && v.line.length >= min(w.Among, memory) {
		left = v.line.oldest
		v.line.remove(left)
	}
	if w.failed = now; v.from == 0 {
		v.from = now
	}
	v.line.add(w)
	return left
}

// next takes the oldest out who still has time for an attempt of usual length, if there was a sign of life since he has
// failed and another retry may be out; nil if there is none.
func (v *vigil) next(now, usual time.Duration) *Waiter {
	if v.out >= int(v.places) {
		return nil
	}
	for w := v.line.oldest; w != nil && w.failed < v.sign; w = w.newer {
		if after(now, usual) < w.deadline {
			v.line.remove(w)
			return w
		}
	}
	return nil
}

// answered takes a success. The first one makes room for one retry, and that of a retry for one more, as long as
// nothing stands in a queue: so they double in a round trip. One that comes late takes half of the room away, once in a
// round.
func (v *vigil) answered(began, age, usual, tardy time.Duration, waited, fresh bool, last uint32) {
	v.sign = max(v.sign, began)
	switch {
	case v.places < 1:
		v.places, v.cut = 1, last
	case waited && age <= 2*usual:
		v.places++
	case age > tardy && fresh:
		v.shrink(last)
	}
}

// failed takes a failure. That of a retry of this round (fresh) takes half of the room away; where nothing but failures
// is known again, all of it is gone.
func (v *vigil) failed(fresh, lifeless bool, last uint32) {
	switch {
	case lifeless:
		v.places = 0
	case fresh:
		v.shrink(last)
	}
}

func (v *vigil) shrink(last uint32) {
	if v.places >= 1 {
		v.places = max(1, v.places/2)
	}
	v.cut = last
}

// signalled lets those go on for whom a sign of life has come, as far as retries may, while the circuit is closed. It
// returns them, to be woken.
func signalled(a *adaptive, now time.Duration, woken []*Waiter) []*Waiter {
	for w := a.vigil.next(now, a.learned.smoothed); w != nil; w = a.vigil.next(now, a.learned.smoothed) {
		retried(a, now, w)
		woken = append(woken, w)
	}
	return woken
}

// retried has somebody go on who has left the line.
func retried(a *adaptive, now time.Duration, w *Waiter) {
	w.permit, w.admitted = a.begin(now, w.patience), true
	a.flights.places[w.permit.mark].waited = true
	a.vigil.out++
}

// alone lets a waiter go on without a sign of life where nobody gives one: where nothing has begun or ended for so
// long, also if something hangs. He finds out, as whoever waits for an open circuit does.
func alone(a *adaptive, now time.Duration, w *Waiter) {
	if now < lonelyAt(a, w) || after(now, a.learned.smoothed) >= w.deadline || !a.admits(now) {
		return
	}
	a.vigil.line.remove(w)
	retried(a, now, w)
}

// lonelyAt returns when a waiter finds out himself if nobody else does before. That takes one of the few retries that
// he has, and of the budget, with which he could go on when there is a sign. So it is the more seldom the longer there
// has been none. The last retry is spent late, and where calls are rare it takes longer until nobody else seems to
// call; but no later than after half of the time that he had.
func lonelyAt(a *adaptive, w *Waiter) time.Duration {
	outage, last := time.Duration(0), max(a.moved, w.failed)
	if from := a.vigil.from; from != 0 {
		outage = last - from
	}
	gap := 3 * outage
	if w.Last {
		gap = 16 * max(outage, a.every)
	}
	return after(last, max(min(gap, (w.deadline-w.failed)/2), a.learned.lonely()))
}

// tended keeps the vigil up with the end of an attempt.
func tended(a *adaptive, began, age time.Duration, serial uint32, waited bool, r Result) {
	v := &a.vigil
	if waited {
		v.out--
	}
	switch {
	case r == Success:
		if v.out > 0 && v.out >= int(v.places) {
			writtenOff(a, began, began+age)
		}
		v.answered(began, age, a.usual, a.tardy(), waited, since(serial, v.cut), a.flights.serial)
	case r == Failure || r == Costly:
		v.failed(waited && since(serial, v.cut), a.learned.lifeless(a.failing), a.flights.serial)
	}
}

// writtenOff takes back the places of retries that have been out for very long, while an attempt that began later has
// succeeded: what hangs, perhaps for ever, keeps nobody from going on.
func writtenOff(a *adaptive, began, now time.Duration) {
	long := a.learned.lonely()
	if now-a.vigil.swept < long {
		return
	}
	a.vigil.swept = now
	for i := range a.flights.places {
		f := &a.flights.places[i]
		if f.serial != 0 && f.waited && !f.foreign && f.start < began && now-f.start >= long {
			f.waited = false
			a.vigil.out--
		}
	}
}
