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
	flowing   bool // one of out may be answered
}

type lease struct {
	serial   uint32
	answered bool // and the answer has not ended yet
	until    time.Duration
}

func (l lease) over(now time.Duration) bool { return now >= l.until }

func (p *probes) reset() { p.out, p.successes = p.out[:0], 0 }

// running is how many leases are out at now, and not over.
func (p *probes) running(now time.Duration) (n int) {
	for _, l := range p.out {
		if !l.over(now) {
			n++
		}
	}
	return n
}

// full reports whether permitted leases are out at now.
func (p *probes) full(now time.Duration, permitted int) bool { return p.running(now) >= permitted }

// keepLost is how many times the permitted number of leases are remembered: those that are over have given their permit
// to another probe, but what became of their calls still counts when it is known.
const keepLost = 4

// take hands out a lease unless permitted of them are out. Leases that are over make room.
func (p *probes) take(now time.Duration, permitted int, d time.Duration) (serial uint32, ok bool) {
	if p.full(now, permitted) {
		return 0, false
	}
	if len(p.out) >= keepLost*permitted { // most are over: forget the oldest
		p.out = slices.Delete(p.out, 0, 1)
	}
	p.serial++
	p.out = append(p.out, lease{serial: p.serial, until: after(now, d)})
	return p.serial, true
}

// give takes a lease back and reports whether it was out. A lease can be given back only once.
func (p *probes) give(serial uint32) bool {
	i := slices.IndexFunc(p.out, func(l lease) bool { return l.serial == serial })
	if i < 0 {
		return false
	}
	p.out = slices.Delete(p.out, i, i+1)
	return true
}

// answered notes that the answer of a probe has begun.
func (p *probes) answered(serial uint32) {
	if i := slices.IndexFunc(p.out, func(l lease) bool { return l.serial == serial }); i >= 0 {
		p.out[i].answered, p.flowing = true, true
	}
}

// outlived takes the probes whose answers have lasted longer than their leases, and returns how many there were.
func (p *probes) outlived(now time.Duration) int {
	if !p.flowing {
		return 0
	}
	return p.takeOutlived(now)
}

func (p *probes) takeOutlived(now time.Duration) (n int) {
	p.flowing = false
	p.out = slices.DeleteFunc(p.out, func(l lease) bool {
		if l.answered && l.over(now) {
			n++
			return true
		}
		p.flowing = p.flowing || l.answered
		return false
	})
	return n
}
