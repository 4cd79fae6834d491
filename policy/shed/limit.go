package shed

import (
	"math"
	"time"
)

const (
	windowLeast   = 20 * time.Millisecond
	windowSamples = 20
	windowMost    = 512 // samples above which only every second one is taken from here on
	windowStale   = 10 * time.Second
	longest       = time.Hour // for a request: a clock that jumped

	tolerance    = 1.2 // how much slower than without load is still no overload
	onDrop       = 0.9
	probeEvery   = 30 * time.Second
	outlier      = 10   // times the latency without load: longer ones count as this long
	fasterBy     = 0.7  // of the latency without load: that is no noise
	slowerBy     = 2    // times it: that takes less evidence
	improvedBy   = 0.9  // of it: the requests were in each other's way
	weightQuiet  = 0.2  // of a quiet window in the latency without load
	quietUpTo    = 0.65 // of the limit in flight: it does not matter
	saturatedFor = 0.9  // of the limit in flight: it holds requests back
)

// learner finds the limit from how long requests take. Guarded by the shedder's lock.
//
// It knows two latencies: that of the last window, and that without load. The second is measured whenever no more
// than two thirds of the limit were in flight, so it costs nothing while there is room. While there is none, it is
// measured by halving the limit for a moment, twice a minute: if requests then get faster by a tenth, they were in each
// other's way, and that is tried again soon. A service that became slower for good is found out sooner: its limit falls
// until no more is in flight than when the time without load was last measured, and what is measured then is what it
// needs now.
type learner struct {
	limit     float64
	base      float64 // nanoseconds that a request takes without load; 0: not known
	baseAt    time.Duration
	baseLevel float64 // the mean number in flight up to which base is measured
	latency   float64 // of the last window
	varies    float64 // the squared coefficient of variation of latencies
	again     bool    // base is doubtful
	faster    bool    // the last window was faster than there is an explanation for
	probe     probe
	w         window

	droppedAt   time.Duration
	everDropped bool

	mask  uint32 // one in mask+1 requests is learned from
	taken int    // requests learned from in this slot
}

type probe uint8

const (
	noProbe probe = iota
	settling
	measuring
)

// window is the mean of the latencies of some requests. Not the median: where half of the requests are cheap it jumps.
type window struct {
	begin   time.Duration
	sum     float64
	squares float64
	n       int
	flying  int // the sum of those in flight when each ended
	peak    int // the most of them
	dropped bool
}

func (w *window) reset(now time.Duration) { *w = window{begin: now} }

// varies is the squared coefficient of variation.
func (w *window) varies() float64 {
	mean := max(w.mean(), 1)
	return max(w.squares/float64(w.n)/(mean*mean)-1, 0)
}

func (w *window) level() float64 { return float64(w.flying) / float64(w.n) }

func (w *window) mean() float64 { return w.sum / float64(w.n) }

// most is the limit in effect.
func (l *learner) most() int {
	if l.probe != noProbe {
		return max(int(l.limit/2), 1)
	}
	return int(l.limit)
}

// drop records that a request that began at start was given up for load. Those that began before the limit was lowered
// for another do not count: they do not show whether that was enough.
func (l *learner) drop(now, start time.Duration, c *Config) bool {
	l.w.dropped = true
	if !c.Concurrency.adaptive() || l.everDropped && start < l.droppedAt {
		return false
	}
	l.everDropped, l.droppedAt = true, now
	l.limit = max(l.limit*onDrop, float64(c.MinConcurrency))
	return true
}

// sample learns from one request and reports whether anything may have changed.
func (l *learner) sample(now time.Duration, latency time.Duration, inFlight int, c *Config) bool {
	l.taken++
	d := float64(min(max(latency, 0), longest))
	if l.base > 0 {
		d = min(d, outlier*l.base)
	}
	if l.w.n == 0 && !l.w.dropped || now-l.w.begin > max(windowStale, time.Duration(outlier*l.latency)) {
		l.w.reset(now)
	}
	l.w.sum += d
	l.w.squares += d * d
	l.w.n++
	l.w.flying += inFlight
	l.w.peak = max(l.w.peak, inFlight)
	if l.w.n%windowMost == 0 && l.mask < 1<<16 {
		l.mask = 2*l.mask + 1
	}
	elapsed := now - l.w.begin
	if l.probe == settling {
		settled := elapsed >= time.Duration(l.latency) && (inFlight <= l.most() || elapsed >= time.Duration(4*l.latency))
		if settled {
			l.probe = measuring
			l.w.reset(now)
		}
		return false
	}
	if !l.enough(elapsed) {
		return false
	}
	if l.w.n < windowMost/2 {
		l.mask /= 2
	}
	l.close(now, c)
	l.w.reset(now)
	return true
}

