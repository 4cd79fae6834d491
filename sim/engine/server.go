package engine

import (
	"github.com/abate-go/abate"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// servers are the replicas of all services, and the requests at them. A request is in one place: on its way, in a
// queue, or with a worker; and when it has ended there, its answer is sent unless nobody waits for it.
type servers struct {
	world            *world
	rec              *recorder
	traffic          *traffic
	gates            *gates
	replicas         []replica // of instances, by index; those of fleets are never asked
	spreads          []spread  // of nodes, by index
	ready            [][]int32 // of nodes whose replicas come and go: instances that requests are sent to
	given            givenUp   // requests in their lines that nobody waits for
	crowd            uint32    // see there
	taking           int       // requests being taken up, one within the other
	watched, highest int32     // + 1: the node whose longest queue is looked for, and how long that was

	// begin goes on with a request that has just got its worker. It belongs to those who know what requests need.
	begin func(ti uint32, t *task)
}

// spread is what stands between callers and the replicas of a service, and knows nothing of what becomes of attempts: a
// virtual address, a balancer of connections.
type spread struct {
	stream kernel.Stream
	next   uint32
}

// reset puts replicas that have just started behind new gates.
func (s *servers) reset() error {
	*s = servers{world: s.world, rec: s.rec, traffic: s.traffic, gates: s.gates, begin: s.begin,
		replicas: s.replicas, ready: s.ready[:0], spreads: s.spreads[:0], given: s.given.emptied(), crowd: s.crowd}
	for n := range s.world.nodes {
		s.spreads = append(s.spreads, spread{stream: s.world.stream(s.world.nodes[n].name)})
		s.ready = append(s.ready, nil) // is found out later
	}
	for i := range s.replicas {
		n := s.world.instances[i].node
		service := s.world.nodes[n].service
		if service == nil {
			s.replicas[i] = s.replicas[i].started(n, 0)
			continue
		}
		s.replicas[i] = s.replicas[i].started(n, int32(service.Workers))
		if err := s.gates.install(int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// choose picks the replica for an attempt at service n whose caller does not.
func (s *servers) choose(n int32, ai uint32) int32 {
	node := &s.world.nodes[n]
	if node.lives {
		return s.chooseReady(n, ai)
	}
	if node.count == 1 {
		return node.first
	}
	b := &s.spreads[n]
	random := s.traffic.chanceOfAttempt(ai, ofReplica, &b.stream)
	switch node.service.Balancing {
	case scenario.RoundRobin:
		b.next++
		return node.first + int32(b.next%uint32(node.count))
	case scenario.LeastQueue:
		best := node.first
		start := int32(random.IntN(int(node.count))) // ties fall anywhere
		for i := range node.count {
			at := node.first + (start+i)%node.count
			if i == 0 || s.replicas[at].load() < s.replicas[best].load() {
				best = at
			}
		}
		return best
	}
	return node.first + int32(random.IntN(int(node.count)))
}

// reach is a request's arrival at its replica.
func (s *servers) reach(ti uint32, t *task) {
	r := &s.replicas[t.inst]
	switch {
	case r.refuse > 0:
		s.refuse(ti, RefusedConnection)
	case r.mute > 0:
		s.vanish(ti)
	case t.connect:
		s.handshake(ti)
	case r.gate != nil:
		v, end := s.gates.knock(ti)
		s.heed(ti, v, end)
	default:
		s.pass(ti, t)
	}
}

// lineEnds goes on with a request that waited in a gate's queue.
func (s *servers) lineEnds(gi uint32, woken bool) { s.heed(s.gates.lineEnds(gi, woken)) }

// limitMoves goes on with the requests that waited for a question about a rate limit.
func (s *servers) limitMoves(i uint32, tooLate bool) {
	for _, t := range s.gates.limits.moves(i, tooLate) {
		s.heed(s.gates.limited(t))
	}
}

// heed does what a gate says of a request.
func (s *servers) heed(ti uint32, v verdict, end EndKind) {
	switch v {
	case mayEnter:
		s.pass(ti, s.traffic.tasks.at(ti))
	case isRefused:
		s.refuse(ti, end)
	}
}

// pass hands a request to the service itself.
func (s *servers) pass(ti uint32, t *task) {
	if s.replicas[t.inst].fail > 0 {
		s.refuse(ti, QueueFull)
		return
	}
	s.enter(ti, t)
}

// enter gives a request a worker, or a place in the queue.
func (s *servers) enter(ti uint32, t *task) {
	w := s.world
	r := &s.replicas[t.inst]
	node := &w.nodes[r.node]
	if w.scenario.Model.ServiceTimeDrawn == scenario.DrawnOnArrival {
		stream := &w.instances[t.inst].stream
		t.drawn = r.slowed(node.service.ServiceTime.Sample(stream), stream)
	}
	t.since = w.now
	if node.crashes > 0 {
		s.overloads(t.inst)
	}
	if r.free() {
		s.takeUp(ti, t)
		return
	}
	if node.limit >= 0 && r.waiting >= node.limit {
		if node.service.Queue.WhenFull == scenario.SilenceWhenFull {
			s.rec.service(r.node).Rejected[s.rec.bin]++
			s.vanish(ti)
			return
		}
		s.refuse(ti, QueueFull)
		return
	}
	t.stage = queued
	r.waiting++
	t.mark = r.line.push(ti)
	r.longest = max(r.longest, r.waiting)
	if r.node+1 == s.watched {
		s.highest = max(s.highest, r.waiting)
	}
}

// refuse answers an error at once.
func (s *servers) refuse(ti uint32, end EndKind) {
	t := s.traffic.tasks.at(ti)
	record := s.rec.service(s.replicas[t.inst].node)
	record.Rejected[s.rec.bin]++
	if t.connect {
		record.Unopened[s.rec.bin]++
	}
	attempt, generation := t.attempt, t.generation
	s.traffic.report(ti, t, end)
	s.gates.leave(t, served(end))
	s.traffic.tasks.put(ti)
	if s.traffic.attempts.is(attempt, generation) {
		s.traffic.reply(attempt, end)
	}
}

// vanish loses a request: nobody will ever answer it.
func (s *servers) vanish(ti uint32) {
	t := s.traffic.tasks.at(ti)
	if s.traffic.awaited(t) {
		s.traffic.attempts.at(t.attempt).task = 0
	}
	s.gates.leave(t, abate.Ignored)
	s.traffic.tasks.put(ti)
}

// takeUp gives a request a worker.
func (s *servers) takeUp(ti uint32, t *task) {
	r, now := &s.replicas[t.inst], s.world.now
	n := r.node
	s.rec.waited(n, now-t.since)
	s.rec.traces.span(t.trace, "queue", n, t.since, now)
	t.stage, t.deadline, t.since = working, s.gates.arrivedAt(t), now
	t.mark = r.version
	s.rec.hold(n, +1)
	r.tally(now)
	r.busy++
	// What ends in this very moment is answered by an event: its caller may be in the middle of something.
	s.taking++
	s.begin(ti, t)
	s.taking--
}

// startNext gives free workers to those who wait.
func (s *servers) startNext(i int32) {
	r := &s.replicas[i]
	if r.taking { // a request that ended at once: whoever took it up goes on with the line
		return
	}
	r.taking = true
	for r.waiting+r.probes > 0 && r.free() {
		ti, ok := s.nextInLine(i)
		if !ok {
			break
		}
		s.takeUp(ti, s.traffic.tasks.at(ti))
	}
	r.taking = false
}

// nextInLine takes the next request out of the queue, by the queue's order; false when none is left.
func (s *servers) nextInLine(i int32) (uint32, bool) {
	r, now := &s.replicas[i], s.world.now
	n := r.node
	q := &s.world.nodes[n].service.Queue
	for !r.line.empty() {
		var stood uint32
		if q.Order == scenario.LIFO {
			stood = r.line.popNewest()
		} else {
			stood = r.line.popOldest()
		}
		ti, ok := s.taken(i, stood)
		if !ok {
			continue
		}
		t := s.traffic.tasks.at(ti)
		if t.stage == dead {
			if t.poison { // a probe
				s.answers(t)
			}
			s.traffic.tasks.put(ti)
			continue
		}
		r.waiting--
		switch {
		case q.DropExpired && now >= t.deadline:
			s.rec.waited(n, now-t.since)
			s.refuse(ti, TimedOut)
		case q.Order == scenario.CoDel && r.codel.drops(now, now-t.since, r.waiting, q):
			s.rec.waited(n, now-t.since)
			s.refuse(ti, QueueFull)
		default:
			return ti, true
		}
	}
	return 0, false
}

// work begins a service's own part of a request.
func (s *servers) work(ti uint32, t *task) {
	w := s.world
	r, inst := &s.replicas[t.inst], &w.instances[t.inst]
	service := w.nodes[inst.node].service
	took, onArrival := t.drawn, w.scenario.Model.ServiceTimeDrawn == scenario.DrawnOnArrival
	if !onArrival {
		took = service.ServiceTime.Sample(s.traffic.chanceOf(t, ofWork, &inst.stream))
	}
	if factor := r.slowness(service); factor != 1 {
		took = int64(float64(took) * factor)
	}
	if !onArrival && len(r.slowdowns) > 0 { // else those of its arrival are in it
		took = r.slowed(took, s.traffic.chanceOf(t, ofSlowdown, &inst.stream))
	}
	if service.Start.WarmUp > 0 {
		took = r.cold(took, w.now, &service.Start)
	}
	took += r.debt
	r.debt = 0
	done := w.now + took
	s.rec.traces.span(t.trace, "work", inst.node, w.now, done)
	w.queue.Push(done, ti, kernel.Meta(evWorkDone, s.traffic.tasks.generation(ti)))
}

// workDone returns what a service's own work came to.
func (s *servers) workDone(t *task) EndKind {
	r := &s.replicas[t.inst]
	service := s.world.nodes[r.node].service
	if service.OptimisticLock {
		if t.mark != r.version {
			return Conflict
		}
		r.version++
	}
	if service.ErrorRate > 0 || r.errors > 0 {
		random := s.traffic.chanceOf(t, ofError, &s.world.instances[t.inst].stream)
		if service.ErrorRate > 0 && random.Float64() < service.ErrorRate || r.errors > 0 && random.Float64() < r.errors {
			return ServerError
		}
	}
	return Answered
}

// served gives a worker back and records what its work was good for.
func (s *servers) served(t *task, end EndKind) {
	if t.stage != working {
		return
	}
	t.stage = outsideService
	r, now := &s.replicas[t.inst], s.world.now
	n := r.node
	s.rec.hold(n, -1)
	r.tally(now)
	r.busy--
	if end == Answered {
		s.rec.service(n).Response[s.rec.window].Add(now - t.deadline)
	}
	s.rec.freed(n, now-t.since, end, end != TimedOut && s.traffic.awaited(t)) // else the caller leaves now, or has left
}

// finish ends a request at its replica, whose answer the caller of finish sends.
func (s *servers) finish(ti uint32, t *task, end EndKind) {
	s.served(t, end)
	inst := t.inst
	s.traffic.report(ti, t, end)
	s.gates.leave(t, served(end))
	s.traffic.tasks.put(ti)
	s.startNext(inst)
}

// withdraw takes a request whose caller has left out of the queue; false if it is in none.
func (s *servers) withdraw(ti uint32) bool {
	t := s.traffic.tasks.at(ti)
	if t.stage != queued {
		return false
	}
	t.stage = dead
	s.replicas[t.inst].waiting--
	s.traffic.tasks.renew(ti)
	s.gates.leave(t, abate.Ignored)
	return true
}

// drop ends a request whose caller has left, and frees what it holds.
func (s *servers) drop(ti uint32) {
	t := s.traffic.tasks.at(ti)
	inst := t.inst
	s.served(t, TimedOut)
	s.gates.leave(t, abate.Ignored)
	s.traffic.tasks.put(ti)
	s.startNext(inst)
}

// has reports whether a request has come to its replica, and is not still on its way there.
func (s *servers) has(t *task) bool {
	return t.since <= s.world.now && (t.stage == queued || t.stage == working || t.connect || s.gates.holds(t))
}

// lose breaks a request off because its replica ends, or forgets its queue. Its caller sees the connection break.
func (s *servers) lose(ti uint32) {
	t := s.traffic.tasks.at(ti)
	r := &s.replicas[t.inst]
	attempt, generation := t.attempt, t.generation
	s.served(t, Reset)
	s.gates.leave(t, abate.Ignored)
	if t.stage == queued {
		t.stage = dead
		r.waiting--
	} else {
		s.traffic.tasks.put(ti)
	}
	if t.connect {
		s.rec.service(s.replicas[t.inst].node).Unopened[s.rec.bin]++
	}
	if s.traffic.attempts.is(attempt, generation) {
		s.traffic.reply(attempt, Reset)
	}
}
