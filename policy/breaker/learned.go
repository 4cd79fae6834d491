package breaker

import (
	"math"
	"math/bits"
	"time"
)

const (
	// perOctave is how many classes of latency there are for each doubling: a class is 19 % wide.
	perOctave = 4
	// classes reach from 1 µs to about 75 minutes.
	classes = 32 * perOctave
	// memory is how many attempts are remembered about: when there are so many, all counts are halved.
	memory = 2048
	// shortest is the least time after which an attempt can be overdue. Schedulers and timers are late by milliseconds
	// on a busy machine, which says nothing about a dependency.
	shortest = 20 * time.Millisecond
	// unknownPatience is how long an attempt may take where nobody has said it and nothing has been learned.
	unknownPatience = time.Second
)

// learned is what a breaker knows of how its dependency answers: how long successes take, and how many attempts have
// none. All of it is learned from successes; failures count from the next success on, so that an outage does not teach
// the breaker that outages are normal.
type learned struct {
	counts    [classes]float32 // successes by latency
	successes float32
	failures  float32 // attempts that ended without a success
	pending   float32 // the same since the last success
	smoothed  time.Duration
	variation time.Duration
	patience  time.Duration // what attempts are given, smoothed; 0: nobody has said
	recent    [16]uint8     // classes of the latest successes
	at        int           // where the next one goes
	top       int           // no class above it has a success
}

// class returns the class of a latency.
func class(d time.Duration) int {
	us := uint64(max(d, 0)) / 1000
	if us == 0 {
		return 0
	}
	octave := bits.Len64(us) - 1
	fraction := us << (63 - octave) << 1 >> 62 // the two bits after the leading one
	return min(octave*perOctave+int(fraction), classes-1)
}

// given notes how long an attempt may take, in steps of a 64th, as a mean over many callers.
func (l *learned) given(patience time.Duration) {
	switch {
	case patience <= 0:
	case l.patience == 0:
		l.patience = patience
	default:
		l.patience += (min(patience, 2*l.patience) - l.patience) / 64 // one deadline of years is no mean
	}
}

// succeeded learns from a success. The smoothing is that of TCP's retransmission timer (RFC 6298), with a 16th for
// both, because many attempts are in flight at once.
func (l *learned) succeeded(latency time.Duration) {
	latency = max(latency, 0)
	l.failures += l.pending
	l.pending = 0
	if l.successes == 0 {
		l.smoothed, l.variation = latency, latency/2
	} else {
		off := latency - l.smoothed
		l.smoothed += off / 16
		l.variation += (max(off, -off) - l.variation) / 16
	}
	k := class(latency)
	l.counts[k]++
	l.top = max(l.top, k)
	l.recent[l.at%len(l.recent)] = uint8(k)
	l.at++
	if l.successes++; l.successes+l.failures >= memory {
		l.halve()
	}
}

func (l *learned) halve() {
	l.successes = 0
	for i := range l.counts {
		l.counts[i] /= 2
		l.successes += l.counts[i]
	}
	l.failures /= 2
}

// worn returns the surprise at one attempt that was given up at an age at which few are answered yet, in nats. Its age
// says nothing then; but if all callers leave so early nothing else ever says anything. So what they have waited
// counts, as if an answer were as likely in each moment: in units of what it takes.
func (l *learned) worn(age time.Duration) float32 {
	if l.smoothed == 0 {
		return 0
	}
	return float32(min(float64(age)/float64(l.smoothed), 1))
}

// beyondChance is what the surprises at that many latencies in a row, less one, add up to by chance once in a thousand
// times: a quantile of the gamma distribution, as in Fisher's test of several results together.
var beyondChance = [16]float32{6.91, 9.23, 11.23, 13.06, 14.79, 16.45, 18.06, 19.63,
	21.16, 22.66, 24.13, 25.59, 27.03, 28.45, 29.85, 31.24}

// strained reports whether the dependency answers more slowly than it usually does: whether the latest successes, some
// or all of those remembered one by one, have all taken surprisingly long.
func (l *learned) strained() bool {
	var later [classes]float32 // how many have taken as long or longer
	known, all := l.top+1, float32(0)
	sum := float32(0)
	for n := range min(l.at, len(l.recent)) {
		k := int(l.recent[(l.at-1-n)%len(l.recent)])
		for known > k {
			known--
			all += l.counts[known]
			later[known] = all
		}
		sum += float32(math.Log(float64((l.successes + 1) / (later[k] - l.counts[k]/2 + 0.5))))
		if sum > beyondChance[n] {
			return true
		}
	}
	return false
}

// limit returns how long an attempt may take: what callers give it, else a long time beside what it usually takes.
func (l *learned) limit() time.Duration {
	if l.patience > 0 {
		return l.patience
	}
	return l.lonely()
}

// lonely returns how long an attempt may take where nobody says it: a long time beside what it usually takes.
func (l *learned) lonely() time.Duration { return max(unknownPatience, 20*l.smoothed) }

// overdue returns the age at which a success is late: TCP's retransmission timeout (RFC 6298), but at least twice what
// a success takes, and at most half of what callers give it. Before the first success it is that half.
func (l *learned) overdue() time.Duration {
	half := l.limit() / 2
	if l.successes == 0 {
		return half
	}
	return min(max(l.smoothed+max(4*l.variation, l.smoothed), shortest), half)
}

// silence returns how long there may be no success before it means something: twice the time after which one is
// overdue. Before the first success it is no longer than unknownPatience: that callers would wait for a minute does not
// mean that answers take so long.
func (l *learned) silence() time.Duration {
	if l.successes == 0 {
		return min(2*l.overdue(), unknownPatience)
	}
	return 2 * l.overdue()
}

// doubts is what the learned says of attempts without a success, by the class of their age: the surprise at one, in
// nats.
type doubts [classes]float32

// surprises works out the surprise of every class: -ln of the share of attempts that have had no success by that age
// (Laplace's rule of succession). Successes of the class itself count as later ones, so that it errs to calm.
func (l *learned) surprises(d *doubts) {
	all := l.successes + l.failures + 2
	later := l.failures + 1
	nats := float32(math.Log(float64(all / later)))
	for i := classes - 1; i >= 0; i-- {
		if n := l.counts[i]; n > 0 { // few classes have any, and a logarithm costs as much as all the rest
			later += n
			nats = float32(math.Log(float64(all / later)))
		}
		d[i] = nats
	}
}

// surprise returns the surprise at one attempt that has had no success by an age.
func (l *learned) surprise(age time.Duration) float32 {
	later := l.failures + 1
	for i := class(age); i <= l.top; i++ {
		later += l.counts[i]
	}
	return float32(math.Log(float64((l.successes + l.failures + 2) / later)))
}
