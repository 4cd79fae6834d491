package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// adaptiveMark is in the generation of permits of this kind, so that those of the other are never taken for them.
	adaptiveMark = 1 << 31
	// alarm is how surprising what has happened since the last success must be before the circuit opens, in nats: by
	// chance it would be so in one of a million moments.
	alarm = 13.8
	// doubt is the same for a circuit that is half-open: it was open a moment ago, so it takes less to believe it
	// again.
	doubt = 3
	// probesPerSilence is how many probes are sent while the silence doubles, about: the gap between two is the silence
	// so far, divided by it. So a probe comes at the latest 8 % of the outage after its end.
	probesPerSilence = 12
	// fewer is how many calls there are to a probe at least where calls are rare.
	fewer = 4
	// longestGap is the longest time between two probes.
	longestGap = 500 * time.Millisecond
)

// adaptive is the state machine of the kind Adaptive: a detector, which compares attempts without a success with what
// has been learned of successes, and a governor, which sends as many attempts as there is evidence that they succeed.
type adaptive struct {
	state atomic.Uint32

	mu      sync.Mutex // guards what follows, and all changes of state
	learned learned
	flights flights
	line    line
	congestion
	doubts doubts // used while judging only

	begun  bool          // an attempt has: good and idle are times
	good   time.Duration // when the last success was, idle times left out
	idle   time.Duration // when the last attempt ended, if none is out but those whose callers still send
	moved  time.Duration // when an attempt began or ended last
	asked  time.Duration // when a call asked last
	every  time.Duration // the time from one call to the next, smoothed
	judged time.Duration // when the detector looked last
	// Surprise, in nats, since the last success:
	ended   float32 // at attempts that ended slowly without one, and at costly failures
	costs   float32 // at the costly failures among them
	failing float32 // at all failures, also quick ones
	typical float64 // attempts that are out when one begins, while closed

	since    time.Duration
	openings uint64
	advised  bool
	first    uint32        // serial of the last attempt before the circuit opened
	round    uint32        // serial of the last attempt before it opened again
	probeAt  time.Duration // open: when the next probe may be sent
	out      int           // attempts of this round that are out
	limited  time.Duration // half-open: when somebody was kept out last

	vigil vigil
}

// current returns the state.
func (a *adaptive) current() State { return State(a.state.Load()) }

// allow decides about an attempt that may take patience; 0: nobody has said.
func (a *adaptive) allow(now, patience time.Duration) (p Permit, ok bool, change Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learned.given(patience)
	a.came(now)
	change = a.judge(now)
	if !a.admits(now) || a.current() == Open && a.hopeless(now, patience) {
		return Permit{mark: refused}, false, change
	}
	return a.begin(now, patience), true, change
}

// admits reports whether an attempt may begin now.
func (a *adaptive) admits(now time.Duration) bool {
	switch a.current() {
	case Open:
		return now >= a.probeAt
	case HalfOpen:
		if a.out >= int(a.places) {
			a.limited = now
			return false
		}
	}
	return true
}

// hopeless reports whether an attempt would be a wasted probe: it has not the time that an answer takes, and somebody
// waits who has.
func (a *adaptive) hopeless(now, patience time.Duration) bool {
	return patience > 0 && patience < a.learned.smoothed && a.line.able(now, a.learned.smoothed) != nil
}

// begin notes an attempt that may begin.
func (a *adaptive) begin(now, patience time.Duration) Permit {
	state := a.current()
	if !a.begun {
		a.begun, a.good, a.prompt, a.idle = true, now, now, now
	}
	busies(a, now)
	if state != Closed {
		a.out++
		if state == Open {
			a.probeAt = after(now, a.gap(now))
		}
	}
	a.moved = now
	return a.flights.begin(now, patience)
}

// busies notes that the dependency is about to have something to do: if it had nothing before, that was no silence.
func busies(a *adaptive, now time.Duration) {
	if a.current() != Open && a.flights.busy() == 0 {
		a.good += max(now-a.idle, 0)
		a.prompt += max(now-a.idle, 0)
	}
}

// gap returns the time from one probe to the next: a share of the silence. Where calls come so rarely that each of them
// would be a probe, it is longer, so that three of four are not sent, but for a silence that has only begun.
func (a *adaptive) gap(now time.Duration) time.Duration {
	silence := max(now-a.good, 0)
	return min(max(silence/probesPerSilence, min(fewer*a.every, silence/fewer)), longestGap)
}

// came notes that a call asks. A call that comes after a long time says that much, and no more.
func (a *adaptive) came(now time.Duration) {
	a.every += (min(max(now-a.asked, 0), 2*longestGap) - a.every) / 16
	a.asked = now
}

// silent reports whether there has been no success for so long that it may mean something. A time in which nothing was
// out is no silence.
func (a *adaptive) silent(now time.Duration) bool {
	if a.flights.busy() == 0 {
		now = min(now, a.idle)
	}
	return a.begun && now-a.good >= a.learned.silence()
}

// judge opens the circuit if what has happened since the last success is too surprising. It looks eight times in the
// time that a success may take, at most.
func (a *adaptive) judge(now time.Duration) (change Change) {
	state := a.current()
	if state == Closed && a.costs >= alarm {
		return a.open(now, reasonFailures)
	}
	if state == Open || now-a.judged < a.learned.silence()/16 {
		return change
	}
	a.judged = now
	switch {
	case a.silent(now):
	case a.congested(now):
		return a.limit(now, 1)
	default:
		return change
	}
	limit := float32(alarm)
	if state == HalfOpen {
		limit = doubt
	}
	a.learned.surprises(&a.doubts)
	if a.flights.sum(now, a.good, &a.doubts)+a.ended < limit && !a.starved(now) {
		return change
	}
	return a.open(now, reasonSilence)
}

