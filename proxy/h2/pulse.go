package h2

import (
	"time"

	"github.com/abate-go/abate/core"
)

// pulse decides when the peer is asked for a sign of life, and when it is taken for dead. The mutex of the connection
// guards it.
type pulse struct {
	after, limit time.Duration // Config.PingAfter, Config.PingTimeout
	heard        time.Duration // when something was read last
	asked        bool          // and not answered
	askedAt      time.Duration
	count        int // how often it was asked since the last content or head
}

// longPause is the time between two questions, from the fourth on: servers of gRPC end a connection that asks more
// often than every five minutes.
const longPause = 5*time.Minute + 10*time.Second

// restart begins to count the silence of the peer at now.
func (p *pulse) restart(now time.Duration) { p.heard, p.asked, p.count = now, false, 0 }

// progress notes a head or content of the peer, and reports whether it need not be asked for longer than before.
func (p *pulse) progress() bool {
	again := p.count > 0
	p.count = 0
	return again
}

// check reports whether to ask the peer now, and returns when to check again; an error if the peer is taken for dead.
// busy says that there are streams.
func (p *pulse) check(now time.Duration, busy bool) (next time.Duration, ask bool, err error) {
	if p.asked && p.heard >= p.askedAt { // equal: the clock is too coarse to show that it was heard later
		p.asked = false
	}
	if p.asked {
		due := later(p.askedAt, p.limit)
		if now >= due {
			return 0, false, &netError{"the peer gave no sign of life within " + p.limit.String(), nil}
		}
		return due, false, nil
	}
	if p.after < 0 || !busy {
		return core.NoDeadline, false, nil
	}
	since, gap := p.heard, p.after
	if p.count > 0 {
		since = max(since, p.askedAt)
		gap <<= min(p.count, 2)
	}
	if p.count > 2 {
		gap = max(gap, longPause)
	}
	due := later(since, gap)
	if now < due {
		return due, false, nil
	}
	p.asked, p.askedAt = true, now
	p.count++
	return later(now, p.limit), true, nil
}
