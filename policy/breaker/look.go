package breaker

import "time"

// Verdict is what has become of a call that waits for a circuit.
type Verdict uint8

// The verdicts of Look.
const (
	Waits    Verdict = iota // look again, at the time that Look returned or when woken
	Admitted                // it has a permit
	Refused                 // there is nothing to wait for any more
)

// Holds reports whether a call that Allow has refused may wait: Hold it.
func (b *Breaker) Holds() bool {
	return b.cur.Load().holds()
}

// Hold puts a call that Allow has refused in the line of those who wait for the circuit, or one with Sign in that of
// those who wait for a sign of life. deadline is when its caller
// stops waiting, Never if he does not, and patience how long its attempt may take, 0 if nobody has said: the line
// admits those who still have time for an attempt. It answers as Look does: the circuit may have closed
// meanwhile. Whoever is held must come to be Admitted or Refused, or Leave.
func (b *Breaker) Hold(now, deadline, patience time.Duration, w *Waiter) (p Permit, v Verdict, look time.Duration) {
	wake(b.loop.hold(now, deadline, patience, w))
	return b.Look(now, w)
}

// Look asks what has become of a call that is held: when it is woken, and when the time has come that Hold or Look has
// returned, which is Never for one that will be woken. Who waits for a sign of life looks now and then: if nobody else
// calls, nobody wakes him.
func (b *Breaker) Look(now time.Duration, w *Waiter) (permit Permit, v Verdict, look time.Duration) {
	if !b.cur.Load().holds() { // any more: nor does it release anybody else
		b.loop.withdraw(w)
		if permit, ok := b.loop.taken(w); ok {
			return permit, Admitted, 0
		}
		if permit, ok := b.Allow(now); ok {
			return permit, Admitted, 0
		}
		return Permit{}, Refused, 0
	}
	look, woken, change := b.loop.look(now, w)
	func() {
		defer b.notify(change)
		wake(woken)
	}()
	if permit, ok := b.loop.taken(w); ok {
		return permit, Admitted, 0
	}
	if !awaits(&b.loop, w) {
		return Permit{}, Refused, 0
	}
	return Permit{}, Waits, look
}

// Leave takes a call out of the line: its time is up, or its caller has left. True means that it has been given a
// permit already, which is the caller's to Record. For one that does not wait any more it does nothing.
func (b *Breaker) Leave(now time.Duration, w *Waiter) (permit Permit, admitted bool) {
	wake(b.loop.leave(now, w))
	return b.loop.taken(w)
}

// Patience returns how long a call may wait for the circuit: as long as an attempt may take, for which its caller is
// prepared. timeout is the attempt timeout; 0 for none. A call that holds something scarce waits, unless WhileOpen says
// Hold, no longer than it takes to find a false alarm out.
func (b *Breaker) Patience(timeout time.Duration, scarce bool) time.Duration {
	return b.loop.waiting(timeout, scarce && b.cur.Load().cfg.WhileOpen != Hold)
}
