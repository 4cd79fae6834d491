package engine

import (
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// chooseReady picks one of the replicas of a service that are ready, where they come and go. If none is, the attempt
// reaches the address that nobody stands behind.
func (s *servers) chooseReady(n int32, ai uint32) int32 {
	node, list := &s.world.nodes[n], s.ready[n]
	if len(list) == 0 {
		return node.first + node.count
	}
	b := &s.spreads[n]
	random := s.traffic.chanceOfAttempt(ai, ofReplica, &b.stream)
	switch node.service.Balancing {
	case scenario.RoundRobin:
		b.next++
		return list[int(b.next)%len(list)]
	case scenario.LeastQueue:
		start := random.IntN(len(list))
		best := list[start]
		for i := range list {
			at := list[(start+i)%len(list)]
			if s.replicas[at].load() < s.replicas[best].load() {
				best = at
			}
		}
		return best
	}
	return list[random.IntN(len(list))]
}

// lost draws whether an attempt on its way to a replica is lost, or its answer on the way back.
func (s *servers) lost(i int32, ai uint32, way chance) bool {
	return s.replicas[i].loss > 0 && s.loses(i, ai, way)
}

// loses is lost for a replica that loses some.
func (s *servers) loses(i int32, ai uint32, way chance) bool {
	return s.traffic.chanceOfAttempt(ai, way, &s.world.instances[i].stream).Float64() < s.replicas[i].loss
}

// overloads ends a replica that has more requests than it can keep, as soon as this moment is over.
func (s *servers) overloads(i int32) {
	r := &s.replicas[i]
	if r.busy+r.waiting < s.world.nodes[r.node].crashes || r.dying {
		return
	}
	r.dying = true
	s.world.queue.Push(s.world.now, uint32(i), kernel.Meta(evLife, uint32(lifeCrashes)))
}

// What an event about a replica says. The rest of its generation is what the replica's life makes of it.
const (
	lifeBegins   uint32 = iota // its program is up
	lifeCrashes                // it has too much
	lifeAsked                  // it is time for a probe
	lifeAnswered               // a probe's turn has come
	lifeLate                   // a probe has had its time
)

// asked says how a replica takes a probe: it is answered at once, it waits, or neither. check is whose it is, + 1, if a
// caller asks; 0 for what the replica's life asks.
func (s *servers) asked(i int32, about, check uint32) (answered, waits bool) {
	r := &s.replicas[i]
	node := &s.world.nodes[r.node]
	switch {
	case r.refuse > 0 || r.fail > 0:
		return false, false
	case r.mute > 0:
		return false, true
	case r.free():
		return true, false
	case node.limit >= 0 && r.waiting >= node.limit:
		return false, false
	}
	ti, t := s.traffic.tasks.get()
	// What is dead takes no worker when its turn comes.
	*t = task{inst: i, stage: dead, poison: true, mark: about, user: check}
	r.probes++
	r.line.push(ti)
	return false, true
}

// answers is the turn of a probe.
func (s *servers) answers(t *task) {
	s.replicas[t.inst].probes--
	if t.user > 0 {
		s.world.queue.Push(s.world.now, t.user-1, kernel.Meta(evHealth, t.mark))
		return
	}
	s.world.queue.Push(s.world.now, uint32(t.inst), kernel.Meta(evLife, t.mark))
}

// cold is a service time on a replica that has just come up.
func (r *replica) cold(took, now int64, s *scenario.Start) int64 {
	age := now - r.begun
	if age < 0 || age >= int64(s.WarmUp) {
		return took
	}
	rest := 1 - float64(age)/float64(s.WarmUp)
	return int64(float64(took) * (1 + float64((s.Slower-1)*rest)))
}

// sample records the state of all services at the end of a bin.
func (s *servers) sample() {
	for n := range s.world.nodes {
		node := &s.world.nodes[n]
		if node.service == nil {
			continue
		}
		s.rec.hold(int32(n), 0)
		var waiting, busy, most int32
		for i := range node.count {
			r := &s.replicas[node.first+i]
			waiting += r.waiting
			most = max(most, r.longest)
			r.longest = r.waiting // they still wait as the next bin begins
			busy += r.busy
		}
		record, bin := s.rec.service(int32(n)), s.rec.bin
		record.Waiting[bin], record.Busy[bin] = uint32(waiting), uint32(busy)
		record.Longest[bin] = uint32(most)
		record.Limit[bin] = s.gates.limit(node)
		record.Conns[bin] = max(record.Conns[bin], s.connections(node))
	}
}

// restart puts a replica into the state of a program that starts, with a new gate. Its requests are lost already.
func (s *servers) restart(i int32) {
	r := &s.replicas[i]
	r.breakConnections()
	r.version, r.codel = 0, codel{}
	_ = s.gates.install(i) // the settings were checked when the run began
}
