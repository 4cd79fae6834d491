package h2

import (
	"time"

	"github.com/abate-go/abate/core"
)

// alarm is the timer of a connection, which it has once it needs one. The mutex of the connection guards it.
type alarm struct {
	ring    func() // called without the mutex
	timer   *time.Timer
	at      time.Duration // when it rings at the latest
	stopped bool
}

// set makes the alarm ring at that time, or before. It reads the clock only if it has to: an alarm that rings too early
// costs less than setting one for every wait.
func (a *alarm) set(at time.Duration) {
	if at >= a.at || a.stopped {
		return
	}
	a.at = at
	d := max(at-core.Now(), 0)
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.ring)
		return
	}
	a.timer.Reset(d)
}

func (a *alarm) rang() { a.at = core.NoDeadline }

// stop ends the alarm for good.
func (a *alarm) stop() {
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// later returns now + d without overflow; a negative d is no limit.
func later(now, d time.Duration) time.Duration {
	if sum := now + d; d >= 0 && sum >= now {
		return sum
	}
	return core.NoDeadline
}
