package engine

import (
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/sim/kernel"
)

// lane is one partition of a topic that is consumed, or of one of its retry topics: what was written to it and has not been
// read, and the lane of production with what has.
type lane struct {
	redelivery *redelivery.Lane
	log        line     // messages
	ring       []uint32 // messages + 1 that were read, by number; 0 once finished. Its length is a power of two
	pushed     uint64
	wakeAt     int64 // never: nothing is scheduled
	wakes      uint32
	node       int32
	tier       int32
	number     int32
	owner      int32 // instance
	pumping    bool
}

func (l *lane) reset(g *group) {
	l.redelivery = redelivery.NewLane(redelivery.LaneConfig{Concurrency: g.config.Concurrency, Window: g.config.Window, Order: g.config.Order})
	if l.ring == nil {
		size := 1
		for size < g.config.Window+1 {
			size *= 2
		}
		l.ring = make([]uint32, size)
	}
	clear(l.ring)
	l.log, l.pushed, l.wakeAt, l.pumping = l.log.cleared(), 0, never, false
}

// at is the place of the message with a number.
func (l *lane) at(seq uint64) *uint32 { return &l.ring[seq&uint64(len(l.ring)-1)] }

// append writes a message to a partition.
func (e *Engine) append(li int32, mi uint32) {
	e.messages.at(mi).lane = li
	l := &e.lanes[li]
	l.log.push(mi)
	if l.redelivery.Room() > 0 {
		e.pump(li)
	}
}

// pump delivers from a partition what may be delivered now, and schedules when to look again.
func (e *Engine) pump(li int32) {
	l := &e.lanes[li]
	if l.pumping { // further up the stack, which goes on
		return
	}
	l.pumping = true
	defer func() { l.pumping = false }()
	node := &e.nodes[l.node]
	g := node.group
	for {
		for l.redelivery.Room() > 0 && !l.log.empty() {
			e.read(g, l)
		}
		seq, ok, wait := l.redelivery.Next(time.Duration(e.now))
		if !ok {
			e.wake(li, wait)
			return
		}
		mi := *l.at(seq) - 1
		if m := e.messages.at(mi); g.parked(l, m) {
			g.leaves(l, m)
			e.unread(l, seq)
			e.forward(g, mi, int(l.tier)+1, g.hops[l.tier+1].Delay)
			continue
		}
		if m := e.messages.at(mi); m.flooded && g.floods[l.owner-node.first].Waits(time.Duration(e.now), time.Duration(e.now-m.failed)) {
			l.redelivery.Hold(seq, time.Duration(e.now)+redelivery.FloodAgain)
			continue
		}
		if wait := e.mayStart(g, l); wait > 0 {
			l.redelivery.Hold(seq, 0)
			l.redelivery.Stop(time.Duration(e.now) + wait)
			continue
		}
		e.handOut(node, l, mi)
	}
}

// read takes the next message of the log into the lane.
func (e *Engine) read(g *group, l *lane) {
	mi := l.log.popOldest()
	m := e.messages.at(mi)
	item := redelivery.Item{Offset: int64(l.pushed), Key: m.key, Keyed: g.topic.Keys > 0}
	if l.tier >= 0 {
		remaining := g.plan.Remaining(int(l.tier), time.Duration(m.due-e.now))
		item.Ready = time.Duration(e.now) + remaining
	}
	m.seq = l.redelivery.Push(item)
	*l.at(m.seq) = mi + 1
	l.pushed = m.seq + 1
}

// unread ends a message's stay in its lane: it was handled, or another topic has acknowledged it.
func (e *Engine) unread(l *lane, seq uint64) {
	*l.at(seq) = 0
	l.redelivery.Finish(seq)
}

// wake schedules another look at a partition.
func (e *Engine) wake(li int32, wait time.Duration) {
	if wait == redelivery.Forever {
		return
	}
	l := &e.lanes[li]
	at := e.now + max(int64(wait), 1)
	if at >= l.wakeAt {
		return
	}
	l.wakeAt, l.wakes = at, (l.wakes+1)&generationMask
	e.queue.Push(at, uint32(li), kernel.Meta(evLane, l.wakes))
}

// woken is that look, unless an earlier one was scheduled since.
func (e *Engine) woken(li, generation uint32) {
	if l := &e.lanes[li]; l.wakes == generation {
		l.wakeAt = never
		e.pump(int32(li))
	}
}

// probeEvery is how often consumers look at a half-open circuit that lets nobody in.
const probeEvery = 100 * time.Millisecond

