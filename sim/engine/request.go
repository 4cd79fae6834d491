package engine

// requests know what a request needs, step by step: work where it is, calls of others, or all calls at once.
type requests struct {
	world   *world
	traffic *traffic
	servers *servers
	calls   *calls

	// ended takes back a request that began here: at a fleet, or with a message.
	ended func(ti uint32, t *task, end EndKind)
}

// advance takes a request to its next step, or to its end.
func (rs *requests) advance(ti uint32, t *task) {
	node := rs.world.nodeOf(t.inst)
	for int(t.step) < len(node.plan) {
		s := node.plan[t.step]
		t.step++
		switch s.kind {
		case workStep:
			rs.servers.work(ti, t)
			return
		case fanStep:
			if rs.fan(ti, t, node); t.pending > 0 {
				return
			}
			rs.joined(ti, t) // all of them have ended already
			return
		case callStep:
			if rs.makes(t, s.edge, 0) {
				t.pending = 1
				rs.calls.begin(ti, t, s.edge, 0)
				return // callEnded goes on
			}
		}
	}
	rs.end(ti, t, Answered)
}

// makes draws whether a request makes a call that only a share of them make; which is the call's number among those
// that begin at once.
func (rs *requests) makes(t *task, k int32, which int) bool {
	share := rs.world.edges[k].share
	if share >= 1 {
		return true
	}
	step := chance(t.step)<<16 | chance(which)
	return rs.traffic.chanceOf(t, ofCall+step<<8, &rs.world.instances[t.inst].stream).Float64() < share
}

// fan makes all calls at once.
func (rs *requests) fan(ti uint32, t *task, node *node) {
	t.pending = 1 // holds the task until all have begun
	which := 0
	for _, k := range node.edges {
		if rs.world.edges[k].instead {
			continue
		}
		for range max(rs.world.edges[k].call.Times, 1) {
			if rs.makes(t, k, which) {
				t.pending++
				rs.calls.begin(ti, t, k, which)
			}
			which++
		}
	}
	t.pending--
}

// callEnded goes on with the request that a call was made for.
func (rs *requests) callEnded(ti uint32, end EndKind, optional bool) {
	t := rs.traffic.tasks.at(ti)
	if end != Answered && !optional && t.failed == Answered {
		t.failed = end
	}
	if t.pending--; t.pending == 0 {
		rs.joined(ti, t)
	}
}

// joined goes on when no call is under way any more.
func (rs *requests) joined(ti uint32, t *task) {
	if t.failed != Answered {
		rs.end(ti, t, t.failed)
		return
	}
	rs.advance(ti, t)
}

// workDone goes on when the service's own work is done.
func (rs *requests) workDone(ti uint32) {
	t := rs.traffic.tasks.at(ti)
	if end := rs.servers.workDone(t); end != Answered {
		rs.end(ti, t, end)
		return
	}
	rs.advance(ti, t)
}

// end answers a request. What failed at a service was a call it made, or its own work.
func (rs *requests) end(ti uint32, t *task, end EndKind) {
	if t.root {
		rs.ended(ti, t, end)
		return
	}
	if t.failed != Answered {
		end = BadGateway
	}
	attempt, generation := t.attempt, t.generation
	rs.servers.finish(ti, t, end)
	if rs.traffic.attempts.is(attempt, generation) {
		rs.calls.answer(attempt, end)
	}
}

// lose ends all requests at an instance that have come to it; with all unset only those in its queue. Callers see the
// connection break.
func (rs *requests) lose(i int32, all bool) {
	var doomed []uint32
	rs.traffic.tasks.each(func(ti uint32, t *task) {
		if t.inst == i && (all || t.stage == queued) {
			doomed = append(doomed, ti)
		}
	})
	if all {
		r := &rs.servers.replicas[i]
		r.hang++ // nobody is taken up meanwhile
		defer func() { r.hang-- }()
	}
	rs.servers.loseGivenUp(i)
	for _, ti := range doomed {
		t := rs.traffic.tasks.at(ti)
		switch {
		case t.stage == dead, t.inst != i:
		case t.root:
			rs.calls.abandon(t)
			rs.ended(ti, t, Reset)
		case rs.servers.has(t): // else it is still on its way, and will find the instance down
			rs.calls.abandon(t)
			rs.servers.lose(ti)
		}
	}
}
