package engine

import (
	"math/bits"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// startFleet schedules a fleet's first requests.
func (e *Engine) startFleet(n int) {
	node := &e.nodes[n]
	f := node.fleet
	switch {
	case f.Once > 0:
		e.queue.Push(e.warm, uint32(n), kernel.Meta(evArrival, 0))
	case f.Users > 0:
		for u := range f.Users {
			e.queue.Push(f.Think.Sample(&node.stream), uint32(u), kernel.Meta(evUser, uint32(n)))
		}
	case f.Arrivals == scenario.Even || f.Arrivals == scenario.Jittered:
		for i := range node.count {
			inst := &e.insts[node.first+i]
			inst.area = inst.arrivals.Float64() // no two instances in step
			e.nextOf(node, node.first+i)
		}
	default:
		e.nextPoisson(n)
	}
}

// arrival is a request that is due by itself: of a whole fleet, or, for fleets whose instances have schedules of their
// own, of one instance; the generation tells which.
func (e *Engine) arrival(i, generation uint32) {
	if generation == ofInstance {
		inst := &e.insts[i]
		node := &e.nodes[inst.node]
		e.request(node, int32(i), 0)
		e.nextOf(node, int32(i))
		return
	}
	node := &e.nodes[i]
	if node.fleet.Once > 0 {
		e.once(node, i)
		return
	}
	e.request(node, node.first+int32(node.stream.IntN(int(node.count))), 0)
	e.nextPoisson(int(i))
}

// ofInstance is the generation of arrivals at one instance.
const ofInstance = generationMask

// nextPoisson schedules the next request of a fleet whose requests are independent.
func (e *Engine) nextPoisson(n int) {
	node := &e.nodes[n]
	node.load.passed += node.stream.Exp()
	if at, ok := node.load.when(node.load.passed); ok && at < e.end {
		e.queue.Push(max(at, e.now), uint32(n), kernel.Meta(evArrival, 0))
	}
}

// nextOf schedules the next request of an instance with a schedule of its own: one per unit of its share of the load.
func (e *Engine) nextOf(node *node, i int32) {
	inst := &e.insts[i]
	due := inst.area
	inst.area++
	if node.fleet.Arrivals == scenario.Jittered {
		due = float64(int64(due)) + inst.arrivals.Float64()
	}
	curve := node.load
	curve.at = int(inst.segment)
	at, ok := curve.when(due * float64(node.count))
	inst.segment = int32(curve.at)
	if ok && at < e.end {
		e.queue.Push(max(at, e.now), uint32(i), kernel.Meta(evArrival, ofInstance))
	}
}

// once sends the next of a fixed number of requests, spread evenly over a time.
func (e *Engine) once(node *node, i uint32) {
	f := node.fleet
	e.request(node, node.first+int32(node.sent)%node.count, 0)
	if node.sent++; node.sent < f.Once {
		high, low := bits.Mul64(uint64(f.Within), uint64(node.sent)) // exactly, where a float64 would be 1 ns off
		offset, _ := bits.Div64(high, low, uint64(f.Once))
		at := e.warm + int64(offset)
		e.queue.Push(max(at, e.now), i, kernel.Meta(evArrival, 0))
	}
}

// userArrives is user number u of a closed loop, fleet n.
func (e *Engine) userArrives(u, n uint32) {
	if e.now >= e.end {
		return
	}
	node := &e.nodes[n]
	e.request(node, node.first+int32(u)%node.count, u+1)
}

// request begins one request at an instance of a fleet. user is its number + 1, 0 in open loops.
func (e *Engine) request(node *node, i int32, user uint32) {
	f := &e.record.Fleets[node.index]
	f.Offered[e.bin]++
	if node.group != nil {
		e.write(node)
		return
	}
	ti, t := e.tasks.get()
	*t = task{root: true, inst: i, since: e.now, mark: uint32(e.bin), window: e.window, user: user, deadline: int64(abate.NoDeadline)}
	if node.fleet.Patience > 0 {
		t.deadline = e.now + int64(node.fleet.Patience)
	}
	e.underway++
	e.traceRoot(ti, t, node)
	if node.shed > 0 && node.sheds.Float64() < node.shed {
		e.requestEnds(ti, Shed)
		return
	}
	if e.insts[i].down > 0 { // the program that would send it is not there
		e.requestEnds(ti, RefusedConnection)
		return
	}
	e.advance(ti)
}

// serves notes an answer after the trouble: the first one of the last instance is when all of them serve again.
func (e *Engine) serves(f *FleetRecord, node *node, i int32) {
	if inst := &e.insts[i]; e.window == After && !inst.serves {
		inst.serves = true
		if node.serving++; node.serving == node.count {
			f.Serving = time.Duration(e.now - e.warm)
		}
	}
}

// requestEnds records the end of a fleet's request.
func (e *Engine) requestEnds(ti uint32, end EndKind) {
	t := e.tasks.at(ti)
	node := &e.nodes[e.insts[t.inst].node]
	if node.group != nil {
		e.delivered(ti, end)
		return
	}
	f := &e.record.Fleets[node.index]
	switch end {
	case Answered:
		f.Answered[e.bin]++
		f.Good[t.mark]++
		took := e.now - t.since
		f.Latency[t.window].Add(took)
		e.heat(took)
		e.serves(f, node, t.inst)
	case CircuitOpen, BulkheadFull, AttemptsLimited, Throttled, Shed:
		f.Refused[e.bin]++
	default:
		f.Failed[e.bin]++
		f.Bad[t.mark]++
	}
	if t.window != outside {
		f.Ends[end]++
		e.record.LastEnd = time.Duration(e.now - e.warm)
	}
	e.traceEnd(t.trace, end)
	user := t.user
	e.underway--
	e.tasks.put(ti)
	if user > 0 {
		think := node.fleet.Think.Sample(&node.stream)
		e.queue.Push(e.now+think, user-1, kernel.Meta(evUser, uint32(node.index)))
	}
}
