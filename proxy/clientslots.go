package proxy

import (
	"time"

	"github.com/abate-go/abate/core"
)

// How many of the files that the process may have open are for other things than clients and services: listeners, the
// page, the policy file, Redis.
const (
	leastOthers = 16
	mostOthers  = 256
)

// roomFor is how many clients may be connected at once where the process may have so many files open, and how many
// connections to services there is room for beyond one for each of them: whoever has come in can be served. wanted is
// the number of clients, if somebody has chosen it. Less than 0, and of both, means any number.
func roomFor(files, wanted int) (clients, more int) {
	if files <= 0 || wanted < 0 {
		return max(wanted, 0), -1
	}
	files = max(files-max(leastOthers, min(files/8, mostOthers)), 2)
	ninth := max(files/9, 1)
	if wanted == 0 {
		wanted = max(4*ninth, 1)
	}
	return wanted, max(files-2*wanted, ninth)
}

// idleEnough is how long a client must have waited before its connection is closed to make room for another: a
// request may be on its way.
const idleEnough = glance

// takeSlot waits until there is room for one more client. Where there is none, the one that has been idle for longest,
// of a few that are looked at, has to go.
func (d *door) takeSlot() {
	p := d.lobby
	p.mu.Lock()
	defer p.mu.Unlock()
	for told := false; p.plane.config.MaxConnections > 0 && p.connected >= p.plane.config.MaxConnections &&
		!d.draining.Load(); told = true {
		if moving := p.showOut(); !told {
			p.plane.crowd.Add(1)
			defer p.plane.crowd.Add(-1)
			if p.stood++; !moving {
				p.full.waited++
			}
		}
		p.mu.Unlock()
		wait := time.NewTimer(idleEnough / 4)
		select {
		case <-p.freed:
		case <-wait.C:
		}
		wait.Stop()
		p.mu.Lock()
	}
	p.connected++
}

// full is what is said of clients who found no room, and nobody who could make some: soon, and while more of them come
// less and less often, since what is the matter is known by then.
type full struct {
	waited int           // since it was said last
	pause  time.Duration // until it may be said again, from the last time on
	said   time.Duration
}

// longestPause is between two such lines.
const longestPause = time.Minute

// due returns how many there are to speak of now, and 0 if nothing is to be said.
func (f *full) due(now time.Duration) (waited int) {
	if now < later(f.said, f.pause) {
		return 0
	}
	if f.waited == 0 {
		f.pause = 0 // the next one is news
		return 0
	}
	waited, f.waited = f.waited, 0
	f.said, f.pause = now, min(max(2*f.pause, time.Second), longestPause)
	return waited
}

// sayFull is called once a second.
func (p *lobby) sayFull(now time.Duration) {
	p.mu.Lock()
	waited := p.full.due(now)
	p.mu.Unlock()
	if waited > 0 {
		p.plane.config.Log.Warn("no room for more clients: they wait, raise --max-connections or the limit of open files",
			"connections", p.plane.config.MaxConnections, "waited", waited)
	}
}

// freeSlot gives a slot back.
func (p *lobby) freeSlot() {
	p.mu.Lock()
	if p.connected--; p.connected == 0 && p.closed {
		p.emptied()
	}
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// glances is how many clients are looked at for one that can go: as a map gives them, at random.
const glances = 64

// showOut closes the connection of a client that waits for nothing, or else of one that does not come to the end of
// its head, or to a first one. mu is held.
func (p *lobby) showOut() bool {
	var longest, slowest *clientConn
	now, looked := core.Now(), 0
	since, slow := now-idleEnough, now-slowEnough
	for c := range p.clients {
		if looked++; looked > glances {
			break
		}
		if c.dismissed.Load() {
			continue
		}
		if at, coming := comingSince(c); coming {
			if at <= slow {
				slowest, slow = c, at
			}
		} else if at, idle := c.idleSince(); idle && at <= since {
			longest, since = c, at
		}
	}
	switch {
	case longest != nil:
		longest.dismissed.Store(true)
		p.dismiss(longest)
	case slowest != nil:
		slowest.dismissed.Store(true)
		if slowest.http2.Load() == nil {
			slowest.sock.nc.SetReadDeadline(time.Unix(1, 0))
		}
		p.dismiss(slowest)
	}
	return longest != nil || slowest != nil
}

// idleSince is since when the client has asked for nothing; false if it is asking.
func (c *clientConn) idleSince() (time.Duration, bool) {
	if conn := c.http2.Load(); conn != nil {
		return conn.Idle()
	}
	at := c.waiting.Load()
	return time.Duration(at), at != 0 && c.asked.Load()
}

// comingSince is since when something is coming of which the rest is awaited, or the first request of a client; false
// if nothing is.
func comingSince(c *clientConn) (time.Duration, bool) {
	if conn := c.http2.Load(); conn != nil {
		return conn.Begun()
	}
	at := c.heading.Load()
	if at == 0 && !c.asked.Load() {
		at = c.waiting.Load()
	}
	return time.Duration(at), at != 0
}
