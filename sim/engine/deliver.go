package engine

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/sim/kernel"
)

// lane is one partition of a topic that is consumed, or of one of its retry topics: what was written to it and has not
// been read, and the lane of production with what has.
type lane struct {
	redelivery *redelivery.Lane
	log        line     // messages
	ring       []uint32 // messages + 1 that were read, by number; 0 once finished. Its length is a power of two
	pushed     uint64
	unfinished int32 // of those in the ring
	flying     int32 // of those: being delivered
	wakeAt     int64 // never: nothing is scheduled
	wakes      uint32
	node       int32
	tier       int32
	number     int32
	owner      int32 // instance
	pumping    bool
}

// reset empties the partition, as its owner starts.
func (l *lane) reset(g *group) {
	if l.ring == nil {
		size := 1
		for size < g.config.Window+1 {
			size *= 2
		}
		l.ring = make([]uint32, size)
	}
	clear(l.ring)
	config := redelivery.LaneConfig{Concurrency: g.config.Concurrency, Window: g.config.Window, Order: g.config.Order}
	*l = lane{redelivery: redelivery.NewLane(config), log: l.log.cleared(), ring: l.ring, wakeAt: never, node: l.node,
		tier: l.tier, number: l.number, owner: l.owner}
}

// at is the place of the message with a number.
func (l *lane) at(seq uint64) *uint32 { return &l.ring[seq&uint64(len(l.ring)-1)] }

// append writes a message to a partition.
func (cs *consumers) append(li int32, mi uint32) {
	cs.messages.at(mi).lane = li
	l := &cs.lanes[li]
	l.log.push(mi)
	if l.redelivery.Room() > 0 {
		cs.pump(li)
	}
}

// pump delivers from a partition what may be delivered now, and schedules when to look again.
func (cs *consumers) pump(li int32) {
	l := &cs.lanes[li]
	if l.pumping { // further up the stack, which goes on
		return
	}
	l.pumping = true
	defer func() { l.pumping = false }()
	g, first := cs.groups[l.node], cs.world.nodes[l.node].first
	for {
		for l.redelivery.Room() > 0 && !l.log.empty() {
			cs.read(g, l)
		}
		seq, ok, wait := l.redelivery.Next(time.Duration(cs.world.now))
		if !ok {
			cs.wake(li, wait)
			return
		}
		mi := *l.at(seq) - 1
		if m := cs.messages.at(mi); g.parked(l, m) {
			g.leaves(l, m)
			cs.unread(l, seq)
			cs.forward(g, mi, int(l.tier)+1, g.hops[l.tier+1].Delay)
			continue
		}
		now := time.Duration(cs.world.now)
		if m := cs.messages.at(mi); m.flooded && g.floods[l.owner-first].Waits(now, now-time.Duration(m.failed)) {
			l.redelivery.Hold(seq, now+redelivery.FloodAgain)
			continue
		}
		if wait := cs.mayStart(g, l); wait > 0 {
			l.redelivery.Hold(seq, 0)
			l.redelivery.Stop(now + wait)
			continue
		}
		cs.handOut(l, mi)
	}
}

// read takes the next message of the log into the lane.
func (cs *consumers) read(g *group, l *lane) {
	mi := l.log.popOldest()
	m := cs.messages.at(mi)
	item := redelivery.Item{Offset: int64(l.pushed), Key: m.key, Keyed: g.topic.Keys > 0}
	if l.tier >= 0 {
		remaining := g.plan.Remaining(int(l.tier), time.Duration(m.due-cs.world.now))
		item.Ready = time.Duration(cs.world.now) + remaining
	}
	m.seq = l.redelivery.Push(item)
	*l.at(m.seq) = mi + 1
	l.pushed = m.seq + 1
	l.unfinished++
}

// unread ends a message's stay in its lane: it was handled, or another topic has acknowledged it.
func (cs *consumers) unread(l *lane, seq uint64) {
	*l.at(seq) = 0
	l.unfinished--
	l.redelivery.Finish(seq)
}

// wake schedules another look at a partition.
func (cs *consumers) wake(li int32, wait time.Duration) {
	if wait == redelivery.Forever {
		return
	}
	l := &cs.lanes[li]
	at := cs.world.now + max(int64(wait), 1)
	if at >= l.wakeAt {
		return
	}
	l.wakeAt, l.wakes = at, (l.wakes+1)&generationMask
	cs.world.queue.Push(at, uint32(li), kernel.Meta(evLane, l.wakes))
}

