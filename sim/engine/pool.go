package engine

import (
	"fmt"
	"slices"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// connections take attempts to replicas. An attempt on an edge with a pool needs a connection from its begin to its
// end, and what it has of one is given back once.
type connections struct {
	world   *world
	rec     *recorder
	traffic *traffic
	servers *servers
	pools   [][]pool         // of instances, by index, and of the edges of their node
	dialers [][]*abate.Guard // under which their connections are opened; nil where that is done at once
	dials   slab[dial]
	kept    connection // of the session whose opening was answered last
}

// pool is the connections of one instance to one service. They are made when they are needed; an attempt that is given
// up closes its own, as most clients do.
type pool struct {
	size    int32 // 0 for no pool: connecting costs nothing, or each call opens a session
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

// reset closes all connections.
func (cs *connections) reset() error {
	*cs = connections{world: cs.world, rec: cs.rec, traffic: cs.traffic, servers: cs.servers, pools: cs.pools,
		dialers: cs.dialers, dials: cs.dials.emptied()}
	for i := range cs.pools {
		if err := cs.renew(int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// renew gives an instance empty pools and new guards for what it dials, as a program that starts has.
func (cs *connections) renew(i int32) error {
	name, number, restarts := cs.world.program(i)
	cs.pools[i], cs.dialers[i] = cs.pools[i][:0], cs.dialers[i][:0]
	for _, k := range cs.world.nodeOf(i).edges {
		edge := &cs.world.edges[k]
		cs.pools[i] = append(cs.pools[i], pool{size: int32(edge.call.Pool)})
		var guard *abate.Guard
		if policy, ok := cs.world.variant.ConnectPolicy(edge.call); ok {
			jitter := cs.world.lend(name, number, edge.call.To, "connections", restarts)
			policy.Rand = jitter.Uint64
			var err error
			if guard, err = abate.New(edge.call.Connect, policy.Policy); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		cs.dialers[i] = append(cs.dialers[i], guard)
	}
	return nil
}

// restart closes the idle connections of an instance whose program ends, and starts it again. Its attempts have given
// theirs up by then.
func (cs *connections) restart(i int32) {
	for p := range cs.pools[i] {
		for _, c := range cs.pools[i][p].idle {
			cs.close(&cs.pools[i][p], c)
		}
	}
	_ = cs.renew(i) // the policies were checked when the run began
}

// poolOf is the pool that an attempt draws from.
func (cs *connections) poolOf(a *attempt) *pool {
	c := cs.traffic.calls.at(a.call)
	return &cs.pools[c.inst][cs.world.edges[c.edge].slot]
}

// acquire gets an attempt a connection: an idle one, a new one, or a place in the line.
func (cs *connections) acquire(ai uint32) {
	a := cs.traffic.attempts.at(ai)
	p := cs.poolOf(a)
	if p.size == 0 {
		cs.dial(ai)
		return
	}
	for i := len(p.idle) - 1; i >= 0; i-- {
		c := p.idle[i]
		if a.picked && a.replica != c.replica {
			continue
		}
		p.idle = slices.Delete(p.idle, i, i+1)
		if cs.servers.replicas[c.replica].connEpoch == c.epoch {
			a.pooled, a.epoch = holdsConnection, c.epoch
			cs.launch(ai, a, cs.traffic.calls.at(a.call), c.replica, 0)
			return
		}
		p.open-- // the replica closed it when it was restarted
	}
	if p.open >= p.size && len(p.idle) > 0 { // the one that was used last the longest ago makes room
		cs.close(p, p.idle[0])
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if p.open >= p.size {
		a.pooled = waitsForConnection
		p.waiting = append(p.waiting, waitingAttempt{ai, cs.traffic.attempts.generation(ai)})
		return
	}
	p.open++
	cs.dial(ai)
}

// close closes an idle connection, unless its replica has.
func (cs *connections) close(p *pool, c connection) {
	p.open--
	if cs.servers.replicas[c.replica].connEpoch == c.epoch {
		cs.servers.hangUp(c.replica)
	}
}

// replicaOf is the replica that an attempt goes to: the one that its caller's balancer has picked, or that what stands
// between them chooses.
func (cs *connections) replicaOf(ai uint32, edge *edge) int32 {
	if edge.balances {
		return cs.traffic.attempts.at(ai).replica
	}
	return cs.servers.choose(edge.callee, ai)
}

// connected is the end of a handshake: the attempt goes on, on the new connection.
func (cs *connections) connected(ti uint32) {
	ai, ok := cs.servers.connected(ti)
	if !ok {
		return
	}
	a := cs.traffic.attempts.at(ai)
	a.task = 0
	if a.dial != 0 {
		cs.dialed(a, Answered)
		return
	}
	cs.connectionOpen(ai)
}

// connectionOpen sends an attempt on its way over its new connection.
func (cs *connections) connectionOpen(ai uint32) {
	a := cs.traffic.attempts.at(ai)
	a.pooled, a.epoch = holdsConnection, cs.servers.replicas[a.replica].connEpoch
	// The answer to the handshake comes back before the request is sent.
	c := cs.traffic.calls.at(a.call)
	cs.launch(ai, a, c, a.replica, cs.traffic.latency(c, a.replica))
}

// release gives back what an attempt has of a connection, at its end.
func (cs *connections) release(a *attempt, end EndKind) {
	if a.pooled != noConnection {
		cs.giveBack(a, end)
	}
}

func (cs *connections) giveBack(a *attempt, end EndKind) {
	cs.dropDial(a)
	p := cs.poolOf(a)
	if p.size == 0 {
		cs.keep(a, end)
		return
	}
	switch {
	case a.pooled == waitsForConnection: // its place in the line is skipped when its turn comes
		return
	case a.pooled == connecting || a.epoch != cs.servers.replicas[a.replica].connEpoch: // there is none, or it is broken
		p.open--
	case end == TimedOut:
		p.open--
		cs.servers.hangUp(a.replica)
	default:
		p.idle = append(p.idle, connection{a.replica, a.epoch})
	}
	cs.nextForConnection(p)
}

// keep leaves the connection of an attempt to open a session to its user, if that was answered, and closes it if not.
func (cs *connections) keep(a *attempt, end EndKind) {
	switch {
	case a.pooled == connecting || a.epoch != cs.servers.replicas[a.replica].connEpoch: // there is none, or it is broken
	case end == Answered:
		cs.kept = connection{a.replica, a.epoch}
	default:
		cs.servers.hangUp(a.replica)
	}
}

// nextForConnection serves the line of a pool.
func (cs *connections) nextForConnection(p *pool) {
	for len(p.waiting) > 0 {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		if !cs.traffic.attempts.is(w.attempt, w.generation) {
			continue
		}
		cs.acquire(w.attempt)
		return
	}
}

// launch sends an attempt to a replica, after a wait.
func (cs *connections) launch(ai uint32, a *attempt, c *call, replica int32, delay int64) {
	w, tr := cs.world, cs.traffic
	a.replica = replica
	if cs.servers.lost(replica, ai, ofWay) {
		return
	}
	ti, t := tr.tasks.get()
	*t = task{inst: replica, attempt: ai, generation: tr.attempts.generation(ai), deadline: a.until,
		since: w.now, trace: c.trace}
	if w.own {
		t.drawn = tr.chanceAt(a)
	}
	a.task = ti + 1
	if a.told > 0 {
		t.tree = true
		tr.trees.plant(ti, int(a.told)-1)
	}
	edge := &w.edges[c.edge]
	switch { // what the caller says about the request
	case edge.naive:
		t.deadline = int64(core.NoDeadline)
	case edge.ranked:
		t.priority, t.ranked = edge.priority, true
	case edge.inherits:
		of := tr.tasks.at(c.task)
		t.priority, t.ranked = of.priority, of.ranked
	}
	if edge.gated {
		cs.servers.gates.address(ti, edge, c.inst, int(a.number))
	}
	cs.travel(ti, t, edge, c.inst, delay)
}
