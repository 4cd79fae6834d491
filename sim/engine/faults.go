package engine

import (
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// faults are what goes wrong in a run, and what operators do about it. Each begins and ends by events of its own.
type faults struct {
	world       *world
	servers     *servers
	guards      *guards
	sharing     *sharing
	balancers   *balancers
	connections *connections
	sessions    *sessions
	caches      *caches
	requests    *requests
	fleets      *fleets
	all         []fault
}

// fault is one fault of the scenario at work on instances, one after the other if it rolls out.
type fault struct {
	spec   *scenario.Fault
	kind   scenario.FaultKind
	target int32   // node
	hit    int32   // instances of it that it reaches in the end
	spots  []int32 // those that it can reach, by their numbers, where it is about a zone; nil: all, in their order
	on     int32   // that it has reached by now; of an operator's action 1 while it is in force
	ended  bool
}

// reset makes the faults of the scenario, of which none has begun.
func (fs *faults) reset() {
	fs.all = fs.all[:0]
	for i := range fs.world.scenario.Faults {
		fs.all = append(fs.all, newFault(fs.world.nodes, &fs.world.scenario.Faults[i]))
	}
}

func newFault(nodes []node, spec *scenario.Fault) fault {
	kind, target := spec.Kind()
	f := fault{spec: spec, kind: kind}
	for n := range nodes {
		if nodes[n].name == target {
			f.target = int32(n)
		}
	}
	n := &nodes[f.target]
	f.hit = int32(spec.Hits(int(n.initial)))
	if spec.Zone != "" {
		for at := range n.initial {
			if n.zone(at) == spec.Zone {
				f.spots = append(f.spots, at)
			}
		}
		f.hit = int32(len(f.spots))
	}
	return f
}

// spot is the number of the instance that the fault reaches as its n-th.
func (f *fault) spot(n int32) int32 {
	if f.spots != nil {
		return f.spots[n]
	}
	return n
}

// What a fault's event asks for, as its generation.
const (
	faultReaches uint32 = iota // one more instance
	faultLeaves                // a restarted instance is back
	faultEnds
)

// begin makes the events of all faults.
func (fs *faults) begin() {
	for i := range fs.all {
		fs.schedule(uint32(i))
	}
}

func (fs *faults) schedule(i uint32) {
	f, w := &fs.all[i], fs.world
	if f.kind == scenario.SurgeFault { // is in the load already
		return
	}
	begin := w.warm + int64(f.spec.At)
	steps := f.hit
	if f.kind == scenario.OperatorFault { // acts on all instances at the same moment
		steps = 1
	}
	for n := range steps {
		at := begin
		if f.hit > 1 {
			at += int64(f.spec.Rollout) / int64(f.hit) * int64(n)
		}
		w.queue.Push(at, i, kernel.Meta(evFault, faultReaches))
		if f.kind == scenario.RestartFault {
			w.queue.Push(at+int64(f.spec.For), i, kernel.Meta(evFault, faultLeaves|uint32(n)<<2))
		}
	}
	if f.kind != scenario.RestartFault && f.spec.For > 0 {
		w.queue.Push(begin+int64(f.spec.For), i, kernel.Meta(evFault, faultEnds))
	}
}

// move processes one event of a fault.
func (fs *faults) move(i, what uint32) {
	f := &fs.all[i]
	first := fs.world.nodes[f.target].first
	switch what & 3 {
	case faultEnds:
		f.ended = true
		if f.kind == scenario.OperatorFault {
			f.on = 0
			fs.operate(f, true)
			return
		}
		for n := range f.on {
			fs.afflict(f, first+f.spot(n), -1)
		}
	case faultLeaves:
		fs.down(first+f.spot(int32(what>>2)), -1)
	case faultReaches:
		if f.ended {
			return
		}
		if f.kind == scenario.OperatorFault {
			f.on = 1
			fs.operate(f, false)
			return
		}
		fs.afflict(f, first+f.spot(f.on), +1)
		f.on++
	}
}

// afflict lets a fault begin (sign +1) or end (-1) at one instance.
func (fs *faults) afflict(f *fault, i int32, sign int32) {
	switch f.kind {
	case scenario.OutageFault:
		fs.outage(i, f.spec.Mode, sign)
	case scenario.RestartFault:
		fs.down(i, +1)
		fs.restart(i)
	case scenario.RedisFault:
		fs.world.instances[i].cutOff += sign
	case scenario.FlushFault:
		if sign > 0 {
			fs.caches.empty(i)
		}
	default:
		fs.servers.replicas[i].suffer(f.spec, sign)
	}
	fs.servers.startNext(i)
}

// outage begins or ends an outage of an instance.
func (fs *faults) outage(i int32, mode string, sign int32) {
	r := &fs.servers.replicas[i]
	switch mode {
	case scenario.Refuse:
		if r.refuse += sign; sign > 0 {
			fs.servers.breakHandshakes(i)
			r.breakConnections()
			fs.sessions.cut(i)
		}
	case scenario.Blackhole:
		r.mute += sign
	case scenario.Fail:
		r.fail += sign
	default:
		r.hang += sign
	}
}

// down stops a program (sign +1) or brings it back (-1).
func (fs *faults) down(i, sign int32) {
	if fs.world.nodeOf(i).fleet != nil {
		fs.fleets.schedules[i].down += sign
		return
	}
	r := &fs.servers.replicas[i]
	if r.refuse += sign; sign < 0 {
		r.begun = fs.world.now
	}
}

// restart loses everything that an instance holds, and breaks its connections.
func (fs *faults) restart(i int32) {
	fs.world.instances[i].restarts++
	fs.requests.lose(i, true)
	fs.servers.restart(i)
	fs.caches.empty(i)
	fs.servers.replicas[i].begun = fs.world.now
	fs.connections.restart(i)
	fs.sessions.cut(i)
	fs.balancers.renew(i)
	_ = fs.guards.renew(i) // the policies were checked when the run began
	fs.sharing.restart(i)
}

// operate is somebody's action, or its end.
func (fs *faults) operate(f *fault, over bool) {
	node := &fs.world.nodes[f.target]
	s := f.spec
	switch s.Action {
	case scenario.DoShed:
		fs.fleets.all[f.target].shed = fs.shed(f.target)
	case scenario.StopRetries:
		fs.stopRetries(f.target)
	}
	sign := int32(1)
	if over {
		sign = -1
	}
	for n := range f.hit {
		i := node.first + n
		switch {
		case s.Action == scenario.DoScale:
			fs.servers.replicas[i].suffer(s, sign)
		case over:
		case s.Action == scenario.DoRestart:
			fs.restart(i)
		case s.Action == scenario.EmptyQueue:
			fs.requests.lose(i, false)
		}
		if node.service != nil {
			fs.servers.startNext(i)
		}
	}
}

// shed is the share of a fleet's requests that operators shed: the largest of those in force.
func (fs *faults) shed(n int32) float64 {
	var most float64
	for i := range fs.all {
		f := &fs.all[i]
		if f.target != n || f.on == 0 || f.spec.Action != scenario.DoShed {
			continue
		}
		if f.spec.Rate == 0 {
			return 1
		}
		most = max(most, f.spec.Rate)
	}
	return most
}

// stopRetries stops the retries of all callers of a service, or of all calls of a fleet, while an operator wants that.
func (fs *faults) stopRetries(target int32) {
	for k := range fs.world.edges {
		if edge := &fs.world.edges[k]; edge.caller == target || edge.callee == target {
			fs.guards.stopRetries(k, fs.stopped(edge))
		}
	}
}

// stopped reports whether an operator has stopped the retries of an edge.
func (fs *faults) stopped(edge *edge) bool {
	for i := range fs.all {
		f := &fs.all[i]
		if f.on > 0 && f.spec.Action == scenario.StopRetries && (f.target == edge.caller || f.target == edge.callee) {
			return true
		}
	}
	return false
}