// starved reports whether all places of a half-open circuit are taken by attempts that are overdue: if these never end
// nobody else would ever begin.
func (a *adaptive) starved(now time.Duration) bool {
	if a.current() != HalfOpen || a.out < int(a.places) {
		return false
	}
	overdue := a.learned.overdue()
	for i := range a.flights.places {
		if f := &a.flights.places[i]; f.serial != 0 && !f.aside && since(f.serial, a.round) && now-f.start < overdue {
			return false
		}
	}
	return true
}

// open begins to probe.
func (a *adaptive) open(now time.Duration, reason string) Change {
	if a.current() == Closed {
		a.first = a.flights.serial
	}
	if a.current() == Closed || a.limits {
		a.openings++
	}
	a.round, a.out, a.limits = a.flights.serial, 0, false
	a.probeAt = after(now, a.gap(now))
	return a.enter(Open, now, reason)
}

// enter changes the state.
func (a *adaptive) enter(to State, now time.Duration, reason string) Change {
	from := a.current()
	if from != to {
		a.since = now
	}
	a.state.Store(uint32(to))
	if to == Closed {
		a.prompt, a.late, a.limits = a.good, 0, false
	}
	return Change{From: from, To: to, At: now, Reason: reason}
}

// record takes the result of an attempt. The waiters that it returns are to be woken without the lock.
func (a *adaptive) record(now time.Duration, p Permit, r Result) (woken []*Waiter, change Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	flight, ok := a.flights.end(p)
	if !ok {
		return nil, change
	}
	if flight.foreign {
		return nil, change
	}
	a.moved = now
	serial := p.gen & serials
	if r == Neutral && now == p.start && a.current() == Open && since(serial, a.round) {
		a.probeAt = min(a.probeAt, now) // it has not been sent: another may be the probe
	}
	if a.current() != Closed && since(serial, a.round) && !flight.aside {
		a.out--
	}
	age := max(now-p.start, 0) // it begins later while its caller sends, see Restart
	if r == Success {
		change = a.succeeded(now, age, serial)
	} else {
		late := a.learned.overdue()
		if flight.limit > 0 {
			late = min(late, flight.limit)
		}
		change = a.missed(now, age, serial, r, age >= late)
	}
	if !a.vigil.idle() {
		tended(a, p.start, age, serial, flight.waited, r)
	}
	if a.flights.busy() == 0 && !flight.aside {
		a.idle = now
	}
	if a.line.newest == nil && a.vigil.line.newest == nil { // as usual
		return nil, change
	}
	return a.release(now), change
}

// succeeded takes a success.
func (a *adaptive) succeeded(now, age time.Duration, serial uint32) (change Change) {
	a.floor(age, serial)
	tardy := a.tardy()
	quick := age <= tardy
	if !quick {
		a.congestion.late += a.learned.surprise(age)
	}
	a.learned.succeeded(age)
	a.rate.note(now, tardy/2)
	a.good, a.ended, a.failing, a.costs, a.vigil.from = max(now, a.good), 0, 0, 0, 0
	if a.current() == Closed {
		a.congestion.learn(age)
	}
	if quick {
		a.prompt, a.congestion.late = a.good, 0
		if a.current() == Closed && age <= 2*a.usual {
			a.typical += (float64(a.flights.busy()+1) - a.typical) / float64(min(a.learned.at+1, 64))
		}
	}
	switch state := a.current(); {
	case state == Closed:
		if !quick && a.congested(now) {
			change = a.limit(now, float64(age)/float64(tardy))
		}
	case !since(serial, a.first):
		change = a.enter(Closed, now, reasonLate)
		a.advised = false
	case state == Open:
		a.places = max(2, a.typical)
		a.limited = now
		a.round, a.out = a.flights.serial, 0 // probes that hang since before take no places
		a.cut, a.limits, a.least = a.round, false, 0
		change = a.enter(HalfOpen, now, reasonAnswered)
	default:
		a.answered(age, tardy, serial, a.flights.serial)
		if quick {
			change = a.recovered(now)
		}
	}
	return change
}

// recovered closes the circuit if nobody has been kept out for as long as a silence takes to mean something.
func (a *adaptive) recovered(now time.Duration) (change Change) {
	if a.line.newest != nil || now-a.limited < a.learned.silence() {
		return change
	}
	a.advised = false
	return a.enter(Closed, now, reasonRecovered)
}

// missed takes an attempt that ended without a success. It is slow if it took as long as a success may, or all the
// time that it was given. A quick failure has cost nobody anything, so it is no reason to refuse others, unless it
// is Costly. A neutral end never says anything.
func (a *adaptive) missed(now, age time.Duration, serial uint32, r Result, slow bool) Change {
	if r == Failure || r == Costly {
		a.failing += a.learned.surprise(math.MaxInt64)
	}
	switch {
	case r == Costly:
		a.learned.pending++
		a.costs += a.learned.surprise(math.MaxInt64)
		a.ended += a.learned.surprise(math.MaxInt64)
	case r == Neutral || r == Failure && !slow:
		if r == Failure {
			a.learned.pending++
		}
		return Change{}
	default:
		a.ended += max(a.learned.surprise(age), a.learned.worn(age))
		if slow {
			a.learned.pending++
		}
	}
	// One that was not given the time that an answer takes says that its caller is in a hurry.
	if slow && age >= a.learned.smoothed && a.current() == HalfOpen && since(serial, a.cut) {
		a.shrink(2, a.flights.serial)
	}
	return a.judge(now)
}