// woken is that look, unless an earlier one was scheduled since.
func (cs *consumers) woken(li, generation uint32) {
	if l := &cs.lanes[li]; l.wakes == generation {
		l.wakeAt = never
		cs.pump(int32(li))
	}
}

// mayStart is how long a delivery has to wait for the circuit, and for the pace of the drain.
func (cs *consumers) mayStart(g *group, l *lane) time.Duration {
	if g.plan == nil {
		return 0
	}
	now := time.Duration(cs.world.now)
	pace := g.paces[l.owner-cs.world.nodes[l.node].first]
	if b := cs.guards.breaker(l.owner); b != nil && b.ClosedOff(now) {
		pace.Trouble(now)
		return max(b.RetryIn(now), redelivery.ProbeEvery)
	}
	return pace.Start(now)
}

// handOut gives a message to the handler of the instance that owns its partition.
func (cs *consumers) handOut(l *lane, mi uint32) {
	m := cs.messages.at(mi)
	l.flying++
	now, bin, window := cs.world.now, cs.rec.bin, cs.rec.window
	topic := cs.rec.record.Fleets[l.node].Topic
	topic.Deliveries[bin]++
	if l.tier >= 0 && m.held == 0 && m.refused == 0 {
		topic.Lateness[window].Add(now - m.due)
	}
	ti, t := cs.traffic.tasks.get()
	*t = task{root: true, inst: l.owner, since: now, mark: uint32(bin), window: window, user: mi + 1, poison: m.poison,
		again: m.delivery > 0, deadline: int64(core.NoDeadline)}
	if d := cs.groups[l.node].config.HandlerTimeout; d > 0 {
		t.deadline = now + int64(d)
	}
	t.trace = cs.rec.traces.root(cs.world.nodes[l.node].name)
	cs.requests.advance(ti, t)
}

// delivered goes on with a message whose delivery has ended.
func (cs *consumers) delivered(ti uint32, end EndKind) {
	t := cs.traffic.tasks.at(ti)
	mi, inst, trace := t.user-1, t.inst, t.trace
	cs.rec.traces.end(trace, 0, end)
	cs.traffic.tasks.put(ti)
	n := cs.world.instances[inst].node
	g, m := cs.groups[n], cs.messages.at(mi)
	li := m.lane
	l := &cs.lanes[li]
	l.flying--
	if g.plan != nil {
		number := inst - cs.world.nodes[n].first
		g.paces[number].Done(time.Duration(cs.world.now), cs.calls.tried, end == Answered)
		if end == Answered {
			g.floods[number].Handled(time.Duration(cs.world.now))
		}
	}
	switch {
	case end == Answered:
		g.leaves(l, m)
		cs.unread(l, m.seq)
		cs.done(l.node, mi, end)
	case g.plan == nil:
		l.redelivery.Hold(m.seq, time.Duration(cs.world.now)+g.topic.Again())
	default:
		cs.failed(l, mi, end)
	}
	cs.pump(li)
}

// failed does what the plan says to a message that failed.
func (cs *consumers) failed(l *lane, mi uint32, end EndKind) {
	g, m := cs.groups[l.node], cs.messages.at(mi)
	number := l.owner - cs.world.nodes[l.node].first
	now := time.Duration(cs.world.now)
	f := cs.failure(l, m, end)
	if f.CircuitOpen {
		g.paces[number].Trouble(now)
	}
	v := g.floods[number].Next(now, g.plan, f)
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
	cs.unread(l, m.seq)
	if v.Action == redelivery.Forward {
		m.flooded = v.Reason == "flood"
		cs.forward(g, mi, v.Tier, v.Delay)
		return
	}
	cs.done(l.node, mi, end)
}

// failure is what the plan learns of a delivery that failed.
func (cs *consumers) failure(l *lane, m *message, end EndKind) redelivery.Failure {
	now := time.Duration(cs.world.now)
	f := redelivery.Failure{Tier: int(l.tier), Delivery: int(m.delivery) + 1, Class: end.String(), Held: int(m.held),
		Age: time.Duration(cs.world.now - m.written)}
	f.Refused = cs.calls.tried == 0
	if m.failed == 0 && !f.Refused {
		m.failed = cs.world.now
	}
	f.Since, f.Flooded = time.Duration(cs.world.now-m.failed), m.flooded
	if b := cs.guards.breaker(l.owner); b != nil {
		if f.CircuitOpen = b.ClosedOff(now); f.CircuitOpen {
			f.Wait = b.RetryIn(now)
		}
	}
	if f.Refused {
		f.Held = int(m.refused)
	}
	f.RetryAfter = cs.guards.outcomes[cs.world.nodes[l.node].edges[0]][end].RetryAfter
	return f
}
