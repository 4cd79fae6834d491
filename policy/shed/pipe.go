package shed

import (
	"math"
	"os"
	"strconv"
	"time"
)

func env(name string, def float64) float64 {
	if v, err := strconv.ParseFloat(os.Getenv(name), 64); err == nil {
		return v
	}
	return def
}

var (
	xSoft  = env("X_SOFT", 0.5)
	xSpan  = env("X_SPAN", 1.5)
	xMean  = env("X_MEAN", .5)
	xTwice = env("X_TWICE", 2)
	xReady = env("X_READY", 8)
	xUp    = env("X_UP", 1)
	xElev  = env("X_ELEV", 3)
	xStep  = env("X_STEP", 0.7)
	xGrow  = env("X_GROW", 1.1)
	xHeld  = env("X_HELD", 0.5)
	xCut   = env("X_CUT", 0.5)
	xLean  = env("X_LEAN", 0)
	xOrder = env("X_ORDER", 2) // 0 fifo 1 lifo 2 both
	xRoom  = env("X_ROOM", 1)
	xDecay = env("X_DECAY", 0.98)
	xStand = env("X_STAND", 0.5)
	xMinN  = env("X_MINN", 4)
	xGain  = env("X_GAIN", 2)
	xFloor = env("X_FLOOR", 16)
	xShort = env("X_SHORT", 0.9)
	xTyp   = env("X_TYP", 1)
	xLate  = env("X_LATE", 1)
	xPat   = env("X_PAT", 1)
)

// pipe is what BBR knows of the service. Guarded by the shedder's lock.
type pipe struct {
	engaged  bool
	standing bool
	limit    float64 // while engaged
	base     float64 // nanoseconds
	low, cut float64
	typ      float64 // in flight
	most     float64
	peak     float64 // successes per nanosecond
	gain     float64
	quiet    int
	began    bool
	begin    time.Duration
	pending  time.Duration
	waits    bool // pending is set

	least, last time.Duration
	sum         float64
	n           int

	okMark, endMark, arriveMark uint32
	ring                        [16]rate
	at                          int
	ready                       bool
	first                       time.Duration
	total                       int
	seen                        int // windows with success
	spanAt                      time.Duration
	spanN                       int
}

type rate struct {
	n    uint32
	took time.Duration
}

type view struct {
	inFlight, waiting  int
	ok, ended, arrived uint32
	held               bool
	patience, now      time.Duration
}

func (b *pipe) sample(sojourn time.Duration) {
	if b.n == 0 || sojourn < b.least {
		b.least = sojourn
	}
	b.sum += float64(sojourn)
	b.n++
}

func (b *pipe) windowOf(t time.Duration) time.Duration {
	return min(max(t/8, 20*time.Millisecond), 250*time.Millisecond)
}

// throughput is over the last windows in which there are enough successes.
func (b *pipe) throughput() (perNS float64, n int) {
	took := time.Duration(0)
	for i := range b.ring {
		r := b.ring[(b.at-i+2*len(b.ring))%len(b.ring)]
		n += int(r.n)
		took += r.took
		if n >= 20 && took >= b.last*time.Duration(xSpan*10)/10 {
			break
		}
	}
	if took == 0 {
		return 0, 0
	}
	return float64(n) / float64(took), n
}

