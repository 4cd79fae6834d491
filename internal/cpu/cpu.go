// Package cpu measures which share of the processor time that this process may use is used: of its container's limit,
// or else of the machine. It has no goroutine, and does nothing before the first call.
package cpu

import (
	"sync"
	"time"
)

// Share is the share of the processor time used since the last call, 0 to 1: of the limit of this process' control
// group (cgroup v2, or v1) and those around it, whichever is used most, else of the machine's processors. It counts
// what all processes in the group, or on the machine, use together.
//
// The first call answers 0, and so do all where nothing can be read: other systems than Linux, or a container without
// /proc. Calls that follow within 100 ms get the same answer again: several callers do not disturb each other. A call
// reads two small files for each limit, or /proc/stat, which takes some 10 µs; it allocates nothing after the second.
func Share() float64 { return process.share(time.Now()) }

var process meter

// interval is the shortest time that is measured: /proc/stat counts in steps of 10 ms.
const interval = 100 * time.Millisecond

// meter turns counters into shares.
type meter struct {
	mu      sync.Mutex // guards what follows
	sources sources
	began   bool
	at      time.Time // of the last reading
	last    float64
}

func (m *meter) share(now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := now.Sub(m.at)
	if m.began && passed < interval {
		return m.last
	}
	if !m.began {
		m.began = m.sources.open()
	}
	m.at = now
	var ok bool
	if m.last, ok = m.sources.read(passed); !ok {
		// A control group that is gone, or a file that is: look anew the next time.
		m.sources.close()
		m.began, m.last = false, 0
	}
	return m.last
}

// counter is one that only grows.
type counter struct {
	last  time.Duration
	valid bool
}

// grown is by how much, since the last call; false the first time, or if it has gone back.
func (c *counter) grown(to time.Duration) (time.Duration, bool) {
	by, ok := to-c.last, c.valid && to >= c.last
	c.last, c.valid = to, true
	return by, ok
}

// ratio is used / available between 0 and 1.
func ratio(used, available float64) float64 {
	if available <= 0 {
		return 0
	}
	return min(used/available, 1)
}
