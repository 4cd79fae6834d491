package abatekafka

import (
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// alarm wakes a partition when the first of its records is due. It has no lock: its partition has one.
type alarm struct {
	timer *time.Timer
	at    time.Duration // when it rings, on the guards' clock; in the past when it does not
	ring  func()
}

// set has it ring after a wait, or earlier.
func (a *alarm) set(now, wait time.Duration) {
	if wait == redelivery.Forever {
		return
	}
	at := now + max(wait, 0)
	switch {
	case a.timer == nil:
		a.timer = time.AfterFunc(at-now, a.ring)
	case a.at > now && a.at <= at: // it rings before
		return
	default:
		a.timer.Reset(at - now)
	}
	a.at = at
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
