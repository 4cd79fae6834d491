package engine

import "github.com/abate-go/abate/sim/kernel"

// pool is the connections of one instance to one service. An attempt needs one from its begin to its end. Connections
// are made when they are needed; an attempt that is given up closes its own, as most clients do.
type pool struct {
	size    int32 // 0 for no pool: connecting costs nothing
	open    int32 // made, or being made
	idle    []connection
	waiting []waitingAttempt
}

// connection is an idle connection to a replica. It is broken if the replica has been restarted since.
type connection struct {
	replica int32
	epoch   uint32
}

type waitingAttempt struct{ attempt, generation uint32 }

// What an attempt has of a connection.
const (
	noConnection uint8 = iota
	waitsForConnection
	connecting
	holdsConnection
)

// poolOf is the pool that an attempt draws from.
func (e *Engine) poolOf(a *attempt) *pool {
	c := e.calls.at(a.call)
	return &e.insts[c.inst].pools[e.edges[c.edge].slot]
}

// acquire gets an attempt a connection: an idle one, a new one, or a place in the line.
func (e *Engine) acquire(ai uint32) {
	a := e.attempts.at(ai)
	p := e.poolOf(a)
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if e.insts[c.replica].connEpoch == c.epoch {
			a.pooled, a.epoch = holdsConnection, c.epoch
			e.launch(ai, c.replica)
			return
		}
		p.open-- // the replica closed it when it was restarted
	}
	if p.open >= p.size {
		a.pooled = waitsForConnection
		p.waiting = append(p.waiting, waitingAttempt{ai, e.attempts.generation(ai)})
		return
	}
	p.open++
	e.dial(ai)
}

// shakeHands sends for a new connection.
func (e *Engine) shakeHands(ai uint32) {
	a := e.attempts.at(ai)
	c := e.calls.at(a.call)
	edge := &e.edges[c.edge]
	a.replica = e.choose(edge.callee)
	e.connects(edge.callee)
	if e.lost(a.replica) {
		return
	}
	ti, t := e.tasks.get()
	*t = task{inst: a.replica, attempt: ai, generation: e.attempts.generation(ai), since: e.now, trace: c.trace, connect: true}
	a.task = ti + 1
	e.travel(ti, edge, c.inst, 0)
}

// handshake is a new connection's arrival at the replica. Making it costs one of the replica's cores some time.
func (e *Engine) handshake(ti uint32) {
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	node := &e.nodes[inst.node]
	c := &node.service.Connections
	if c.Max > 0 && inst.conns >= int32(c.Max) {
		e.refuse(ti, NoConnection)
		return
	}
	inst.conns++
	r := &e.record.Services[node.index]
	r.Conns[e.bin] = max(r.Conns[e.bin], e.connections(node))
	if inst.connBusy >= int32(max(c.Cores, 1)) {
		inst.connLine.push(ti)
		return
	}
	e.makeConnection(ti)
}

func (e *Engine) makeConnection(ti uint32) {
	inst := &e.insts[e.tasks.at(ti).inst]
	inst.connBusy++
	cost := e.nodes[inst.node].service.Connections.Cost.Sample(&inst.stream)
	e.queue.Push(e.now+cost, ti, kernel.Meta(evConnected, e.tasks.generation(ti)))
}

// connected is the end of a handshake: the attempt goes on, on the new connection. If its caller has given it up, the
// work was in vain, and the connection is closed.
func (e *Engine) connected(ti uint32) {
	t := e.tasks.at(ti)
	ai, generation := t.attempt, t.generation
	inst := &e.insts[t.inst]
	e.tasks.put(ti)
	inst.connBusy--
	if !inst.connLine.empty() {
		e.makeConnection(inst.connLine.popOldest())
	}
	if !e.attempts.is(ai, generation) {
		inst.conns--
		return
	}
	a := e.attempts.at(ai)
	a.task = 0
	if a.dial != 0 {
		e.dialed(a, Answered)
		return
	}
	e.connectionOpen(ai)
}

// connectionOpen sends an attempt on its way over its new connection.
func (e *Engine) connectionOpen(ai uint32) {
	a := e.attempts.at(ai)
	c := e.calls.at(a.call)
	a.pooled, a.epoch = holdsConnection, e.insts[a.replica].connEpoch
	// The answer to the handshake comes back before the request is sent.
	e.launchAfter(ai, a.replica, e.edges[c.edge].call.Latency.Sample(&e.insts[c.inst].stream))
}

// release gives back what an attempt has of a connection, at its end.
func (e *Engine) release(ai uint32, end EndKind) {
	a := e.attempts.at(ai)
	if a.pooled == noConnection {
		return
	}
	e.dropDial(a)
	p := e.poolOf(a)
	switch {
	case a.pooled == waitsForConnection: // its place in the line is skipped when its turn comes
		return
	case a.pooled == connecting || a.epoch != e.insts[a.replica].connEpoch: // there is none, or it is broken
		p.open--
	case end == TimedOut:
		e.insts[a.replica].conns--
		p.open--
	default:
		p.idle = append(p.idle, connection{a.replica, a.epoch})
	}
	e.nextForConnection(p)
}

// nextForConnection serves the line of a pool.
func (e *Engine) nextForConnection(p *pool) {
	for len(p.waiting) > 0 {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		if !e.attempts.is(w.attempt, w.generation) {
			continue
		}
		e.acquire(w.attempt)
		return
	}
}

// connections counts a service's open connections.
func (e *Engine) connections(n *node) uint32 {
	var sum int32
	for i := range n.count {
		sum += e.insts[n.first+i].conns
	}
	return uint32(sum)
}

// closeIdle closes the connections of a pool whose program ends. Its attempts have given theirs up by then.
func (e *Engine) closeIdle(p *pool) {
	for _, c := range p.idle {
		if inst := &e.insts[c.replica]; inst.connEpoch == c.epoch {
			inst.conns--
		}
	}
	*p = pool{size: p.size}
}

// breakHandshakes refuses those who are connecting to a replica.
func (e *Engine) breakHandshakes(i int32) {
	var connecting []uint32
	e.tasks.each(func(ti uint32, t *task) {
		if t.inst == i && t.connect {
			connecting = append(connecting, ti)
		}
	})
	for _, ti := range connecting {
		e.refuse(ti, RefusedConnection)
	}
}

// breakConnections closes all connections of a replica that restarts.
func (inst *instance) breakConnections() {
	inst.connEpoch++
	inst.conns, inst.connBusy = 0, 0
	inst.connLine = inst.connLine.cleared()
}
