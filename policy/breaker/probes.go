package breaker

import (
	"slices"
	"time"
)

// probes are the permits out while the breaker is half-open. The breaker's lock guards them.
type probes struct {
	out       []lease
	serial    uint32 // of the latest lease, never reused within a generation
	successes int
}

type lease struct {
	serial uint32
	until  time.Duration
}

func (l lease) over(now time.Duration) bool { return now >= l.until }

func (p *probes) reset() { p.out, p.successes = p.out[:0], 0 }

// full reports whether permitted leases are out at now.
func (p *probes) full(now time.Duration, permitted int) bool {
	running := 0
	for _, l := range p.out {
		if !l.over(now) {
			running++
		}
	}
	return running >= permitted
}

// take hands out a lease unless permitted of them are out. Leases that are over make room.
func (p *probes) take(now time.Duration, permitted int, d time.Duration) (serial uint32, ok bool) {
	if len(p.out) >= permitted {
		p.out = slices.DeleteFunc(p.out, func(l lease) bool { return l.over(now) })
	}
	if len(p.out) >= permitted {
		return 0, false
	}
	p.serial++
	p.out = append(p.out, lease{serial: p.serial, until: after(now, d)})
	return p.serial, true
}

// give takes a lease back and reports whether it was still running. A lease can be given back only once.
func (p *probes) give(now time.Duration, serial uint32) bool {
	i := slices.IndexFunc(p.out, func(l lease) bool { return l.serial == serial })
	if i < 0 {
		return false
	}
	running := !p.out[i].over(now)
	p.out = slices.Delete(p.out, i, i+1)
	return running
}