// tick begins a slot of time: after a rush more of the requests have to be learned from again.
func (l *learner) tick() {
	if l.taken < windowSamples {
		l.mask /= 4
	}
	l.taken = 0
}

// precise reports whether the mean of the window is known within about a tenth, or has been waited for long enough.
func (l *learner) precise(elapsed time.Duration) bool {
	n := min(100*max(l.w.varies(), l.varies), windowMost/2)
	return float64(l.w.n) >= n || elapsed >= max(time.Second, time.Duration(10*l.w.mean()))
}

// enough reports whether the window shows what the last change of the limit did: it has lasted for two requests, and
// its mean is precise, or so far above the latency without load that it need not be.
func (l *learner) enough(elapsed time.Duration) bool {
	mean := l.w.mean()
	if l.w.n < windowSamples || elapsed < max(windowLeast, time.Duration(2*mean)) {
		return false
	}
	slow := l.base > 0 && l.probe == noProbe && l.w.level() > l.baseLevel && mean > slowerBy*l.base &&
		float64(l.w.n) >= 20*max(l.w.varies(), l.varies)
	return slow || l.precise(elapsed)
}

// close learns from a window.
func (l *learner) close(now time.Duration, c *Config) {
	l.latency = l.w.mean()
	l.varies += (l.w.varies() - l.varies) * weightQuiet
	peak, precise := float64(l.w.peak), l.precise(now-l.w.begin)
	if l.probe == measuring {
		improved := l.latency < improvedBy*l.base
		if improved || l.latency > l.base/improvedBy {
			l.rebase(now, l.latency)
		} else {
			l.rebase(now, (l.base+l.latency)/2)
		}
		l.again = improved
		l.probe = noProbe
		return
	}
	quiet := peak <= quietUpTo*l.limit
	faster := l.latency < fasterBy*l.base
	switch {
	case l.base == 0, faster && l.faster:
		l.rebase(now, l.latency)
		l.again = !quiet
	case quiet && precise || !c.Concurrency.measures():
		l.rebase(now, l.base+weightQuiet*(l.latency-l.base))
		l.again = false
	case l.w.level() <= l.baseLevel && precise:
		l.rebase(now, l.latency)
		l.again = true
	}
	l.faster = faster
	if !c.Concurrency.adaptive() {
		return
	}
	if !quiet {
		l.limit = min(max(l.next(c.Concurrency), float64(c.MinConcurrency)), float64(c.MaxConcurrency))
	}
	old := now-l.baseAt > max(probeEvery, time.Duration(100*l.base))
	if c.Concurrency.measures() && (old || l.again) && peak >= saturatedFor*l.limit && l.limit > 1 {
		l.probe = settling
	}
}

func (l *learner) rebase(now time.Duration, base float64) {
	l.base, l.baseAt, l.baseLevel = max(base, 1), now, max(l.w.level(), l.limit/4)
}

// next is the limit after a window in which it mattered.
func (l *learner) next(a Algorithm) float64 {
	if l.w.dropped {
		return l.limit
	}
	switch a {
	case Gradient:
		// Envoy's adaptive concurrency: limit × gradient + headroom to find out whether there is more, with its buffer as
		// the tolerance. Half of its headroom, √limit: of few places that is a third. The gradient is bounded below as in
		// Netflix's Gradient2, so that one bad window does not empty the service.
		gradient := max(tolerance*l.base/l.latency, 0.5)
		return l.limit*min(gradient, tolerance) + math.Sqrt(l.limit)/2
	case Vegas:
		// Netflix's Vegas: an estimate of how many of the requests in flight wait inside the service, kept between
		// 3·log10 and 6·log10 of the limit.
		log := max(math.Log10(l.limit), 1)
		switch queued := l.limit * (1 - l.base/l.latency); {
		case queued <= log:
			return l.limit + 6*log
		case queued < 3*log:
			return l.limit + log
		case queued > 6*log:
			return l.limit - log
		}
	case AIMD:
		// Netflix's AIMD, whose factor is onDrop.
		return l.limit + 1
	}
	return l.limit
}
