// Package recycle decides whether a connection is given up because its server takes no writes.
//
// After a failover such a connection leads to the old primary, and a new one to the new primary: giving it up mends it.
// Without a failover, or before it is over, a new connection is no better, and giving up many costs those who only read
// their connections. Nobody can tell the two apart but by trying, so a Recycler tries one at a time: the next only when
// the pool has opened one since, and with growing pauses once one that was opened since takes no writes either.
//
// A Recycler is a state machine: it is given the time and the random number. It starts no goroutine and reads no clock.
package recycle

import (
	"sync"
	"time"
)

const (
	// first is the pause after the first new connection that was no better.
	first = 100 * time.Millisecond
	// longest is the longest pause, before jitter: how late a failover is noticed, at the price of one new connection in
	// each pool. After so long without a refusal the next one is a new story.
	longest = 5 * time.Second
)

// Recycler decides for the connections of one pool. The zero Recycler is ready for use. All methods may be called from
// many goroutines at once. Times are durations since any fixed origin, the same for all calls.
type Recycler struct {
	mu      sync.Mutex
	story   bool          // there was a refusal
	began   time.Duration // when the first connection of the story was given up
	heard   time.Duration // when a write was last refused
	gaveUp  time.Duration // when a connection last was given up
	missing bool          // the pool has opened none since
	pause   time.Duration // 0 until a new connection was no better
	until   time.Duration // the end of it
}

// GiveUp reports whether a connection that was opened at born, and has refused a write at now because its server takes
// none, is to be closed. draw is 64 uniform random bits.
func (r *Recycler) GiveUp(now, born time.Duration, draw uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.story || now-r.heard > 2*longest {
		r.story, r.began, r.missing, r.pause, r.until = true, now, false, 0, now
	}
	r.heard = now
	if now < r.until || r.missing && now < r.gaveUp+longest {
		return false
	}
	if born > r.began { // opened since, and no better
		r.pause = min(max(2*r.pause, first), longest)
	}
	unit := float64(draw>>11) / (1 << 53)
	r.gaveUp, r.missing, r.until = now, true, now+time.Duration(float64(r.pause)*(0.5+unit))
	return true
}

// Opened says that the pool has opened a connection.
func (r *Recycler) Opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = false
}
