package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/scenario"
)

// topology is what stays the same in all runs of a variant: who calls whom, and under which settings.
type topology struct {
	scenario *scenario.Scenario
	variant  *scenario.Variant
	nodes    []node // fleets, then services, in the order of the scenario
	edges    []edge
	programs int32 // instances of all nodes

	limitTimeout time.Duration // for an answer of Redis about a limit
}

// node is a fleet or a service.
type node struct {
	name       string
	index      int // in Record.Fleets or Record.Services
	fleet      *scenario.Fleet
	service    *scenario.Service
	first      int32 // of its instances
	count      int32 // of them, those that an autoscaler may add among them
	initial    int32 // that there are when the run begins
	lives      bool  // its replicas come and go; then it has one more instance, which is always down
	crashes    int32 // a replica with more requests than so many dies; 0 for none
	plan       []step
	edges      []int32
	load       load                // of a fleet
	consumes   bool                // its requests are messages
	protection *inbound.Protection // of the gates of its replicas; nil without
	limit      int32               // requests that may wait in one replica; -1 for any number
	takesPart  bool                // in call trees
	zones      []string            // of its instances, in turn; empty if nobody knows
}

// zone is that of an instance of the node, by its number.
func (n *node) zone(number int32) string {
	if len(n.zones) == 0 {
		return ""
	}
	return n.zones[int(number)%len(n.zones)]
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
	orElse         int32 // + 1: the edge of the call that is made when one on this edge fails
	instead        bool  // only calls that another one has failed for
	on             *scenario.Else
	cached         bool // the callee is a cache, which may not have what is asked for
	fills          bool // what it brings goes into a cache
	tells          bool // the callee its allowance
	hedges         bool
	near           bool // nothing takes time on the network
	gated          bool // the callee has gates
	shares         bool // the instances of the caller share their retry budget
	advises        bool // and what their breakers find out
	pooled         bool // an attempt needs a connection
	balances       bool // each instance of the caller chooses the replica, see balancers
	policy         abate.Policy
	redelivery     redelivery.Config // of messages, if the caller consumes
	timeout        int64             // of an attempt, by the policy; 0 without one
	priority       shed.Priority     // if the call says one
	ranked         bool
	inherits       bool        // else its calls have the priority of the request that they are made for
	by             core.Caller // what the caller's driver knows of it
}

