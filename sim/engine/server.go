package engine

import (
	"math"

	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"

	"github.com/abate-go/abate"
)

// instance is one program: an instance of a fleet, or a replica of a service.
type instance struct {
	node    int32
	stream  kernel.Stream
	guards  []*abate.Guard // per edge of the node
	dialers []*abate.Guard // the same, for connections; nil where they are opened at once
	pools   []pool

	serves bool // of a fleet: it had an answer after the trouble

	// of a fleet with a schedule per instance
	arrivals kernel.Stream
	area     float64 // operational time of the next request
	segment  int32   // of the load curve

	// of a replica
	line    line // who waits
	waiting int32
	busy    int32 // workers held, or requests under way where workers are not limited
	workers int32 // 0 for no limit
	full    int32 // workers that there are when nothing is wrong
	version uint32
	codel   codel
	taking  bool // its queue is being taken up

	gate    *abate.Gate // nil without one
	debt    int64       // what refusals have cost, and work that begins has yet to pay
	busyNS  int64       // time that workers were busy since
	asked   int64       // the gate asked for it,
	tallied int64       // up to this moment

	conns      int32 // open, or being made
	connBusy   int32 // being made
	connLine   line
	connEpoch  uint32 // connections of an earlier one are broken
	restarts   int32
	down       int32 // restarts under way
	hang, mute int32 // outages under way, by kind
	refuse     int32
	fail       int32
	faults     []*fault          // at work on it: slowdowns, errors, loss, capacity
	slowdowns  []*scenario.Fault // of those
	errors     float64
	loss       float64
}

func (inst *instance) clear() {
	*inst = instance{
		guards: inst.guards[:0], dialers: inst.dialers[:0], pools: inst.pools[:0], line: inst.line.cleared(), connLine: inst.connLine.cleared(),
		faults: inst.faults[:0], slowdowns: inst.slowdowns[:0],
	}
}

// choose picks the replica for an attempt.
func (e *Engine) choose(n int32) int32 {
	node := &e.nodes[n]
	if node.count == 1 {
		return node.first
	}
	switch node.service.Balancing {
	case scenario.RoundRobin:
		node.next++
		return node.first + int32(node.next%uint32(node.count))
	case scenario.LeastQueue:
		best := node.first
		start := int32(node.stream.IntN(int(node.count))) // ties fall anywhere
		for i := range node.count {
			at := node.first + (start+i)%node.count
			if i == 0 || e.insts[at].load() < e.insts[best].load() {
				best = at
			}
		}
		return best
	}
	return node.first + int32(node.stream.IntN(int(node.count)))
}

// load is what a balancer that counts requests sees.
func (inst *instance) load() int32 { return inst.busy + inst.waiting }

// lost draws whether something on the way to or from a replica is lost.
func (e *Engine) lost(replica int32) bool {
	inst := &e.insts[replica]
	return inst.loss > 0 && inst.stream.Float64() < inst.loss
}

// reach is a request's arrival at its replica.
func (e *Engine) reach(ti uint32) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	switch {
	case inst.down > 0 || inst.refuse > 0:
		e.refuse(ti, RefusedConnection)
	case inst.mute > 0:
		e.vanish(ti)
	case t.connect:
		e.handshake(ti)
	case inst.gate != nil:
		e.knock(ti)
	default:
		e.pass(ti)
	}
}

// pass hands a request to the service itself.
func (e *Engine) pass(ti uint32) {
	if e.insts[e.tasks.at(ti).inst].fail > 0 {
		e.refuse(ti, QueueFull)
		return
	}
	e.enter(ti)
}

// enter gives a request a worker, or a place in the queue.
func (e *Engine) enter(ti uint32) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	node := &e.nodes[inst.node]
	if e.scenario.Model.ServiceTimeDrawn == scenario.DrawnOnArrival {
		t.drawn = node.service.ServiceTime.Sample(&inst.stream)
	}
	t.since = e.now
	if inst.free() {
		e.takeUp(ti)
		return
	}
	if node.limit >= 0 && inst.waiting >= node.limit {
		if node.service.Queue.WhenFull == scenario.SilenceWhenFull {
			e.record.Services[node.index].Rejected[e.bin]++
			e.vanish(ti)
			return
		}
		e.refuse(ti, QueueFull)
		return
	}
	t.queued = true
	inst.waiting++
	inst.line.push(ti)
	node.longest = max(node.longest, inst.waiting)
}

// free tells whether a worker is free and may work.
func (inst *instance) free() bool {
	return inst.hang == 0 && (inst.workers == 0 || inst.busy < inst.workers)
}

// refuse answers an error at once.
func (e *Engine) refuse(ti uint32, end EndKind) {
	t := e.tasks.at(ti)
	r := &e.record.Services[e.nodes[e.insts[t.inst].node].index]
	r.Rejected[e.bin]++
	if t.connect {
		r.Unopened[e.bin]++
	}
	attempt, generation := t.attempt, t.generation
	e.report(ti, end)
	e.leaveGate(t, classes[end])
	e.tasks.put(ti)
	if e.attempts.is(attempt, generation) {
		e.replyLater(attempt, end)
	}
}

