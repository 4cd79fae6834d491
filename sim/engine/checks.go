package engine

import (
	"time"

	"github.com/abate-go/abate/policy/health"
	"github.com/abate-go/abate/sim/kernel"
)

// checks are the health checks of callers that choose replicas by themselves: each asks each replica.
type checks struct {
	world     *world
	servers   *servers
	balancers *balancers
	all       []check
	free      []uint32
}

// check is that of one caller and one replica.
type check struct {
	health.Check
	config        *health.Config // nil: nobody uses it
	inst, replica int32
	slot          int32
	number        uint32 // of the last question: what is said about an earlier one means nothing
}

// What an event about a check says, in the low bits of its generation; the rest is the number of the question.
const (
	checkDue uint32 = iota
	checkAnswered
	checkLate
)

func (k *check) about(what uint32) uint32 { return what | k.number&(1<<22-1)<<2 }

func (cs *checks) reset() { cs.all, cs.free = cs.all[:0], cs.free[:0] }

// follow makes checks for the replicas that are new to a caller, and drops those of replicas that are gone.
func (cs *checks) follow(e *endpoints, inst int32, edge *edge, config health.Config) {
	callee := &cs.world.nodes[edge.callee]
	for len(e.checks) < int(callee.count) {
		e.checks = append(e.checks, 0)
	}
	for at := range callee.count {
		switch i, here := e.checks[at], e.number(callee.first+at, callee) >= 0; {
		case here && i == 0:
			e.checks[at] = cs.add(e, check{config: &config, inst: inst, replica: callee.first + at, slot: int32(edge.slot)})
		case !here && i > 0:
			cs.drop(i - 1)
			e.checks[at] = 0
		}
	}
}

func (cs *checks) add(e *endpoints, k check) uint32 {
	k.Check = health.New(*k.config, time.Duration(cs.world.now), e.asks.Uint64())
	i := uint32(len(cs.all))
	if n := len(cs.free); n > 0 {
		i, cs.free = cs.free[n-1], cs.free[:n-1]
		k.number = cs.all[i].number
	} else {
		cs.all = append(cs.all, check{})
	}
	cs.all[i] = k
	cs.schedule(i)
	return i + 1
}

func (cs *checks) drop(i uint32) {
	k := &cs.all[i]
	*k = check{number: k.number + 1}
	cs.free = append(cs.free, i)
}

func (cs *checks) dropAll(e *endpoints) {
	for at, i := range e.checks {
		if i > 0 && int(i) <= len(cs.all) && cs.all[i-1].config != nil {
			cs.drop(i - 1)
		}
		e.checks[at] = 0
	}
}

func (cs *checks) schedule(i uint32) {
	k := &cs.all[i]
	cs.world.queue.Push(int64(k.Due()), i, kernel.Meta(evHealth, k.about(checkDue)))
}

// moves processes an event about a check.
func (cs *checks) moves(i, about uint32) {
	k := &cs.all[i]
	if k.config == nil || about>>2 != k.about(0)>>2 {
		return
	}
	switch about & 3 {
	case checkDue:
		cs.ask(i)
	case checkAnswered:
		cs.take(i, health.Passing)
	case checkLate:
		cs.take(i, health.Silent)
	}
}

// ask sends the question.
func (cs *checks) ask(i uint32) {
	k := &cs.all[i]
	if k.number++; !k.Ask(*k.config, time.Duration(cs.world.now), cs.calls(k), cs.asks(k)) {
		cs.schedule(i)
		return
	}
	switch answered, waits := cs.servers.asked(k.replica, k.about(checkAnswered), i+1); {
	case answered:
		cs.take(i, health.Passing)
	case waits:
		late := cs.world.now + int64(k.config.Timeout)
		cs.world.queue.Push(late, i, kernel.Meta(evHealth, k.about(checkLate)))
	case cs.servers.replicas[k.replica].refuse > 0:
		cs.take(i, health.Silent)
	default:
		cs.take(i, health.Refusing)
	}
}

// take notes an answer, or that there is none.
func (cs *checks) take(i uint32, r health.Result) {
	k := &cs.all[i]
	k.number++ // an answer that comes late means nothing
	now := time.Duration(cs.world.now)
	if k.Take(*k.config, now, r, cs.calls(k), cs.asks(k)) {
		e := &cs.balancers.of[k.inst][k.slot]
		e.balancer.Judge(e.number(k.replica, cs.world.nodeOf(k.replica)), now, k.Healthy())
	}
	cs.schedule(i)
}

// calls is what became of the caller's own calls at the replica.
func (cs *checks) calls(k *check) (c health.Calls) {
	e := &cs.balancers.of[k.inst][k.slot]
	c.Answered, c.Failed = e.balancer.Results(e.number(k.replica, cs.world.nodeOf(k.replica)))
	return c
}

func (cs *checks) asks(k *check) uint64 { return cs.balancers.of[k.inst][k.slot].asks.Uint64() }
