package bulkhead

import (
	"math"
	"time"
)

// Learned is what an adaptive limit has found out.
type Learned struct {
	// Target is how long an answer may take: what callers allow, or 20 times what answers took, at least 1 s.
	// An answer that takes more than half of it is late.
	Target time.Duration
	// Late is how many attempts in a row have ended late.
	Late int
	// Needed is how many of them are evidence: as many as come in a row by chance once in 10,000 times.
	Needed int
	// Usual is how many calls are in flight while all is well.
	Usual int
	// Bound reports whether the limit is in force.
	Bound bool
}

const (
	fewest      = 4 // permits of a bound limit: one call must not stop the others
	unlikely    = 1e-4
	rarest      = 0.5 // share of late ends: a service that loses every second attempt serves the others
	smoothing   = 1.0 / 64
	calmWindows = 4
)

// learner finds the number of permits. Its evidence is that attempts end late one after the other, and no
// answer comes in time between them: a standing queue, or a service that hangs. What is merely noisy has
// quick answers in between, and what fails fast is no evidence at all. How many late ends are enough follows
// from how many are late while all is well. Without evidence the limit is a mark that is moved whenever
// somebody comes to it. Guarded by the bulkhead's lock.
type learner struct {
	most   int64 // permits, whatever comes
	target float64
	base   float64 // latency of answers in time
	share  float64 // of late ends, while all is well
	usual  float64 // calls that the dependency has, while all is well

	late    int
	need    int
	quiet   time.Duration // since when nothing has ended in time, as those know that came to the mark; 0 for not
	silent  int64         // calls that the dependency has had since quiet: without them it is no silence
	bound   bool
	mark    float64 // the limit
	window  time.Duration
	ends    int // in the window
	answers int // of those
	quick   int // of those
	rate    float64
	peak    float64 // of rate, since the limit is bound
	calm    int     // windows in which nobody waited
}

// learn makes or drops the learner, and puts the limit of c in force. mu is held.
func (b *Bulkhead) learn(c Config) {
	limit := int64(unlimited)
	if c.Enabled() && c.MaxConcurrentCalls > 0 {
		limit = int64(min(c.MaxConcurrentCalls, most))
	}
	switch {
	case !c.Adapts():
		b.learner = nil
	case b.learner == nil:
		word := b.word.Load() // those who are here, or wait, are no evidence
		b.learner = &learner{most: limit, mark: fewest + float64(inFlight(word)+waiting(word)), share: rarest}
	default:
		b.learner.most = limit
	}
	b.limit.Store(limit)
	b.beside.Store(0)
	b.renew()
}

// renew puts an adaptive limit in force. mu is held.
func (b *Bulkhead) renew() {
	if b.learner != nil {
		b.limit.Store(b.learner.limit(b.sending))
		b.beside.Store(b.sending)
	}
}

// Suspend notes that a call that has a permit waits for its caller, who is still sending: the dependency has had it
// since a time, and has nothing more to do for it now. Until Resume it is no evidence for an adaptive limit, which lets
// another one in beside it. It keeps its permit, of which a fixed limit has no more than before.
//
// It takes the lock and does not allocate. It calls the Wake of whoever is let in.
func (b *Bulkhead) Suspend(since time.Duration) {
	b.mu.Lock()
	b.sending++
	if b.learner != nil {
		b.learner.suspend(since)
		b.renew()
	}
	b.mu.Unlock()
	b.admit()
}

// Resume ends what Suspend began: the dependency has had the call again since a time, or the call is about to end. Call
// it once, before Release. Until enough calls have ended there may be more than the limit.
func (b *Bulkhead) Resume(since time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending--
	if b.learner != nil {
		b.learner.resume(since)
		b.renew()
	}
}

// busy is how many of the calls in flight the dependency has. mu is held.
func (b *Bulkhead) busy() int64 { return max(inFlight(b.word.Load())-b.sending, 0) }

// Widen asks an adaptive limit for more permits after TryAcquire failed, and reports whether the caller has
// one: there are more as long as nothing speaks against it. A fixed limit has none.
func (b *Bulkhead) Widen(now time.Duration) bool {
	b.mu.Lock()
	l := b.learner
	wider := l != nil && l.limit(b.sending) < l.most && l.widen(now, b.busy())
	if wider {
		b.renew()
	}
	b.mu.Unlock()
	if wider {
		b.admit()
	}
	return wider && b.TryAcquire()
}

// Record tells an adaptive limit how an attempt ended: after which time, of how much that it was allowed (0
// for any), and whether it has succeeded. Others do not want to know.
func (b *Bulkhead) Record(now, latency, allowed time.Duration, success bool) {
	b.mu.Lock()
	l := b.learner
	if l == nil {
		b.mu.Unlock()
		return
	}
	l.record(now, latency, allowed, success, b.busy())
	l.turn(now, waiting(b.word.Load()))
	before := b.limit.Load()
	b.renew()
	raised := b.limit.Load() > before
	b.mu.Unlock()
	if raised {
		b.admit()
	}
}

// limit is the number of permits, those of calls whose callers are still sending among them.
func (l *learner) limit(sending int64) int64 { return min(int64(l.mark)+sending, l.most) }

