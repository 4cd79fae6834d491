package pacing

import (
	"math"
	"sync"
	"time"
)

// Result is how an attempt ended that an Opener let begin.
type Result uint8

const (
	// Opened is a success.
	Opened Result = iota
	// Failed is an attempt that came to nothing.
	Failed
	// Refused is an attempt that the other side turned away because it has too much already.
	Refused
	// Neutral is an attempt that says nothing about the other side: its caller left, or it was not sent.
	Neutral
)

const (
	// unproven is how many attempts are on their way, with nothing known of a success of late, before others wait to see
	// what becomes of them, and briefly for how long those wait at most: nobody notices it, and a server that is gone
	// says so sooner. So a crash is noticed by two attempts of an instance, and not by one for each of its callers.
	unproven = 2
	briefly  = 20 * time.Millisecond
	// firstRound is how long a round lasts after the first failure, and shortest how long at least. A restarted server
	// cannot be there much sooner, and a tenth of a second is what people do not notice.
	firstRound = 100 * time.Millisecond
	shortest   = 5 * time.Millisecond
	// longestFailing is how long a round lasts at most while everything fails: how late a recovery is noticed.
	longestFailing = time.Second
	// longestRefused is how long a round lasts at most while the other side is full. It is there, so that nothing is to
	// be found out but that somebody has left.
	longestRefused = 2 * time.Second
	// slowly times what an attempt usually takes is slow: noise stays below it, an overload does not. The first success
	// after an outage says anew what is usual: one at a time, on a server that may have become slower by other causes.
	slowly = 4
	// Connections are too few if somebody has waited, since the other side is back, for waitsLong and for the share
	// mostOfRound of a round. A connection that is handed from caller to caller lets nobody wait for waitsLong if it can
	// carry them all. After most of a round nearly all instances of a fleet have a connection, and those who were first
	// do not take the places of the last: with 0.75 that failed in three of ten fleets of scenarios/pods-reconnect.yaml,
	// with 0.85 in none of two hundred. With more, single instances lose more queries.
	waitsLong   = 100 * time.Millisecond
	mostOfRound = 0.85
	// always is more rounds than there will be.
	always = math.MaxInt
)

// Opener is the adaptive pace: it decides how many attempts may begin, by what became of those before. Until something
// fails it does nothing but look on. After that attempts begin in rounds: one in the first, and one more in the next
// for each that succeeded without being slow, so that their number doubles from round to round. A refusal for load
// halves it; a failure makes it one, and the rounds longer. How long the rounds are while the other side comes back
// follows from how long it was away: half of that, since it takes the other instances of a fleet as long to notice.
// While somebody waits who has waited for most of such a round, rounds last a tenth of a second: a slow success makes
// the current one as long as it should be, unless a quick one follows, and a refusal all until the next outage. Once
// nobody has had to wait for two rounds the Opener looks on again.
//
// All methods may be called from many goroutines at once. Times are durations since any fixed origin, the same for all
// calls. Make one with NewOpener.
type Opener struct {
	mu      sync.Mutex
	steers  bool          // something has failed, and it is not over
	failing bool          // nothing has succeeded since
	since   time.Duration // the first failure
	limit   int           // attempts of the next round
	allowed int           // of this one, and on their way at the same time
	begun   int           // in this round
	out     int           // on their way
	round   time.Duration // how long one lasts, before jitter
	from    time.Duration // when the current one began
	until   time.Duration // when it ends; from if that is not drawn yet
	sent    time.Duration // when the last attempt began
	cut     time.Duration // attempts that began before are part of a failure that is known already
	waited  time.Duration // when somebody last had to wait
	back    time.Duration // when the last outage ended
	need    bool          // somebody who has waited for long since then has asked in this round
	whole   int           // rounds from the next on that last as long as they should, whoever waits
	usual   time.Duration // what a success takes, smoothed, since the last outage; 0 until there was one
	first   bool          // what is usual is known of attempts that began in the last outage only
	proven  time.Duration // when the last success arrived, long ago if there was none
}

// NewOpener returns an Opener that has seen nothing yet.
func NewOpener() *Opener { return &Opener{proven: math.MinInt64} }

// Enter asks at now, for a caller who has asked since then, whether an attempt may begin. It returns 0 if so, and then
// Leave has to report its end; else when to ask again, which is no promise. probe says that somebody else, who is
// stricter, has chosen this attempt to find out whether the other side is back. draw is 64 uniform random bits. Enter
// takes one lock and does not allocate.
func (o *Opener) Enter(now, since time.Duration, draw uint64, probe bool) (wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.need = o.need || minus(now, max(since, o.back)) >= o.long()
	switch o.turn(now, draw); {
	case !o.steers:
		if o.out >= unproven && now-since < briefly && minus(now, o.proven) > firstRound {
			return time.Duration(float64(briefly/4)*(0.5+unit(draw))) + 1
		}
	case probe && o.failing, o.begun < o.allowed && o.out < o.allowed && now >= o.next():
		o.begun++
	default:
		o.waited = now
		return o.again(now, since, draw)
	}
	o.out, o.sent = o.out+1, now
	return 0
}

// length draws how long a round lasts: between three and five quarters of what it should.
func length(round time.Duration, draw uint64) time.Duration {
	return 1 + time.Duration(float64(round)*(0.75+0.5*unit(draw)))
}

// next is when the next attempt of the round may begin: they are spread over it evenly.
func (o *Opener) next() time.Duration {
	return o.from + time.Duration(float64(o.end()-o.from)*float64(o.begun)/float64(o.allowed))
}

