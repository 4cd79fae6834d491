package engine

import (
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/sim/kernel"
)

// sharing moves what instances of one program share through Redis: retry budgets. What an instance offers and wants is
// decided by its budget.Budget, what it gets by a budget.Pool, which does what Redis does.
type sharing struct {
	world  *world
	guards *guards
	pools  []budget.Pool // of edges, by index
	of     []sharer      // of instances, by index
	asked  slab[exchange]
}

// sharer is what an instance knows of sharing.
type sharer struct {
	stream kernel.Stream
	begun  []bool // of its edges: it has had an answer
}

// exchange is one offer under way, or the answer to it.
type exchange struct {
	inst, edge int32
	guard      *abate.Guard // that made the offer: its program may be another one when the answer comes
	offer      budget.Offer
	answered   bool
	granted    int64
}

// exchangeEvery is how often budgets are exchanged, as adapter/abateredis does it: give or take a quarter.
const exchangeEvery = int64(200 * time.Millisecond)

// reset forgets all that was shared.
func (sh *sharing) reset() {
	*sh = sharing{world: sh.world, guards: sh.guards, pools: sh.pools[:0], of: sh.of[:0], asked: sh.asked.emptied()}
	sh.pools = append(sh.pools, make([]budget.Pool, len(sh.world.edges))...)
	for i := range sh.world.instances {
		s := sharer{}
		if sh.shares(int32(i)) {
			name, number, _ := sh.world.program(int32(i))
			s.stream = sh.world.stream(name, number, "sharing")
			s.begun = make([]bool, len(sh.world.nodeOf(int32(i)).edges))
		}
		sh.of = append(sh.of, s)
	}
}

// shares reports whether an instance shares anything.
func (sh *sharing) shares(i int32) bool {
	for _, k := range sh.world.nodeOf(i).edges {
		if sh.world.edges[k].shares {
			return true
		}
	}
	return false
}

// begin schedules the first exchanges: no two instances are in step.
func (sh *sharing) begin() {
	for i := range sh.of {
		if s := &sh.of[i]; s.begun != nil {
			sh.world.queue.Push(int64(s.stream.Float64()*float64(exchangeEvery)), uint32(i), kernel.Meta(evShare, 0))
		}
	}
}

// restart is a program that ends, and begins anew.
func (sh *sharing) restart(i int32) { clear(sh.of[i].begun) }

// exchange offers what an instance does not need of its budgets, and asks for what it lacks.
func (sh *sharing) exchange(i int32) {
	s, now := &sh.of[i], sh.world.now
	sh.world.queue.Push(now+exchangeEvery*3/4+int64(s.stream.Float64()*float64(exchangeEvery/2)), uint32(i),
		kernel.Meta(evShare, 0))
	if sh.world.instances[i].cutOff > 0 {
		return
	}
	for slot, k := range sh.world.nodeOf(i).edges {
		if !sh.world.edges[k].shares {
			continue
		}
		guard := sh.guards.of[i][slot]
		offer, ok := guard.Budget().Offer(time.Duration(now))
		if ok && (offer.Earned+offer.Back+offer.Want > 0 || !s.begun[slot]) {
			x, e := sh.asked.get()
			*e = exchange{inst: i, edge: k, guard: guard, offer: offer}
			sh.travels(x, s)
		}
	}
}

// travels takes an offer to Redis, or an answer back.
func (sh *sharing) travels(x uint32, s *sharer) {
	delay := sh.world.scenario.Redis.Latency.Sample(&s.stream)
	sh.world.queue.Push(sh.world.now+delay, x, kernel.Meta(evExchange, sh.asked.generation(x)))
}

// arrives is an offer that has come to Redis, or an answer that is back. What is under way when the way is cut is lost.
func (sh *sharing) arrives(x uint32) {
	e := sh.asked.at(x)
	s, slot := &sh.of[e.inst], sh.world.edges[e.edge].slot
	now := time.Duration(sh.world.now)
	switch {
	case sh.world.instances[e.inst].cutOff > 0:
	case !e.answered:
		e.answered, e.granted = true, sh.pools[e.edge].Exchange(now, e.offer, !s.begun[slot])
		sh.travels(x, s)
		return
	case sh.guards.of[e.inst][slot] == e.guard:
		s.begun[slot] = true
		e.guard.Budget().Settle(now, e.granted)
	}
	sh.asked.put(x)
}
