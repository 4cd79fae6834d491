package engine

import (
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// handshake is a new connection's arrival at the replica. Making it costs one of the replica's cores some time.
func (s *servers) handshake(ti uint32) {
	t := s.traffic.tasks.at(ti)
	r := &s.replicas[t.inst]
	node := &s.world.nodes[r.node]
	c := &node.service.Connections
	full := c.Max > 0 && r.conns >= int32(c.Max)
	waits := full && c.WhenFull == scenario.WaitWhenFull
	busy := r.connBusy >= int32(max(c.Cores, 1))
	tooMany := c.Backlog > 0 && r.connLine.count+r.connOutside.count >= uint32(c.Backlog)
	switch {
	case full && !waits, (waits || busy) && tooMany:
		s.refuse(ti, NoConnection)
	case waits:
		r.connOutside.push(ti)
	default:
		s.holdConnection(ti)
	}
}

// holdConnection lets a new connection count among those that its replica has, and begins to make it as soon as a core
// is free.
func (s *servers) holdConnection(ti uint32) {
	r := &s.replicas[s.traffic.tasks.at(ti).inst]
	node := &s.world.nodes[r.node]
	r.conns++
	conns := s.rec.service(r.node).Conns
	conns[s.rec.bin] = max(conns[s.rec.bin], s.connections(node))
	if r.connBusy >= int32(max(node.service.Connections.Cores, 1)) {
		r.connLine.push(ti)
		return
	}
	s.makeConnection(ti)
}

// hangUp is the end of a connection that its replica has not broken itself. Who has waited longest for one is next,
// unless its caller has left.
func (s *servers) hangUp(i int32) {
	r := &s.replicas[i]
	r.conns--
	for most := s.world.nodes[r.node].service.Connections.Max; !r.connOutside.empty() && r.conns < int32(most); {
		ti := r.connOutside.popOldest()
		if !s.traffic.awaited(s.traffic.tasks.at(ti)) {
			s.traffic.tasks.put(ti)
			continue
		}
		s.holdConnection(ti)
	}
}

func (s *servers) makeConnection(ti uint32) {
	i := s.traffic.tasks.at(ti).inst
	inst := &s.world.instances[i]
	s.replicas[i].connBusy++
	cost := s.world.nodes[inst.node].service.Connections.Cost.Sample(&inst.stream)
	s.world.queue.Push(s.world.now+cost, ti, kernel.Meta(evConnected, s.traffic.tasks.generation(ti)))
}

// connected is the end of a handshake. It returns the attempt for which the connection was made; false if its caller
// has given it up: the work was in vain, and the connection is closed.
func (s *servers) connected(ti uint32) (ai uint32, ok bool) {
	t := s.traffic.tasks.at(ti)
	ai, ok = t.attempt, s.traffic.awaited(t)
	i := t.inst
	r := &s.replicas[i]
	s.traffic.tasks.put(ti)
	r.connBusy--
	if !r.connLine.empty() {
		s.makeConnection(r.connLine.popOldest())
	}
	if !ok {
		s.hangUp(i)
	}
	return ai, ok
}

// connections counts a service's open connections.
func (s *servers) connections(n *node) uint32 {
	var sum int32
	for i := range n.count {
		sum += s.replicas[n.first+i].conns
	}
	return uint32(sum)
}

// breakHandshakes refuses those who are connecting to a replica.
func (s *servers) breakHandshakes(i int32) {
	var connecting []uint32
	s.traffic.tasks.each(func(ti uint32, t *task) {
		if t.inst == i && t.connect {
			connecting = append(connecting, ti)
		}
	})
	for _, ti := range connecting {
		s.refuse(ti, RefusedConnection)
	}
}
