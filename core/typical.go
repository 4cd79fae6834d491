package core

import (
	"sync/atomic"
	"time"
)

// typicalLatency is about what the quicker successful attempts take, so that a retry is not begun that cannot end in
// time. It falls by an eighth of the way and rises by a thirty-second of itself: a few slow answers, or a slow endpoint
// beside quick ones, must not talk the others out of their retries. A value within an eighth is not written: in the
// steady state callers only read.
type typicalLatency struct{ ns atomic.Int64 }

func (t *typicalLatency) load() time.Duration { return time.Duration(t.ns.Load()) }

func (t *typicalLatency) record(latency time.Duration) {
	old := t.ns.Load()
	switch diff := int64(latency) - old; {
	case old == 0:
		t.ns.Store(int64(latency))
	case diff > old/8:
		t.ns.Store(old + old/32 + 1)
	case diff < -old/8:
		t.ns.Store(old + diff/8)
	}
}