func (b *pipe) close(now time.Duration, v view) {
	v.now = now
	t := float64(v.patience)
	ok, ended, arrived := v.ok-b.okMark, v.ended-b.endMark, v.arrived-b.arriveMark
	b.okMark, b.endMark, b.arriveMark = v.ok, v.ended, v.arrived
	b.at = (b.at + 1) % len(b.ring)
	b.ring[b.at] = rate{ok, now - b.begin}
	switch {
	case ended > 0 || v.inFlight == 0:
		b.waits = false
	case !b.waits && arrived > 0:
		b.waits, b.pending = true, now
	}
	mean := b.sum / float64(max(b.n, 1))
	if b.n > 0 {
		b.last = time.Duration(mean)
	}
	switch {
	case b.n >= int(xMinN):
		b.standing = float64(b.least) > t*xStand || mean > t*xMean && mean > xTwice*b.low && b.low > 0
	case b.n == 0 && ok == 0 && !b.standing:
		b.standing = b.waits && float64(now-b.pending) > t
	}
	thr, count := b.throughput()
	if ok > 0 && !b.ready {
		if b.first == 0 {
			b.first = b.begin
		}
		b.ready = b.total >= 20 && now-b.first > time.Duration(xReady*mean)
	}
	b.total += int(ok)
	if b.n > 0 && !b.standing && (!b.engaged || mean < b.base) {
		if b.base == 0 {
			b.base = mean
		}
		w := float64(min(b.n, 16)) / 64
		if mean > b.base {
			w /= xUp
		}
		b.base += w * (mean - b.base)
		if b.low == 0 {
			b.low = mean
		}
		if mean > b.low {
			w /= 16
		}
		b.low += w * (mean - b.low)
		b.seen++
	}
	if !b.engaged {
		b.typ += (float64(v.inFlight) - b.typ) / 16
		b.most = max(float64(v.inFlight), b.most*(1-1.0/256))
		b.peak = max(thr, b.peak*(1-1.0/512))
		b.cut = 1
		if b.standing || v.held {
			b.engaged, b.quiet, b.gain = true, 0, xGain
			b.limit = b.soft(t)
			if b.limit == 0 {
				b.limit = float64(v.inFlight)
			}
			b.spanN = 0
		}
	}
	if b.engaged {
		if v.held || v.waiting > 0 {
			b.quiet = 0
		} else if b.quiet++; b.quiet > 4 && !b.standing {
			b.engaged = false
		}
		b.steer(v, t, thr, count, int(ok))
	}
	b.begin, b.n, b.sum, b.least = now, 0, 0, 0
}

func (b *pipe) steer(v view, t, thr float64, count, ok int) {
	b.peak = max(thr, xDecay*b.peak)
	if b.spanN += ok; v.held && ok > 0 && b.spanN >= 20 && v.now-b.spanAt >= b.last {
		b.spanN, b.spanAt = 0, v.now
		switch {
		case thr < xShort*b.peak:
			b.cut = min(b.cut*2, 1)
		case float64(b.last) > xElev*b.low && b.low > 0:
			b.cut *= xStep
		}
	}
	if xLean == 0 {
		if b.standing {
			b.limit = max(4, xTyp*b.typ, b.peak*max(t*xCut*b.cut, min(b.low*2, t*xCut)))
		} else {
			if b.cut < 1 {
				b.limit = max(4, b.peak*max(t*xCut*b.cut, min(b.low*2, t*xCut)))
				return
			}
			if b.n > 0 && !(float64(b.last) > xElev*b.low && b.low > 0) {
				b.limit *= xGrow
			}
			b.limit = max(b.limit, xHeld*thr*t, 4)
		}
		return
	}
	most := max(t/2, b.base)
	aim := min(b.gain*b.base, most)
	b.spanN += ok
	if b.spanN >= 20 && count >= 20 {
		b.spanN = 0
		if thr < xShort*b.peak && v.held {
			b.gain = min(2*b.gain, max(most/max(b.base, 1), xGain))
		} else {
			b.gain = max(b.gain*0.98, xGain)
		}
	}
	b.limit = max(4, xTyp*b.typ, b.peak*aim)
}

// soft is the limit while nothing stands.
func (b *pipe) soft(t float64) float64 {
	if xSoft == 0 || !b.ready {
		return 0
	}
	return max(xSoft*b.peak*t, 2*b.most, xFloor)
}

func (b *pipe) places(t time.Duration, c *Config) int {
	limit := float64(unlimited)
	if b.engaged {
		limit = max(b.limit, float64(c.MinConcurrency))
	} else if soft := b.soft(float64(t)); soft > 0 {
		limit = soft
	}
	return int(min(math.Ceil(limit), float64(c.MaxConcurrency)))
}

func (b *pipe) room(t time.Duration) int {
	return int(min(max(xRoom*b.peak*float64(t), 16), most))
}
