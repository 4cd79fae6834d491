package h2

import (
	"time"

	"github.com/abate-go/abate/core"
)

const (
	// restAfter is how long a connection has to be idle before its workers end.
	restAfter = 5 * time.Second
	// drainWait is how long the first GOAWAY may be on its way before the second is sent anyway.
	drainWait = time.Second
)

// tick does what is due when the alarm rings: it ends waits, asks a silent peer for a sign of life, and ends the
// connection when something took too long.
func (c *Conn) tick() {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return
	}
	now := core.Now()
	c.alarm.rang()
	next, err := c.check(now)
	if err != nil {
		c.fail(err)
		return
	}
	if next != core.NoDeadline {
		c.alarm.set(max(next, now+time.Millisecond))
	}
	c.endIfOver()
	c.announce()
}

// check does what is due, and returns when to check again; an error ends the connection. mu is held.
func (c *Conn) check(now time.Duration) (next time.Duration, err error) {
	wait := c.waits.expire(now)
	pulse, ask, err := c.pulse.check(now, c.busy() > 0)
	if err != nil {
		return 0, err
	}
	if ask {
		c.out.ping(0, lifePing)
	}
	output, err := c.writer.check(now)
	if err != nil {
		return 0, err
	}
	input, err := c.pending.check(now, c.pulse.heard, c.config.StallTimeout)
	if err != nil {
		return 0, err
	}
	return min(wait, pulse, output, input, c.rest(now)), nil
}

// rest ends workers that have nothing to do, drains an idle connection, and goes on with a drain. It returns when to
// check again. mu is held.
func (c *Conn) rest(now time.Duration) (next time.Duration) {
	next = core.NoDeadline
	if c.draining == saidFirst {
		if due := c.drainAt + drainWait; now < due {
			next = due
		} else {
			c.sayLast()
		}
	}
	if c.busy() > 0 {
		return next
	}
	if len(c.workers.idle) > 0 {
		if due := c.idleSince + restAfter; now < due {
			next = min(next, due)
		} else {
			c.workers.dismiss()
		}
	}
	if due := later(c.idleSince, c.config.IdleTimeout); now < due {
		next = min(next, due)
	} else if c.draining == not {
		c.drain(now)
	}
	return next
}
