package h2

import (
	"sync"
	"time"

	"github.com/abate-go/abate"
)

// waiter is one of the two waits that a stream can be in: for something to read, or for room to write. The mutex of the
// connection guards it.
type waiter struct {
	roused     sync.Cond
	until      time.Duration
	list       *waiters // that it is in; nil for none
	next, prev *waiter
	waiting    bool
	late       bool // the wait ended because its time was up
}

// waiters is a list of waiters.
type waiters struct{ first *waiter }

func (l *waiters) add(w *waiter) {
	w.list, w.prev, w.next = l, nil, l.first
	if l.first != nil {
		l.first.prev = w
	}
	l.first = w
}

func (w *waiter) unlink() {
	switch {
	case w.list == nil:
		return
	case w.prev != nil:
		w.prev.next = w.next
	default:
		w.list.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.list, w.next, w.prev = nil, nil, nil
}

// rouse ends the wait.
func (w *waiter) rouse() {
	if w.waiting {
		w.waiting = false
		w.unlink()
		w.roused.Signal()
	}
}

// rouseSoon ends the wait when all that has been read has been handled: what w waits for is often followed by more.
func (c *Conn) rouseSoon(w *waiter) {
	if w.waiting && w.list != &c.due {
		w.unlink()
		c.due.add(w)
	}
}

// wait waits until w is roused; false when the time is up first. Frames that wait to be written go out before. mu is held,
// but not while it waits.
func (c *Conn) wait(w *waiter, until time.Duration) bool {
	w.waiting, w.late = true, false
	if until != abate.NoDeadline {
		w.until = until
		c.timed.add(w)
		c.alarmAt(until)
	}
	if c.out != nil && !c.flushing {
		c.flushAndUnlock()
		c.mu.Lock()
	}
	for w.waiting {
		w.roused.Wait()
	}
	return !w.late
}

// alarmAt sees to it that tick is called at that time, or before. mu is held. It reads no clock, unless it has to: an alarm
// that comes too early is cheaper than one that is set for every wait.
func (c *Conn) alarmAt(at time.Duration) {
	if at >= c.alarm || c.dead {
		return
	}
	c.alarm = at
	d := max(at-abate.Now(), 0)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, c.tick)
		return
	}
	c.timer.Reset(d)
}

// later is now + d without overflow; a negative d is no limit.
func later(now, d time.Duration) time.Duration {
	if sum := now + d; d >= 0 && sum >= now {
		return sum
	}
	return abate.NoDeadline
}

// tick does what is due: it ends waits, asks a silent peer for a sign of life, and ends the connection when something took
// too long.
func (c *Conn) tick() {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return
	}
	now := abate.Now()
	c.alarm = abate.NoDeadline
	next := c.endWaits(now)
	for _, look := range [...]func(*Conn, time.Duration) (time.Duration, error){
		(*Conn).lookAtPeer, (*Conn).lookAtOutput, (*Conn).lookAtInput, (*Conn).lookAtRest,
	} {
		at, err := look(c, now)
		if err != nil {
			c.fail(err)
			return
		}
		next = min(next, at)
	}
	if next != abate.NoDeadline {
		c.alarmAt(max(next, now+time.Millisecond))
	}
	c.endIfOver()
	c.announce()
}

// endWaits ends the waits whose time is up, and tells when the next is.
func (c *Conn) endWaits(now time.Duration) (next time.Duration) {
	next = abate.NoDeadline
	for w := c.timed.first; w != nil; {
		following := w.next
		if w.until <= now {
			w.late = true
			w.rouse()
		} else {
			next = min(next, w.until)
		}
		w = following
	}
	return next
}

// longPause is what lies between two signs of life that are asked for, from the fourth on: servers of gRPC take it ill if it
// is less than five minutes.
const longPause = 5*time.Minute + 10*time.Second

// lookAtPeer asks for a sign of life, and misses it.
func (c *Conn) lookAtPeer(now time.Duration) (next time.Duration, err error) {
	if c.pinging && c.heard >= c.pingedAt { // asked after a long silence: it was heard later, if by a clock that is too coarse
		c.pinging = false
	}
	if c.pinging {
		due := later(c.pingedAt, c.config.PingTimeout)
		if now >= due {
			return 0, &netError{"the peer gave no sign of life within " + c.config.PingTimeout.String(), nil}
		}
		return due, nil
	}
	if c.config.PingAfter < 0 || c.open() == 0 {
		return abate.NoDeadline, nil
	}
	since, gap := c.heard, c.config.PingAfter
	if c.pings > 0 {
		since = max(since, c.pingedAt)
		gap <<= min(c.pings, 2)
	}
	if c.pings > 2 {
		gap = max(gap, longPause)
	}
	due := later(since, gap)
	if now < due {
		return due, nil
	}
	c.makeRoom(frameOverhead + 8)
	c.out.b = appendPing(c.out.b, 0, lifePing)
	c.pinging, c.pingedAt = true, now
	c.pings++
	return later(now, c.config.PingTimeout), nil
}

// goesOn notes that the peer has sent a head or content: it need not be asked for a while. mu is held.
func (c *Conn) goesOn() {
	if c.pings > 0 {
		c.pings = 0
		c.alarmAt(later(c.now, c.config.PingAfter))
	}
}

// lookAtOutput finds a peer that takes nothing.
func (c *Conn) lookAtOutput(now time.Duration) (next time.Duration, err error) {
	if !c.writing {
		return abate.NoDeadline, nil
	}
	due := later(c.wroteAt, c.config.StallTimeout)
	if now >= due {
		return 0, &netError{"the peer took nothing for " + c.config.StallTimeout.String(), nil}
	}
	return due, nil
}

// lookAtInput finds a peer that does not end what it has begun.
func (c *Conn) lookAtInput(now time.Duration) (next time.Duration, err error) {
	due := c.expected
	if c.expecting == aFrame {
		due = later(c.heard, c.config.StallTimeout)
	}
	switch {
	case c.expecting == nothing:
		return abate.NoDeadline, nil
	case now < due:
		return due, nil
	case c.expecting == settings:
		return 0, &ConnError{Code: SettingsTimeout, Problem: "the first SETTINGS frame did not come in time"}
	case c.expecting == aHead:
		return 0, &ConnError{Code: EnhanceYourCalm, Problem: "a head was begun and did not end in time"}
	}
	return 0, &ConnError{Code: EnhanceYourCalm, Problem: "a frame was begun and not continued in time"}
}

// restAfter is how long a connection has to be idle before its workers go.
const restAfter = 5 * time.Second

// drainWait is how long the first GOAWAY may be on its way before the second is sent anyway.
const drainWait = time.Second

// lookAtRest sends workers away that have nothing to do, ends an idle connection, and goes on with a drain.
func (c *Conn) lookAtRest(now time.Duration) (next time.Duration, err error) {
	next = abate.NoDeadline
	if c.draining == saidFirst {
		if due := c.drainAt + drainWait; now < due {
			next = due
		} else {
			c.sayLast()
		}
	}
	if c.open() > 0 {
		return next, nil
	}
	if len(c.workers) > 0 {
		if due := c.idleSince + restAfter; now < due {
			next = min(next, due)
		} else {
			c.dismissWorkers()
		}
	}
	if due := later(c.idleSince, c.config.IdleTimeout); now < due {
		next = min(next, due)
	} else if c.draining == not {
		c.drain(now)
	}
	return next, nil
}
