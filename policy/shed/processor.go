package shed

import (
	"sync/atomic"
	"time"
)

const (
	cpuClasses    = 2 * len(Priorities) // retries and first attempts of each priority
	cpuHysteresis = 0.95                // of the threshold: below this more is let in again
	// of the requests always pass: nobody would notice that the processor is idle again
	cpuLeast = 0.05
	cpuStale = 10 * time.Second // readings older than this say nothing
	one      = 1 << 16          // a share of 1
)

// processor refuses a share of the requests while the processor is busy, the least important first. Which ones is
// decided by adding up the share of each: no random numbers are needed, and one in four is every fourth.
type processor struct {
	share [cpuClasses]atomic.Uint32 // to be refused, of one
	sum   [cpuClasses]atomic.Uint32 // of the shares so far
	seen  [cpuClasses]atomic.Uint32 // requests since the last reading

	// Guarded by the shedder's lock.
	at   time.Duration
	use  float64
	pass float64 // the share of all requests that may pass
}

func cpuClass(r Request) int {
	class := 2 * level(r.Priority)
	if r.Attempt <= 1 {
		class++
	}
	return class
}

func (p *processor) refuses(r Request) bool {
	class := cpuClass(r)
	p.seen[class].Add(1)
	share := p.share[class].Load()
	if share == 0 {
		return false
	}
	sum := p.sum[class].Add(share)
	return sum/one != (sum-share)/one
}

// read takes a reading into account and reports whether requests have to be looked at from here on.
func (p *processor) read(now time.Duration, use, threshold float64) bool {
	p.at, p.use = now, 0
	if use > 0 { // not if it is no number
		p.use = min(use, 1)
	}
	switch {
	case threshold == 0:
		return false
	case p.use > threshold:
		// Twice the excess: a processor at 100 % does not show by how much it is overloaded.
		p.pass = max(p.pass*max(1-2*(p.use/threshold-1), 0.5), cpuLeast)
	case p.use < threshold*cpuHysteresis:
		p.pass = min(p.pass*1.1, 1)
	}
	p.divide()
	return p.pass < 1 || p.use > threshold*cpuHysteresis
}

// divide spreads what must not pass over the classes, the least important first, by how many of each came.
func (p *processor) divide() {
	var seen [cpuClasses]float64
	total := 0.0
	for i := range seen {
		seen[i] = float64(p.seen[i].Swap(0))
		total += seen[i]
	}
	if total == 0 && p.pass < 1 {
		return // nothing came: the shares stay as they are
	}
	rest := (1 - p.pass) * total
	for i := range seen {
		share := 0.0
		if seen[i] > 0 {
			share = min(rest/seen[i], 1-cpuLeast)
		} else if rest > 0 {
			share = 1 - cpuLeast // what is less important than those refused already
		}
		rest -= share * seen[i]
		if rest < 1e-9 {
			rest = 0
		}
		p.share[i].Store(uint32(share * one))
	}
}

// forget ends the refusals. The next reading begins anew.
func (p *processor) forget() {
	p.use, p.pass = 0, 1
	for i := range p.share {
		p.share[i].Store(0)
		p.seen[i].Store(0)
	}
}
