package proxy

import (
	"time"

	"github.com/abate-go/abate/core"
)

// instant ties the guards' clock to the one that sockets go by.
type instant struct {
	wall time.Time
	at   time.Duration
}

// newInstant reads the guards' clock first: a deadline of a socket must not come before that time on the guards' clock.
func newInstant() instant {
	at := core.Now()
	return instant{time.Now(), at}
}

// time is d on the guards' clock as sockets want it. It reads no clock.
func (i instant) time(d time.Duration) time.Time {
	if d == core.NoDeadline {
		return time.Time{}
	}
	return i.wall.Add(d - i.at)
}

// later is now + d without overflow.
func later(now, d time.Duration) time.Duration {
	if sum := now + d; sum >= now {
		return sum
	}
	return core.NoDeadline
}