// mayStart is how long a delivery has to wait for the circuit, and for the pace of the drain.
func (e *Engine) mayStart(g *group, l *lane) time.Duration {
	if g.plan == nil {
		return 0
	}
	now := time.Duration(e.now)
	pace := g.paces[l.owner-e.nodes[l.node].first]
	if b := e.insts[l.owner].guards[0].Breaker(); b != nil && b.ClosedOff(now) {
		pace.Trouble(now)
		return max(b.RetryIn(now), probeEvery)
	}
	return pace.Start(now)
}

// handOut gives a message to the handler of the instance that owns its partition.
func (e *Engine) handOut(node *node, l *lane, mi uint32) {
	m := e.messages.at(mi)
	m.flying = true
	topic := e.record.Fleets[node.index].Topic
	topic.Deliveries[e.bin]++
	if l.tier >= 0 && m.held == 0 && m.refused == 0 {
		topic.Lateness[e.window].Add(e.now - m.due)
	}
	ti, t := e.tasks.get()
	*t = task{root: true, inst: l.owner, since: e.now, mark: uint32(e.bin), window: e.window, user: mi + 1, deadline: int64(abate.NoDeadline)}
	if d := node.group.config.HandlerTimeout; d > 0 {
		t.deadline = e.now + int64(d)
	}
	e.traceRoot(ti, t, node)
	e.advance(ti)
}

// spoilt tells whether an attempt that succeeded was for a message that nobody can handle.
func (e *Engine) spoilt(c *call) bool {
	t := e.tasks.at(c.task)
	return t.root && t.user > 0 && e.nodes[e.insts[t.inst].node].group != nil && e.messages.at(t.user-1).poison
}

// delivered goes on with a message whose delivery has ended.
func (e *Engine) delivered(ti uint32, end EndKind) {
	t := e.tasks.at(ti)
	mi, inst, trace := t.user-1, t.inst, t.trace
	e.traceEnd(trace, end)
	e.tasks.put(ti)
	node := &e.nodes[e.insts[inst].node]
	g, m := node.group, e.messages.at(mi)
	m.flying = false
	li := m.lane
	l := &e.lanes[li]
	if g.plan != nil {
		g.paces[inst-node.first].Done(time.Duration(e.now), e.tried, end == Answered)
		if end == Answered {
			g.floods[inst-node.first].Handled(time.Duration(e.now))
		}
	}
	switch {
	case end == Answered:
		g.leaves(l, m)
		e.unread(l, m.seq)
		e.done(node, mi, end)
	case g.plan == nil:
		l.redelivery.Hold(m.seq, time.Duration(e.now)+g.topic.Again())
	default:
		e.failed(node, mi, end)
	}
	e.pump(li)
}

// failed does what the plan says to a message that failed.
func (e *Engine) failed(node *node, mi uint32, end EndKind) {
	g, m := node.group, e.messages.at(mi)
	l := &e.lanes[m.lane]
	now := time.Duration(e.now)
	f := e.failure(l, m, end)
	if f.CircuitOpen {
		g.paces[l.owner-node.first].Trouble(now)
	}
	v := g.floods[l.owner-node.first].Next(now, g.plan, f)
	if v.Action == redelivery.Hold {
		if f.Refused {
			m.refused++
		} else {
			m.held++
		}
		circuit := time.Duration(0)
		if f.CircuitOpen {
			circuit = max(f.Wait, redelivery.Brief)
		}
		delay, stop := g.plan.Rest(f, v, circuit)
		if stop > 0 {
			l.redelivery.Stop(now + stop)
		}
		l.redelivery.Hold(m.seq, now+delay)
		return
	}
	if !v.Excused {
		m.delivery++
	}
	l.redelivery.Release(m.seq)
	g.leaves(l, m)
	e.unread(l, m.seq)
	if v.Action == redelivery.Forward {
		m.flooded = v.Reason == "flood"
		e.forward(g, mi, v.Tier, v.Delay)
		return
	}
	e.done(node, mi, end)
}

// failure is what the plan is told of a delivery that failed.
func (e *Engine) failure(l *lane, m *message, end EndKind) redelivery.Failure {
	now := time.Duration(e.now)
	f := redelivery.Failure{Tier: int(l.tier), Delivery: int(m.delivery) + 1, Class: end.String(), Held: int(m.held), Age: time.Duration(e.now - m.written)}
	f.Refused = e.tried == 0
	if m.failed == 0 && !f.Refused {
		m.failed = e.now
	}
	f.Since, f.Flooded = time.Duration(e.now-m.failed), m.flooded
	node := &e.nodes[l.node]
	if b := e.insts[l.owner].guards[0].Breaker(); b != nil {
		if f.CircuitOpen = b.ClosedOff(now); f.CircuitOpen {
			f.Wait = b.RetryIn(now)
		}
	}
	if f.Refused {
		f.Held = int(m.refused)
	}
	f.RetryAfter = e.edges[node.edges[0]].outcomes[end].RetryAfter
	return f
}
