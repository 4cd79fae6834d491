package engine

import (
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// fault is one fault of the scenario at work on instances, one after the other if it rolls out.
type fault struct {
	spec   *scenario.Fault
	kind   scenario.FaultKind
	target int32 // node
	hit    int32 // instances of it that it reaches in the end
	on     int32 // that it has reached by now; of an operator's action 1 while it is in force
	ended  bool
}

func newFault(e *Engine, spec *scenario.Fault) fault {
	kind, target := spec.Kind()
	f := fault{spec: spec, kind: kind}
	for n := range e.nodes {
		if e.nodes[n].name == target {
			f.target = int32(n)
		}
	}
	f.hit = e.nodes[f.target].count
	if spec.Share > 0 {
		f.hit = min(f.hit, int32(math.Ceil(float64(f.hit)*spec.Share-1e-9)))
	}
	return f
}

func (f *fault) reset() { f.on, f.ended = 0, false }

// What a fault's event asks for, as its generation.
const (
	faultReaches uint32 = iota // one more instance
	faultLeaves                // a restarted instance is back
	faultEnds
)

// schedule makes the events of a fault.
func (e *Engine) schedule(i int) {
	f := &e.faults[i]
	if f.kind == scenario.SurgeFault { // is in the load already
		return
	}
	begin := e.warm + int64(f.spec.At)
	steps := f.hit
	if f.wholesale() {
		steps = 1
	}
	for n := range steps {
		at := begin
		if f.hit > 1 {
			at += int64(f.spec.Rollout) / int64(f.hit) * int64(n)
		}
		e.queue.Push(at, uint32(i), kernel.Meta(evFault, faultReaches))
		if f.kind == scenario.RestartFault {
			e.queue.Push(at+int64(f.spec.For), uint32(i), kernel.Meta(evFault, faultLeaves|uint32(n)<<2))
		}
	}
	if f.kind != scenario.RestartFault && f.spec.For > 0 {
		e.queue.Push(begin+int64(f.spec.For), uint32(i), kernel.Meta(evFault, faultEnds))
	}
}

// wholesale tells of operator actions on a whole node, or on instances of it at the same moment.
func (f *fault) wholesale() bool { return f.kind == scenario.OperatorFault }

// faultMoves plays one event of a fault.
func (e *Engine) faultMoves(i, what uint32) {
	f := &e.faults[i]
	node := &e.nodes[f.target]
	switch what & 3 {
	case faultEnds:
		f.ended = true
		if f.kind == scenario.OperatorFault {
			f.on = 0
			e.operate(f, true)
			return
		}
		for n := range f.on {
			e.afflict(f, node.first+n, -1)
		}
	case faultLeaves:
		inst := node.first + int32(what>>2)
		e.insts[inst].down--
	case faultReaches:
		if f.ended {
			return
		}
		if f.kind == scenario.OperatorFault {
			f.on = 1
			e.operate(f, false)
			return
		}
		e.afflict(f, node.first+f.on, +1)
		f.on++
	}
}

// afflict lets a fault begin (sign +1) or end (-1) at one instance.
func (e *Engine) afflict(f *fault, i int32, sign int32) {
	inst := &e.insts[i]
	switch f.kind {
	case scenario.OutageFault:
		e.outage(i, f.spec.Mode, sign)
	case scenario.RestartFault:
		inst.down++
		e.restart(i)
	default:
		inst.suffer(f, sign)
	}
	e.startNext(i)
}

// outage begins or ends an outage of an instance.
func (e *Engine) outage(i int32, mode string, sign int32) {
	inst := &e.insts[i]
	switch mode {
	case scenario.Refuse:
		if inst.refuse += sign; sign > 0 {
			e.breakHandshakes(i)
			inst.breakConnections()
		}
	case scenario.Blackhole:
		inst.mute += sign
	case scenario.Fail:
		inst.fail += sign
	default:
		inst.hang += sign
	}
}

// suffer adds a fault to those at work on the instance, or takes it away, and works out anew what they come to together:
// so nothing is left of one that is over, in whatever order they end.
func (inst *instance) suffer(f *fault, sign int32) {
	if sign > 0 {
		inst.faults = append(inst.faults, f)
	} else if i := slices.Index(inst.faults, f); i >= 0 {
		inst.faults = slices.Delete(inst.faults, i, i+1)
	}
	inst.slowdowns = inst.slowdowns[:0]
	sound, through, share := 1.0, 1.0, 1.0
	for _, f := range inst.faults {
		s := f.spec
		rate := s.Rate
		if rate == 0 && f.kind != scenario.DeployFault {
			rate = 1
		}
		switch f.kind {
		case scenario.SlowdownFault, scenario.DeployFault:
			inst.slowdowns = append(inst.slowdowns, s)
			if f.kind == scenario.DeployFault {
				sound = float64(sound * (1 - rate))
			}
		case scenario.ErrorsFault:
			sound = float64(sound * (1 - rate))
		case scenario.LossFault:
			through = float64(through * (1 - rate))
		case scenario.CapacityFault, scenario.OperatorFault:
			share = float64(share * s.Factor)
		}
	}
	inst.errors, inst.loss = 1-sound, 1-through
	if inst.full > 0 {
		inst.workers = max(1, int32(math.Round(float64(inst.full)*share)))
	}
}

// slowed is a service time under the slowdowns at work: each hits a share of the requests.
func (inst *instance) slowed(took int64) int64 {
	var added int64
	factor := 1.0
	for _, s := range inst.slowdowns {
		if s.Requests > 0 && inst.stream.Float64() >= s.Requests {
			continue
		}
		if s.Factor > 0 {
			factor *= s.Factor
		}
		added += s.Add.Sample(&inst.stream)
	}
	return int64(float64(took)*factor) + added
}

// restart loses everything that an instance holds, and breaks its connections.
func (e *Engine) restart(i int32) {
	inst := &e.insts[i]
	inst.restarts++
	e.empty(i, true)
	inst.breakConnections()
	for p := range inst.pools {
		e.closeIdle(&inst.pools[p])
	}
	inst.version, inst.codel = 0, codel{}
	// The policies were checked when the engine was made, so new guards and gates cannot fail.
	name, number := e.nodes[inst.node].name, instanceNumber(e, i)
	_ = e.newGuards(inst, name, number)
	_ = e.newGate(inst, name, number)
}

// empty loses the requests of an instance: those in its queue, and with all also those that are being worked on. Their
// callers see the connection break.
func (e *Engine) empty(i int32, all bool) {
	var doomed []uint32
	e.tasks.each(func(ti uint32, t *task) {
		if t.inst == i && (all || t.queued) {
			doomed = append(doomed, ti)
		}
	})
	inst := &e.insts[i]
	if all {
		inst.hang++ // nobody is taken up meanwhile
		defer func() { inst.hang-- }()
	}
	for _, ti := range doomed {
		t := e.tasks.at(ti)
		switch {
		case t.dead, t.inst != i:
			continue
		case t.root:
			e.abandonCalls(t)
			e.requestEnds(ti, Reset)
			continue
		}
		attempt, generation := t.attempt, t.generation
		if t.since > e.now || !t.queued && !t.working && !t.connect && !e.atGate(t) {
			continue // still on its way: it will find the instance down
		}
		e.abandonCalls(t)
		e.served(ti, Reset)
		e.leaveGate(t, abate.Ignored)
		if t.queued {
			t.dead, t.queued = true, false
			inst.waiting--
		} else {
			e.tasks.put(ti)
		}
		if t.connect {
			e.record.Services[e.nodes[inst.node].index].Unopened[e.bin]++
		}
		if e.attempts.is(attempt, generation) {
			e.replyLater(attempt, Reset)
		}
	}
}

// operate is somebody's action, or its end.
func (e *Engine) operate(f *fault, over bool) {
	node := &e.nodes[f.target]
	s := f.spec
	switch s.Action {
	case scenario.DoShed:
		node.shed = e.sheds(f.target)
	case scenario.StopRetries:
		e.reloadRetries(f.target)
	}
	sign := int32(1)
	if over {
		sign = -1
	}
	for n := range f.hit {
		i := node.first + n
		switch {
		case s.Action == scenario.DoScale:
			e.insts[i].suffer(f, sign)
		case over:
		case s.Action == scenario.DoRestart:
			e.restart(i)
		case s.Action == scenario.EmptyQueue:
			e.empty(i, false)
		}
		if node.service != nil {
			e.startNext(i)
		}
	}
}

// sheds is the share of a fleet's requests that operators shed: the largest of those in force.
func (e *Engine) sheds(n int32) float64 {
	var most float64
	for i := range e.faults {
		f := &e.faults[i]
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

// stopped tells whether an operator has stopped the retries of an edge.
func (e *Engine) stopped(edge *edge) bool {
	for i := range e.faults {
		f := &e.faults[i]
		if f.on > 0 && f.spec.Action == scenario.StopRetries && (f.target == edge.caller || f.target == edge.callee) {
			return true
		}
	}
	return false
}

// reloadRetries reloads the policy of all callers of a service, or of all calls of a fleet, without retries, as an
// operator does with a policy file; or puts it back.
func (e *Engine) reloadRetries(target int32) {
	for k := range e.edges {
		edge := &e.edges[k]
		if edge.caller != target && edge.callee != target {
			continue
		}
		retries := edge.policy.MaxRetries
		if e.stopped(edge) {
			retries = 0
		}
		caller := &e.nodes[edge.caller]
		for i := range caller.count {
			g := e.insts[caller.first+i].guards[edge.slot]
			p := *g.Describe()
			p.MaxRetries = retries
			// Only maxRetries changes, so the policy is as valid as it was.
			_ = g.UpdateAt(time.Duration(e.now), p)
		}
	}
}