// turn begins a new round if the last one is over, and ends the steering if it is of no more use.
func (o *Opener) turn(now time.Duration, draw uint64) {
	if !o.steers {
		return
	}
	if o.until == o.from { // drawn here, so that instances that failed together do not ask together
		o.until = o.from + length(o.round, draw)
	}
	if now < o.end() {
		return
	}
	if !o.failing && minus(now, o.waited) >= 2*o.round+shortest {
		o.steers = false
		return
	}
	o.whole, o.need = max(o.whole-1, 0), false
	o.from, o.begun, o.allowed = now, 0, o.limit
	o.until = now + length(o.round, draw)
}

// end is when the round ends: as it was drawn, or a tenth of a second after it began if somebody needs the next one.
func (o *Opener) end() time.Duration {
	if o.need && o.whole == 0 && !o.failing && o.round > firstRound {
		return o.from + time.Duration(float64(o.until-o.from)*float64(firstRound)/float64(o.round))
	}
	return o.until
}

// long is how long somebody has waited if he needs the next round.
func (o *Opener) long() time.Duration {
	return max(waitsLong, time.Duration(float64(o.round)*mostOfRound))
}

// again is when whoever cannot begin now should ask again: at the end of the round, when he has waited for long, or
// when one of those on their way may have arrived.
func (o *Opener) again(now, since time.Duration, draw uint64) time.Duration {
	soon := min(max(o.usual, shortest), firstRound)
	if due := o.end(); o.begun >= o.allowed || o.next() > now {
		if o.begun < o.allowed {
			due = o.next()
		}
		if long := max(since, o.back) + o.long(); long > now && o.whole == 0 && !o.failing {
			due = min(due, long)
		}
		return max(due-now, 0) + time.Duration(float64(soon)*unit(draw)) + 1
	}
	if long := minus(now, o.sent); long > longestFailing/2 { // what is on its way may hang
		soon = max(soon, min(long/8, firstRound))
	}
	return max(time.Duration(float64(soon)*(0.5+unit(draw))), time.Millisecond)
}

// Leave reports at now the end of an attempt that began at began.
func (o *Opener) Leave(now, began time.Duration, r Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out = max(o.out-1, 0)
	switch r {
	case Opened:
		o.opened(now, minus(now, began))
	case Failed:
		o.failed(now, began)
	case Refused:
		o.refused(now, began)
	}
}

func (o *Opener) opened(now, took time.Duration) {
	o.proven = now
	if o.failing { // what was usual before the outage may not be so after it, and one at a time overloads nobody
		o.usual = 0
	}
	slow := o.usual > 0 && took > slowly*o.usual+shortest
	// What was sent into an outage may have waited for its end, which takes far longer. The first that was sent after it
	// has not. Later ones are no measure: of some that take long and some that do not, the former are not slow.
	after := !o.failing && minus(now, took) >= o.back
	if o.usual == 0 || after && o.first && o.usual > slowly*took+firstRound {
		o.usual = max(took, 1)
	}
	o.first = o.first && !after || o.failing
	o.usual += (took - o.usual) / 8
	if o.failing {
		o.failing, o.limit, o.waited, o.whole, o.back, o.need = false, 1, now, 0, now, false
		o.begin(now, min(max(minus(now, o.since)/2, shortest), longestFailing), 1)
	}
	switch {
	case slow:
		o.whole = max(o.whole, 1)
	case o.steers && o.limit < 1<<20:
		o.limit++
		if o.whole == 1 { // what was slow before may be of another kind: under an overload nearly all are slow
			o.whole = 0
		}
	}
}

func (o *Opener) failed(now, began time.Duration) {
	switch {
	case !o.steers || !o.failing:
		o.steers, o.failing, o.since, o.waited = true, true, now, now
		o.begin(now, firstRound, 1)
	case began >= o.cut:
		o.begin(now, min(2*o.round, longestFailing), 1)
	}
	o.limit = 1
}

func (o *Opener) refused(now, began time.Duration) {
	o.whole = always
	switch {
	case !o.steers || o.failing: // that it is full is a sign of life
		o.limit = max((o.out+1)/2, 1)
		o.steers, o.failing, o.waited = true, false, now
		o.begin(now, firstRound, o.limit)
	case began < o.cut:
	case o.limit > 1:
		o.limit /= 2
		o.begin(now, max(o.round, firstRound), o.limit)
	default:
		o.begin(now, min(2*max(o.round, firstRound/2), longestRefused), 1)
	}
}

// begin begins a round in which so many attempts are taken to have begun already.
func (o *Opener) begin(now, round time.Duration, begun int) {
	o.round, o.from, o.until, o.cut, o.begun, o.allowed = round, now, now, now, begun, max(begun, 1)
}

// Hopeful reports whether somebody who has waited since then, and would wait for as long as patience in all, goes on
// waiting for the other side to come back. Everybody waits for the next attempt to show whether it has; for those after
// it only who came when the other side had been away for less than his patience, since what has lasted for long lasts
// on. A side that is there, and full, is always worth it.
func (o *Opener) Hopeful(since, patience time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.failing || o.cut <= since || minus(since, o.since) <= patience
}

// Restart says that attempts may begin that somebody has kept from beginning by hand, so that many come at once.
func (o *Opener) Restart(now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.steers || o.failing {
		o.steers, o.failing, o.limit, o.waited, o.whole, o.back, o.need = true, false, 1, now, 0, now, false
		o.begin(now, longestFailing, 0)
	}
}

// State reads the Opener at now, and changes nothing.
func (o *Opener) State(now time.Duration) State {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.steers {
		return State{}
	}
	s := State{AtOnce: o.limit}
	if o.begun >= o.allowed {
		until := o.end()
		if until == o.from { // not drawn yet
			until += o.round
		}
		s.Wait = max(until-now, 0)
	}
	return s
}
