package engine

import "github.com/abate-go/abate/sim/kernel"

// handshake is a new connection's arrival at the replica. Making it costs one of the replica's cores some time.
func (s *servers) handshake(ti uint32) {
	t := s.traffic.tasks.at(ti)
	r := &s.replicas[t.inst]
	n := r.node
	node := &s.world.nodes[n]
	c := &node.service.Connections
	if c.Max > 0 && r.conns >= int32(c.Max) {
		s.refuse(ti, NoConnection)
		return
	}
	r.conns++
	conns := s.rec.service(n).Conns
	conns[s.rec.bin] = max(conns[s.rec.bin], s.connections(node))
	if r.connBusy >= int32(max(c.Cores, 1)) {
		r.connLine.push(ti)
		return
	}
	s.makeConnection(ti)
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
	r := &s.replicas[t.inst]
	s.traffic.tasks.put(ti)
	r.connBusy--
	if !r.connLine.empty() {
		s.makeConnection(r.connLine.popOldest())
	}
	if !ok {
		r.conns--
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