// vanish loses a request: nobody will ever answer it.
func (e *Engine) vanish(ti uint32) {
	t := e.tasks.at(ti)
	if e.attempts.is(t.attempt, t.generation) {
		e.attempts.at(t.attempt).task = 0
	}
	e.leaveGate(t, abate.Ignored)
	e.tasks.put(ti)
}

// takeUp gives a request a worker.
func (e *Engine) takeUp(ti uint32) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	wait := e.now - t.since
	e.waited(inst.node, wait)
	e.traceSpan(t.trace, "queue", inst.node, t.since, e.now)
	t.queued, t.working, t.deadline, t.since = false, true, e.arrivedAt(t), e.now
	t.mark = inst.version
	e.hold(inst.node, +1)
	inst.tally(e.now)
	inst.busy++
	// What ends in this very moment is answered by an event: its caller may be in the middle of something.
	e.taking++
	e.advance(ti)
	e.taking--
}

// startNext gives free workers to those who wait.
func (e *Engine) startNext(i int32) {
	inst := &e.insts[i]
	if inst.taking { // a request that ended at once: whoever took it up goes on with the line
		return
	}
	inst.taking = true
	for inst.waiting > 0 && inst.free() {
		ti, ok := e.nextInLine(inst)
		if !ok {
			break
		}
		e.takeUp(ti)
	}
	inst.taking = false
}

// nextInLine takes the next request out of the queue, by the queue's order; false when none is left.
func (e *Engine) nextInLine(inst *instance) (uint32, bool) {
	q := &e.nodes[inst.node].service.Queue
	for !inst.line.empty() {
		var ti uint32
		if q.Order == scenario.LIFO {
			ti = inst.line.popNewest()
		} else {
			ti = inst.line.popOldest()
		}
		t := e.tasks.at(ti)
		if t.dead {
			e.tasks.put(ti)
			continue
		}
		inst.waiting--
		switch {
		case q.DropExpired && e.now >= t.deadline:
			e.waited(inst.node, e.now-t.since)
			e.refuse(ti, TimedOut)
		case q.Order == scenario.CoDel && inst.codel.drops(e.now, e.now-t.since, inst.waiting, q):
			e.waited(inst.node, e.now-t.since)
			e.refuse(ti, QueueFull)
		default:
			return ti, true
		}
	}
	return 0, false
}

// work begins a service's own part of a request.
func (e *Engine) work(ti uint32) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	s := e.nodes[inst.node].service
	took := t.drawn
	if e.scenario.Model.ServiceTimeDrawn != scenario.DrawnOnArrival {
		took = s.ServiceTime.Sample(&inst.stream)
	}
	if factor := inst.slowness(s); factor != 1 {
		took = int64(float64(took) * factor)
	}
	if len(inst.slowdowns) > 0 {
		took = inst.slowed(took)
	}
	took += inst.debt
	inst.debt = 0
	e.traceSpan(t.trace, "work", inst.node, e.now, e.now+took)
	e.queue.Push(e.now+took, ti, kernel.Meta(evWorkDone, e.tasks.generation(ti)))
}

// slowness is the factor on a service time that begins now, for load alone.
func (inst *instance) slowness(s *scenario.Service) float64 {
	factor := 1.0
	if s.SlowsDown > 0 {
		factor *= 1 + float64(s.SlowsDown*float64(inst.busy-1))
	}
	if s.SlowsQueued > 0 {
		most := s.SlowsQueuedMax
		if most == 0 {
			most = 10
		}
		factor *= math.Min(1+float64(s.SlowsQueued*float64(inst.waiting)), most)
	}
	return factor
}

// workDone goes on when the service's own work is done.
func (e *Engine) workDone(ti uint32) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	s := e.nodes[inst.node].service
	if s.OptimisticLock {
		if t.mark != inst.version {
			e.taskEnds(ti, Conflict)
			return
		}
		inst.version++
	}
	if s.ErrorRate > 0 && inst.stream.Float64() < s.ErrorRate || inst.errors > 0 && inst.stream.Float64() < inst.errors {
		e.taskEnds(ti, ServerError)
		return
	}
	e.advance(ti)
}

// served gives a worker back and records what its work was good for.
func (e *Engine) served(ti uint32, end EndKind) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	r := &e.record.Services[e.nodes[inst.node].index]
	if !t.working {
		return
	}
	t.working = false
	e.hold(inst.node, -1)
	inst.tally(e.now)
	inst.busy--
	held := e.now - t.since
	if end == Answered {
		r.Response[e.window].Add(e.now - t.deadline)
	}
	r.WorkNS[e.bin] += held
	switch {
	case end == TimedOut || !e.attempts.is(t.attempt, t.generation): // the caller leaves now, or has left
		r.Wasted[e.bin]++
		r.WasteNS[e.bin] += held
	case end == Answered:
		r.Served[e.bin]++
	default:
		r.Errors[e.bin]++
	}
}
