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
	usual  float64 // calls in flight, while all is well

	late    int
	need    int
	quiet   time.Duration // since when nothing has ended in time, as those know that came to the mark; 0 for not
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
	if b.learner != nil {
		limit = b.learner.limit()
	}
	b.limit.Store(limit)
}

// Widen asks an adaptive limit for more permits after TryAcquire failed, and reports whether the caller has
// one: there are more as long as nothing speaks against it. A fixed limit has none.
func (b *Bulkhead) Widen(now time.Duration) bool {
	b.mu.Lock()
	l := b.learner
	wider := l != nil && l.widen(now)
	if wider {
		b.limit.Store(l.limit())
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
	word := b.word.Load()
	l.record(now, latency, allowed, success, inFlight(word))
	l.turn(now, waiting(word))
	limit := l.limit()
	raised := limit > b.limit.Load()
	b.limit.Store(limit)
	b.mu.Unlock()
	if raised {
		b.admit()
	}
}

// limit is the number of permits.
func (l *learner) limit() int64 { return min(int64(l.mark), l.most) }

// shown is the limit as people see it: the mark of one that is not bound is nobody's business.
func (l *learner) shown() int64 {
	if l.bound {
		return l.limit()
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

func (l *learner) widen(now time.Duration) bool {
	switch {
	case l.bound || int64(l.mark) >= l.most:
		return false
	case l.quiet == 0:
		l.quiet = now
	case float64(now-l.quiet) > l.allowance():
		l.bind(now)
		return false
	}
	l.mark += max(fewest, l.mark/4)
	return true
}

func (l *learner) record(now, latency, allowed time.Duration, success bool, inFlight int64) {
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
		l.onTime(latency, inFlight)
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
func (l *learner) onTime(latency time.Duration, inFlight int64) {
	l.quick++
	if !l.bound {
		for range l.late {
			l.share = toward(l.share, 1, smoothing)
		}
		l.share = toward(l.share, 0, smoothing)
		l.usual = toward(l.usual, float64(inFlight), smoothing)
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
