package calltree

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
)

// Table joins the requests that come in with the calls that go out for them: it finds the call tree of a request
// under way by an id that only its service is told, or by the names of its trace.
//
// It holds Most requests at once. One more is not joined: its service is told that nothing is left for it, and while
// there are such requests, calls of which nothing is known are not repeated either. So a full table makes fewer extra
// attempts, never more.
type Table struct {
	Most   int          // requests at once
	joined atomic.Int64 // tickets, those without room among them; calls look at it before anything else

	mu    sync.Mutex
	roots map[uint64]root // by id and by trace
	away  int             // requests there was no room for
	ended []endedTicket   // the longest-ended first
}

// root is a tree under one of its names, and how many requests hold it there.
type root struct {
	*joint
	refs int
}

// joint is the tree of one request, or of several of the same trace.
type joint struct {
	tree    *core.CallTree
	limited bool
	given   int // the allowance that it began with, so that what is gone can be told
	holders int
	ever    int
	closed  bool // for new requests
}

const (
	// maxShare is how many requests may share a tree in its life. More are not the work of one user's request: a job
	// that goes on for hours under one trace, or an id that somebody has forgotten to change. They begin anew.
	maxShare = 100
	// lingering is for how long the calls of a service that did not answer in time are still known: it may not have
	// noticed.
	lingering = 30 * time.Second
	// DefaultMost needs about 8 MiB.
	DefaultMost = 16384
)

// Joined reports whether the table holds a request.
func (c *Table) Joined() bool { return c.joined.Load() > 0 }

// Ticket is a request's place in a Table. The zero Ticket is none.
type Ticket struct {
	joint *joint
	ID    uint64 // what its service is told; 0 for none
	held  [MaxTraces]struct {
		key   uint64
		joint *joint
	}
	n    int
	Away bool // there was no room
}

// Joined reports whether the request has a call tree in the table.
func (t *Ticket) Joined() bool { return t.joint != nil }

type endedTicket struct {
	Ticket
	until time.Duration
}

// Join gives a request with an allowance, if limited is set, or without one its place.
func (c *Table) Join(a core.Allowance, limited bool, keys []uint64) (t Ticket) {
	if limited {
		t.ID = newID()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(core.Now())
	if int(c.joined.Load())-c.away >= c.Most {
		c.away++
		c.joined.Add(1)
		return Ticket{Away: true}
	}
	if c.roots == nil {
		c.roots = map[uint64]root{}
	}
	for _, key := range keys {
		if r, ok := c.roots[key]; ok && r.takes(limited) {
			t.joint = r.joint
			break
		}
	}
	switch {
	case t.joint == nil && limited:
		t.joint = &joint{tree: core.NewCallTree(a), limited: true, given: a.Left}
	case t.joint == nil:
		t.joint = &joint{tree: core.NewOpenCallTree()}
	case limited:
		t.joint.lower(a)
	}
	t.joint.holders++
	t.joint.ever++
	for _, key := range keys {
		r, ok := c.roots[key]
		if !ok || !r.takes(limited) && r.joint != t.joint {
			r = root{joint: t.joint}
		}
		r.refs++
		c.roots[key] = r
		t.held[t.n].key, t.held[t.n].joint = key, r.joint
		t.n++
	}
	if limited {
		c.roots[t.ID] = root{t.joint, 1}
	}
	c.joined.Add(1)
	return t
}

// takes reports whether another request may share the tree. One with an allowance needs a tree that has a limit.
func (j *joint) takes(limited bool) bool {
	return !j.closed && j.ever < maxShare && (j.limited || !limited)
}

// lower makes the allowance smaller without having it look used.
func (j *joint) lower(a core.Allowance) {
	if before, _ := j.tree.Allowance(); j.limited && a.Left < before.Left {
		j.tree.Lower(a)
		j.given -= before.Left - a.Left
	}
}

// newID makes an id that nobody can guess: who knows it can use the allowance up.
func newID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return max(binary.BigEndian.Uint64(b[:]), 1)
}

// ByID finds the tree of the request whose service was told id, and has it obey an allowance that came with it.
func (c *Table) ByID(id uint64, a core.Allowance) *core.CallTree {
	if c.joined.Load() == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.roots[id]
	if !ok {
		return nil
	}
	r.lower(a)
	return r.tree
}

// ByTrace finds the tree of a request under way with one of these names. When there is none it may be that of a
// request that is not joined: then nothing is left.
func (c *Table) ByTrace(keys []uint64) *core.CallTree {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if r, ok := c.roots[key]; ok {
			return r.tree
		}
	}
	if c.away > 0 {
		return core.NewCallTree(core.Allowance{})
	}
	return nil
}

// Report is what the caller of a Ticket's request is told by the answer that begins now. What is left of the
// allowance is lost to the calls that are still under way, unless another request shares it: the caller may use it
// from now on. What they have been handed counts as used.
func (c *Table) Report(t *Ticket) (b core.Below) {
	if t.joint == nil {
		return b
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j := t.joint
	last := j.holders == 1
	j.closed = j.closed || last
	if b = j.tree.Report(); !j.limited {
		return b
	}
	a, _ := j.tree.Allowance()
	if last {
		a.Left = j.tree.Close()
	}
	b.Made = max(b.Made, j.given-a.Left)
	return b
}

// Leave gives the place back. A service that has not answered is perhaps still busy with the request: the calls that
// it makes are known a while longer, as long as half of the table is free.
func (c *Table) Leave(t *Ticket, answered bool) {
	if t.joint == nil && !t.Away {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := core.Now()
	c.expire(now)
	if t.Away {
		c.away--
		c.joined.Add(-1)
		return
	}
	if t.joint.holders--; t.joint.holders == 0 {
		t.joint.closed = true
		t.joint.tree.Close()
	}
	if !answered && t.joint.limited && len(c.ended) < c.Most/2 {
		c.ended = append(c.ended, endedTicket{*t, now + lingering})
		return
	}
	c.remove(t)
}

// remove takes the names of a Ticket off. mu is held.
func (c *Table) remove(t *Ticket) {
	c.joined.Add(-1)
	delete(c.roots, t.ID)
	for _, h := range t.held[:t.n] {
		switch r := c.roots[h.key]; {
		case r.joint != h.joint: // others have taken the name over
		case r.refs == 1:
			delete(c.roots, h.key)
		default:
			r.refs--
			c.roots[h.key] = r
		}
	}
}

// expire removes the tickets that have ended long ago. mu is held.
func (c *Table) expire(now time.Duration) {
	for len(c.ended) > 0 && c.ended[0].until <= now {
		c.remove(&c.ended[0].Ticket)
		c.ended[0] = endedTicket{}
		c.ended = c.ended[1:]
	}
}

// Sweep is expire for times without requests.
func (c *Table) Sweep() {
	if c.joined.Load() > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.expire(core.Now())
	}
}

// State shows the table.
func (c *Table) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{Joined: int(c.joined.Load()) - c.away - len(c.ended), NoRoom: c.away, Ended: len(c.ended),
		Names: len(c.roots)}
}

// State is how many requests are joined with the calls that are made for them.
type State struct {
	Joined int `json:"joined"`
	// NoRoom counts those that found no place, and Ended those that ended without an answer a moment ago.
	NoRoom int `json:"noRoom"`
	Ended  int `json:"ended"`
	// Names are the ids and Traces by which they are found.
	Names int `json:"names"`
}
