package engine

import (
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/sim/kernel"
)

// goesOn reports whether a call that has ended is not over for its request: somebody else is called, or another one
// fetches what a cache has not got.
func (cs *calls) goesOn(k int32, ti uint32, which uint8, end, last EndKind) bool {
	edge, at := &cs.world.edges[k], place{ti, which}
	if edge.cached {
		if end == Answered && last == missed {
			end = missed
		} else {
			delete(cs.caches.wants, at)
		}
	}
	next, more := int32(0), false
	if end != Answered {
		next, more = cs.world.insteadOf(edge, end)
	}
	switch {
	case more && end == missed && cs.park(k, at):
	case more:
		cs.begin(ti, cs.traffic.tasks.at(ti), next, int(which))
	case edge.fills:
		cs.fetched(at, end == Answered)
	}
	return more
}

// fetched is the end of fetching what a cache has not got.
func (cs *calls) fetched(at place, got bool) {
	w, ok := cs.caches.wanted(at)
	if !ok {
		return
	}
	cs.caches.fetched(at, w, got)
	cs.wake(w.node, cs.caches.number(w), got)
}

// wake goes on with those who wait for a key: they have it now, or the first of them tries.
func (cs *calls) wake(n int32, key uint32, got bool) {
	c := &cs.caches.of[n]
	for line := c.fetched[key]; len(line) > 0; line = line[1:] {
		i, generation := line[0].index, line[0].generation
		if !cs.caches.parked.is(i, generation) {
			continue
		}
		p := cs.caches.parked.at(i)
		p.filled, p.turn = got, !got
		cs.world.queue.Push(cs.world.now, i, kernel.Meta(evUnparked, generation))
		if p.turn { // the others wait for this one
			c.fetched[key] = line[1:]
			return
		}
	}
	delete(c.fetched, key)
}

// park lets a call that has missed wait if somebody fetches the same; false if it has to do that itself.
func (cs *calls) park(k int32, at place) bool {
	w, ok := cs.caches.wanted(at)
	if !ok || !cs.caches.of[w.node].spec.Coalesce {
		return false
	}
	c, key := &cs.caches.of[w.node], cs.caches.number(w)
	line, fetching := c.fetched[key]
	if !fetching {
		c.fetched[key] = nil
		return false
	}
	pi, p := cs.caches.parked.get()
	*p = parkedCall{task: at.task, generation: w.generation, edge: k, which: at.which, key: key}
	generation := cs.caches.parked.generation(pi)
	c.fetched[key] = append(line, waiting{pi, generation})
	if deadline := cs.traffic.tasks.at(at.task).deadlineOf(); deadline != core.NoDeadline {
		cs.world.queue.Push(int64(deadline), pi, kernel.Meta(evUnparked, generation))
	}
	return true
}

// unparked goes on with a call that waited for what another one fetches: it is there, or this one has to fetch it, or
// its caller has left.
func (cs *calls) unparked(pi uint32) {
	p := *cs.caches.parked.at(pi)
	cs.caches.parked.put(pi)
	edge, at := &cs.world.edges[p.edge], place{p.task, p.which}
	switch there := cs.traffic.tasks.is(p.task, p.generation); {
	case !there && p.turn:
		cs.wake(edge.callee, p.key, false)
	case !there:
	case p.turn:
		next, _ := cs.world.insteadOf(edge, missed)
		cs.begin(p.task, cs.traffic.tasks.at(p.task), next, int(p.which))
	default:
		delete(cs.caches.wants, at)
		end := TimedOut
		if p.filled {
			end = Answered
		}
		cs.ended(p.task, end, edge.call.Optional)
	}
}