// shown is the limit as people see it: the mark of one that is not bound is nobody's business.
func (l *learner) shown(sending int64) int64 {
	if l.bound {
		return l.limit(sending)
	}
	return l.most
}

// allowance is how long an answer may take.
func (l *learner) allowance() float64 {
	if l.target > 0 {
		return l.target
	}
	return max(float64(time.Second), 20*l.base)
}

// widen moves the mark for somebody who came to it while the dependency had so many calls.
func (l *learner) widen(now time.Duration, busy int64) bool {
	switch {
	case l.bound:
		return false
	case busy == 0:
	case l.quiet == 0:
		l.quiet, l.silent = now, busy
	case float64(now-l.quiet) > l.allowance():
		l.bind(now)
		return false
	}
	l.mark = max(l.mark, float64(busy)) // more than the mark: their callers have sent all meanwhile
	l.mark += max(fewest, l.mark/4)
	return true
}

// suspend takes a call that the dependency has had since a time from those that it is silent about.
func (l *learner) suspend(since time.Duration) {
	if l.quiet == 0 || since > l.quiet {
		return
	}
	if l.silent--; l.silent <= 0 {
		l.quiet = 0
	}
}

// resume adds one that it has had since before the silence began, which nobody had told yet.
func (l *learner) resume(since time.Duration) {
	if l.quiet != 0 && since < l.quiet {
		l.silent++
	}
}

func (l *learner) record(now, latency, allowed time.Duration, success bool, busy int64) {
	if allowed > 0 {
		l.target = toward(l.target, float64(allowed), smoothing)
	}
	late := float64(latency) > l.tardy()
	l.ends++
	switch {
	case late:
		l.late++
	case !success:
		return // to fail fast says nothing of how long answers take
	}
	if success {
		l.answers++
	}
	switch {
	case !late && l.bound:
		l.mark++
		fallthrough
	case !late:
		l.onTime(latency, busy)
	case !l.bound:
		if l.base == 0 && success { // the first answer is neither
			l.base = float64(latency)
		}
		if l.need = needed(l.share); l.late >= l.need {
			l.bind(now)
		}
	}
}

// onTime learns from an answer that came in time. The late ones before it were chance, and are what is to be
// expected.
func (l *learner) onTime(latency time.Duration, busy int64) {
	l.quick++
	if !l.bound {
		for range l.late {
			l.share = toward(l.share, 1, smoothing)
		}
		l.share = toward(l.share, 0, smoothing)
		l.usual = toward(l.usual, float64(busy), smoothing)
	}
	share := smoothing
	if float64(latency) < l.base {
		share = 1.0 / 8
	}
	l.base = toward(l.base, float64(latency), share)
	l.late, l.quiet, l.need = 0, 0, needed(l.share)
}

// tardy is from when on an answer is late: half of what it may take, or twice what answers in time take if
// that is more. What has run into its time limit is late whatever is usual.
func (l *learner) tardy() float64 {
	may := l.allowance()
	return min(max(may/2, 2*l.base), 0.98*may)
}

// needed is how many ends have to be late in a row to be no chance, if such a share of them is.
func needed(share float64) int {
	return int(math.Ceil(math.Log(unlikely) / math.Log(min(max(share, rarest), 1-smoothing))))
}

// bind puts the limit in force.
func (l *learner) bind(now time.Duration) {
	l.bound, l.calm, l.rate, l.peak = true, 0, 0, 0
	l.ends, l.answers, l.quick, l.window = 0, 0, 0, now
	l.mark = max(fewest, math.Ceil(l.usual))
}

// turn ends a window of a bound limit whose time is over.
func (l *learner) turn(now time.Duration, waiting int64) {
	span := min(max(time.Duration(l.allowance()/8), 20*time.Millisecond), 250*time.Millisecond)
	passed := now - l.window
	if !l.bound || passed < span {
		return
	}
	rate := float64(l.answers) / passed.Seconds()
	if l.rate == 0 {
		l.rate = rate
	}
	l.rate += (rate - l.rate) / 4
	l.peak = max(0.98*l.peak, l.rate)
	allowance := time.Duration(l.allowance()).Seconds()
	if l.quick > 0 {
		l.mark = max(1.1*l.mark, float64(l.ends)/passed.Seconds()*allowance, fewest)
	} else {
		// no fewer than the service works on at once: base may be more than half of the allowance
		l.mark = max(fewest, math.Ceil(l.usual), l.peak*max(allowance/2, time.Duration(l.base).Seconds()))
	}
	l.calm++
	if waiting > 0 || l.quick == 0 {
		l.calm = 0
	}
	l.ends, l.answers, l.quick, l.window = 0, 0, 0, now
	if l.calm >= calmWindows {
		l.bound, l.late = false, 0
	}
}

func (l *learner) learned() Learned {
	if l == nil {
		return Learned{}
	}
	return Learned{Target: time.Duration(l.allowance()), Late: l.late, Needed: l.need,
		Usual: int(math.Ceil(l.usual)), Bound: l.bound}
}

// toward moves a mean a share of the way to x; the first x is the mean.
func toward(mean, x, share float64) float64 {
	if mean == 0 {
		return x
	}
	return mean + share*(x-mean)
}
