package engine

import (
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"math"
	"strconv"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// node is a fleet or a service.
type node struct {
	name    string
	index   int // in Record.Fleets or Record.Services
	fleet   *scenario.Fleet
	service *scenario.Service
	first   int32 // of its instances
	count   int32
	plan    []step
	edges   []int32

	takesPart bool // in call trees

	protection *abate.Protection  // of the gates of its replicas; nil without
	shared     *ratelimit.Limiter // what they share, if they do
	caller     caller

	serving int32         // instances that serve again after the trouble
	stream  kernel.Stream // of the choice of instances, and a fleet's arrivals
	next    uint32        // instance, in turn

	load  load          // of a fleet
	group *group        // of one that consumes
	keys  kernel.Stream // of its messages
	sent  int           // requests of once
	shed  float64
	sheds kernel.Stream // of whom an operator sheds

	limit   int32 // requests that may wait in one replica; -1 for any number
	longest int32 // most requests waiting in one replica within this bin
	held    int32 // workers held, and since when nobody has added their time up
	heldAt  int64
	peak    peak
	knocks  peak // of connections
}

// step is one thing that a request needs: work, a call on an edge, or all calls at once.
type step struct {
	kind stepKind
	edge int32
}

type stepKind uint8

const (
	workStep stepKind = iota
	callStep
	fanStep
)

// edge is one arrow of the topology: calls from one node to a service.
type edge struct {
	caller, callee int32
	slot           int // in the caller's edges
	call           *scenario.Call
	share          float64
	naive          bool
	tells          bool // the callee its allowance
	policy         abate.Policy
	outcomes       [EndKinds]abate.Outcome
	lane           int // of the attempt timeout; -1 without one
	timeout        int64
	priority       shed.Priority // if the call says one
	ranked         bool
	record         EdgeRecord
}

// build lays out everything that stays the same in all runs.
func (e *Engine) build() error {
	services := e.scenario.ServicesOf(e.variant)
	index := make(map[string]int32, len(services))
	for i := range e.scenario.Clients {
		f := &e.scenario.Clients[i]
		e.nodes = append(e.nodes, node{name: f.Name, index: i, fleet: f, count: int32(max(f.Instances, 1)), limit: -1})
	}
	for i := range services {
		s := &services[i]
		index[s.Name] = int32(len(e.nodes))
		n := node{name: s.Name, index: i, service: s, count: int32(max(s.Replicas, 1)), limit: queueLimit(s)}
		if p, ok := e.variant.ProtectionOf(s.Name); ok {
			n.protection = &p
		}
		e.nodes = append(e.nodes, n)
	}
	var first int32
	for n := range e.nodes {
		node := &e.nodes[n]
		node.first = first
		first += node.count
		if err := e.connect(int32(n), index); err != nil {
			return err
		}
		if node.fleet != nil {
			node.load = newLoad(e.scenario, node.fleet)
		}
	}
	for n := range e.nodes {
		if f := e.nodes[n].fleet; f != nil && f.Consumes() {
			e.nodes[n].group = e.newGroup(int32(n))
		}
	}
	e.joinTrees()
	e.insts = make([]instance, first)
	e.identify()
	for i := range e.scenario.Faults {
		e.faults = append(e.faults, newFault(e, &e.scenario.Faults[i]))
	}
	return nil
}

// queueLimit is how many requests may wait in one replica.
func queueLimit(s *scenario.Service) int32 {
	q := &s.Queue
	switch {
	case q.None:
		return 0
	case q.Limit > 0:
		return int32(min(q.Limit, math.MaxInt32))
	case q.Work > 0 && s.Workers > 0 && s.ServiceTime.Mean() > 0:
		return int32(min(math.Floor(q.Work.Seconds()*float64(s.Workers)/s.ServiceTime.Mean().Seconds()), math.MaxInt32))
	}
	return -1
}

// connect makes the edges of a node and the plan of its requests.
func (e *Engine) connect(n int32, index map[string]int32) error {
	node := &e.nodes[n]
	calls, parallel, callsFirst := node.calls()
	var plan []step
	for i := range calls {
		c := &calls[i]
		callee, ok := index[c.To]
		if !ok {
			return fmt.Errorf("%s calls %q, which is no service", node.name, c.To)
		}
		k := int32(len(e.edges))
		e.edges = append(e.edges, e.newEdge(n, callee, len(node.edges), c))
		node.edges = append(node.edges, k)
		for range max(c.Times, 1) {
			plan = append(plan, step{callStep, k})
		}
	}
	if parallel && len(plan) > 0 {
		plan = []step{{kind: fanStep}}
	}
	switch {
	case node.service == nil:
	case callsFirst:
		plan = append(plan, step{kind: workStep})
	default:
		plan = append([]step{{kind: workStep}}, plan...)
	}
	node.plan = plan
	return nil
}

func (n *node) calls() (calls []scenario.Call, parallel, callsFirst bool) {
	if n.fleet != nil {
		return n.fleet.Calls, n.fleet.Parallel, false
	}
	return n.service.Calls, n.service.Parallel, n.service.CallsFirst
}

func (e *Engine) newEdge(caller, callee int32, slot int, c *scenario.Call) edge {
	k := edge{
		caller: caller, callee: callee, slot: slot, call: c, share: c.Share, lane: -1,
		naive:  e.variant.NaiveCall(e.nodes[caller].name, c),
		policy: e.variant.PolicyOf(e.nodes[caller].name, c.To),
		record: EdgeRecord{Caller: e.nodes[caller].name, Callee: c.To},
	}
	if k.share == 0 {
		k.share = 1
	}
	k.priority, k.ranked = shed.ParsePriority([]byte(c.Priority))
	k.timeout = int64(k.policy.AttemptTimeout)
	return k
}

// reset puts everything back to the start of a run.
func (e *Engine) reset(seed uint64, detail bool) error {
	e.now, e.seed, e.underway, e.taking, e.detail = 0, seed, 0, 0, detail
	e.queue.Reset()
	e.tasks.reset()
	e.calls.reset()
	e.attempts.reset()
	e.dials.reset()
	e.arrivals.reset()
	e.messages.reset()
	e.tracer = tracer{}
	e.record = e.newRecord()
	e.bin, e.window = len(e.record.Fleets[0].Offered)-1, outside
	for i := range e.faults {
		e.faults[i].reset()
	}
	for n := range e.nodes {
		node := &e.nodes[n]
		node.stream, node.sheds = e.stream(node.name), e.stream(node.name, "shed")
		node.next, node.shed, node.sent, node.longest, node.peak, node.knocks = 0, 0, 0, 0, peak{}, peak{}
		node.held, node.heldAt, node.serving = 0, 0, 0
		node.load.reset()
		if node.group != nil {
			node.keys = e.stream(node.name, "keys")
			e.resetGroup(node)
		}
		if p := node.protection; p != nil && p.RateLimit.Fleet {
			node.shared = ratelimit.New(p.RateLimit.Config, maphash.MakeSeed())
		}
		for i := range node.count {
			if err := e.newInstance(int32(n), i); err != nil {
				return err
			}
		}
	}
	for k := range e.edges {
		edge := &e.edges[k]
		edge.record = EdgeRecord{Caller: edge.record.Caller, Callee: edge.record.Callee}
		if edge.timeout > 0 {
			edge.lane = e.queue.Lane(edge.timeout)
		}
	}
	return nil
}

// stream returns the random numbers of the entity with a name.
func (e *Engine) stream(parts ...string) kernel.Stream {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return kernel.NewStream(e.seed, h.Sum64())
}

// newInstance makes instance number i of a node: empty, up, with fresh guards.
func (e *Engine) newInstance(n, i int32) error {
	node := &e.nodes[n]
	inst := &e.insts[node.first+i]
	number := strconv.Itoa(int(i))
	inst.clear()
	inst.node = n
	inst.stream, inst.arrivals = e.stream(node.name, number), e.stream(node.name, number, "arrivals")
	if s := node.service; s != nil {
		inst.workers, inst.full = int32(s.Workers), int32(s.Workers)
		if err := e.newGate(inst, node.name, number); err != nil {
			return err
		}
	}
	return e.newGuards(inst, node.name, number)
}

// newGuards gives an instance a guard per edge, as a program that starts has.
func (e *Engine) newGuards(inst *instance, name, number string) error {
	node := &e.nodes[inst.node]
	inst.guards, inst.dialers, inst.pools = inst.guards[:0], inst.dialers[:0], inst.pools[:0]
	for _, k := range node.edges {
		edge := &e.edges[k]
		jitter := e.stream(name, number, edge.record.Callee, "guard", strconv.Itoa(int(inst.restarts)))
		policy := edge.policy
		policy.Rand = jitter.Uint64
		if e.stopped(edge) {
			policy.MaxRetries = 0
		}
		g, err := abate.New(edge.record.Callee, policy)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		inst.guards = append(inst.guards, g)
		if g, err = e.newDialer(edge, name, number, inst.restarts); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		inst.dialers = append(inst.dialers, g)
		inst.pools = append(inst.pools, pool{size: int32(edge.call.Pool)})
		if inst.restarts == 0 && inst.first(e) {
			retryAfter := e.nodes[edge.callee].service.RetryAfter
			if edge.naive {
				retryAfter = 0
			}
			edge.outcomes = outcomes(inst.guards[edge.slot], retryAfter)
		}
	}
	return nil
}

// newDialer makes the guard under which an instance opens the connections of an edge, nil if there is none.
func (e *Engine) newDialer(edge *edge, name, number string, restarts int32) (*abate.Guard, error) {
	policy, ok := e.variant.ConnectPolicy(edge.call)
	if !ok {
		return nil, nil
	}
	jitter := e.stream(name, number, edge.record.Callee, "connections", strconv.Itoa(int(restarts)))
	policy.Rand = jitter.Uint64
	return abate.New(edge.call.Connect, policy)
}

// first tells whether the instance is the first of its node.
func (inst *instance) first(e *Engine) bool { return inst == &e.insts[e.nodes[inst.node].first] }

// outcomes is how a guard's caller judges each kind of answer, by the table that the HTTP client has. What has no
// status is a failure, and the policy's retryOn and neverRetryOn have the last word on retrying.
func outcomes(g *abate.Guard, retryAfter time.Duration) (all [EndKinds]abate.Outcome) {
	for k := range EndKinds {
		f := failures[k]
		if f.err == nil {
			continue
		}
		class, _ := hops.JudgeStatus(f.status)
		if class == abate.Success {
			class = abate.Failure
		}
		all[k] = abate.Outcome{Class: class, Err: f.err, NoRetry: !g.Retryable(f.status, f.err, true)}
		switch k {
		case QueueFull: // gates say by themselves how long
			all[k].RetryAfter = retryAfter
		case RefusedConnection, NoConnection:
			all[k].Unsent = true
		}
	}
	return all
}
