package breaker

import "time"

// vigil is the calls that have failed quickly while nothing but failures was known of the dependency, and wait for a
// sign of life: for a success of an attempt that began after they had failed. The breaker's lock guards it.
type vigil struct {
	line   line
	sign   time.Duration // when the latest attempt began that has succeeded, while somebody waits
	places float64       // how many of their retries may be out; below 1: there is no sign yet
	out    int           // of their retries
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
	w.failed = now
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
		w.permit, w.admitted = a.begin(now, w.patience), true
		a.flights.places[w.permit.mark].waited = true
		a.vigil.out++
		woken = append(woken, w)
	}
	return woken
}

// alone lets the oldest go on without a sign of life where nobody could give one: if nothing has been sent for as long
// as callers wait of whom nothing is known. He finds out, as whoever waits for an open circuit does.
func alone(a *adaptive, now time.Duration, w *Waiter) {
	v := &a.vigil
	if a.current() == Closed && v.out == 0 && a.flights.busy() == 0 &&
		now-max(a.idle, w.failed) >= a.learned.lonely() {
		v.sign, v.places = now, max(v.places, 1)
	}
}

// tended keeps the vigil up with the end of an attempt.
func tended(a *adaptive, began, age time.Duration, serial uint32, waited bool, r Result) {
	v := &a.vigil
	if waited {
		v.out--
	}
	switch {
	case r == Success:
		v.answered(began, age, a.usual, a.tardy(), waited, since(serial, v.cut), a.flights.serial)
	case r == Failure || r == Costly:
		v.failed(waited && since(serial, v.cut), a.learned.lifeless(a.failing), a.flights.serial)
	}
}