// newTopology lays out a variant of a scenario.
func newTopology(s *scenario.Scenario, v *scenario.Variant) (topology, error) {
	t := topology{scenario: s, variant: v}
	if v.Guards != nil {
		t.limitTimeout = v.Guards.Redis.WithDefaults().Timeout
	}
	services := s.ServicesOf(v)
	index := make(map[string]int32, len(services))
	for i := range s.Clients {
		f := &s.Clients[i]
		t.nodes = append(t.nodes, node{name: f.Name, index: i, fleet: f, count: int32(max(f.Instances, 1)), limit: -1,
			initial: int32(max(f.Instances, 1)),
			load:    newLoad(s, f), consumes: f.Consumes(), zones: f.Zones})
	}
	for i := range services {
		s := &services[i]
		index[s.Name] = int32(len(t.nodes))
		n := node{name: s.Name, index: i, service: s, count: int32(s.Most()), limit: queueLimit(s),
			initial: int32(max(s.Replicas, 1)), lives: s.Lives(), crashes: int32(min(s.Crash.Above, math.MaxInt32)),
			zones: s.Zones}
		if p, ok := v.ProtectionOf(s.Name); ok {
			n.protection = &p.Protection
		}
		t.nodes = append(t.nodes, n)
	}
	for n := range t.nodes {
		node := &t.nodes[n]
		node.first = t.programs
		t.programs += node.count
		if node.lives {
			t.programs++
		}
		if err := t.connect(int32(n), index); err != nil {
			return topology{}, err
		}
	}
	t.joinTrees()
	return t, nil
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
func (t *topology) connect(n int32, index map[string]int32) error {
	node := &t.nodes[n]
	calls, parallel, callsFirst := node.calls()
	var plan []step
	for i := range calls {
		c := &calls[i]
		k, err := t.addEdge(n, c, index)
		if err == nil {
			err = t.addElse(n, k, c, index)
		}
		if err != nil {
			return err
		}
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

// addEdge makes one edge of a node.
func (t *topology) addEdge(n int32, c *scenario.Call, index map[string]int32) (int32, error) {
	node := &t.nodes[n]
	callee, ok := index[c.To]
	if !ok {
		return 0, fmt.Errorf("%s calls %q, which is no service", node.name, c.To)
	}
	k := int32(len(t.edges))
	t.edges = append(t.edges, t.newEdge(n, callee, len(node.edges), c))
	node.edges = append(node.edges, k)
	return k, nil
}

// addElse makes the edges of the calls that are made when a call on edge k fails, one after the other.
func (t *topology) addElse(n, k int32, c *scenario.Call, index map[string]int32) error {
	fills := t.edges[k].cached
	for i := range c.Else {
		call := c.Instead(i)
		next, err := t.addEdge(n, &call, index)
		if err != nil {
			return err
		}
		t.edges[next].instead, t.edges[next].on, t.edges[next].fills = true, &c.Else[i], fills
		t.edges[k].orElse = next + 1
		k = next
	}
	return nil
}

func (n *node) calls() (calls []scenario.Call, parallel, callsFirst bool) {
	if n.fleet != nil {
		return n.fleet.Calls, n.fleet.Parallel, false
	}
	return n.service.Calls, n.service.Parallel, n.service.CallsFirst
}

func (t *topology) newEdge(caller, callee int32, slot int, c *scenario.Call) edge {
	name := t.nodes[caller].name
	p := t.variant.PolicyOf(name, c.To)
	k := edge{
		caller: caller, callee: callee, slot: slot, call: c, share: c.Share,
		naive:  t.variant.NaiveCall(name, c),
		policy: p.Policy, redelivery: p.Kafka,
	}
	k.shares, k.advises = t.variant.SharesBudget(name, c.To), t.variant.SharesFindings(name, c.To)
	holds := t.nodes[caller].fleet != nil && t.nodes[caller].fleet.HoldsSessions()
	k.pooled = c.Pool > 0 || holds
	k.balances = t.nodes[callee].count > 1 && t.nodes[callee].service.Balancing == scenario.LeastRequest
	if k.share == 0 {
		k.share = 1
	}
	k.priority, k.ranked = shed.ParsePriority([]byte(c.Priority))
	k.inherits = !k.ranked && t.nodes[caller].service != nil
	k.timeout = int64(k.policy.AttemptTimeout)
	k.cached = t.nodes[callee].service.IsCache()
	k.hedges = k.policy.Hedge.Enabled()
	k.near = c.AcrossZones.IsZero() && c.Latency.IsZero() && !c.Latency.Draws()
	k.by = core.Terse
	if t.nodes[caller].consumes {
		k.by |= core.ComesBack
	}
	return k
}

// joinTrees finds out which services take part in call trees, and what calls have to say to them: see tree.go.
func (t *topology) joinTrees() {
	for n := range t.nodes {
		node := &t.nodes[n]
		node.takesPart = node.protection != nil
		for _, k := range node.edges {
			node.takesPart = node.takesPart || !t.edges[k].naive
		}
	}
	for k := range t.edges {
		edge := &t.edges[k]
		// A callee that does not take part never reports, so that its callers have nothing to hand out.
		edge.tells = !edge.naive && t.nodes[edge.callee].takesPart
		edge.gated = t.nodes[edge.callee].protection != nil
	}
}

// visits is how many calls to a service one request of each fleet needs.
func (t *topology) visits(callee int32) []float64 {
	known := make(map[int32]float64) // a node may be reached in many ways
	var all []float64
	for n := range t.nodes {
		if t.nodes[n].fleet != nil {
			all = append(all, t.visitsFrom(int32(n), callee, known))
		}
	}
	return all
}

func (t *topology) visitsFrom(from, callee int32, known map[int32]float64) float64 {
	if visits, ok := known[from]; ok {
		return visits
	}
	var sum float64
	for _, k := range t.nodes[from].edges {
		edge := &t.edges[k]
		if edge.instead {
			continue // nothing fails
		}
		often := edge.call.Often()
		if edge.callee == callee {
			sum += often
		}
		sum += float64(often * t.visitsFrom(edge.callee, callee, known)) // there are no cycles
	}
	known[from] = sum
	return sum
}
