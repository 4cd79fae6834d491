package engine

import (
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/sim/kernel"
)

// balancers are those of callers that choose a replica by themselves: each instance has one per service that it calls,
// as each proxy has. Every decision about that is balance.Balancer's, and health.Check's.
type balancers struct {
	world   *world
	traffic *traffic
	servers *servers
	of      [][]endpoints     // of instances, by index, and of the edges of their node
	tried   []int32           // of calls, by index: the replica of the last attempt, + 1, where the edge balances
	begun   []balance.Attempt // of the copies of calls
	checks  checks
}

// endpoints are the replicas of a service as one of its callers knows them.
type endpoints struct {
	balancer *balance.Balancer // nil where something else chooses: see servers.choose
	list     []int32           // of replicas, as the balancer counts them; nil: all, in their order
	stream   kernel.Stream
	asks     kernel.Stream // of health checks
	checks   []uint32      // of them, by the replica's number within its service: + 1 in checks.all, 0 for none
}

// reset makes new balancers for all instances: they know nothing yet.
func (b *balancers) reset() {
	b.checks.reset()
	clear(b.begun)
	b.begun = b.begun[:0]
	for i := range b.of {
		b.renew(int32(i))
	}
}

// renew gives an instance new balancers, as a program that starts has. Its attempts have ended by then.
func (b *balancers) renew(i int32) {
	name, number, restarts := b.world.program(i)
	for slot := range b.of[i] {
		b.checks.dropAll(&b.of[i][slot])
	}
	b.of[i] = b.of[i][:0]
	for _, k := range b.world.nodeOf(i).edges {
		edge := &b.world.edges[k]
		b.of[i] = append(b.of[i], endpoints{})
		if !edge.balances {
			continue
		}
		e := &b.of[i][edge.slot]
		e.stream = b.world.stream(name, number, edge.call.To, "balancer", restarts)
		e.asks = b.world.stream(name, number, edge.call.To, "health", restarts)
		b.learn(i, edge)
	}
}

// relist tells all who call a service which of its replicas there are now, as a reload of their endpoints does. What
// they know of those that stay carries over.
func (b *balancers) relist(n int32) {
	for k := range b.world.edges {
		edge := &b.world.edges[k]
		if edge.callee != n || !edge.balances {
			continue
		}
		caller := &b.world.nodes[edge.caller]
		for i := range caller.count {
			b.learn(caller.first+i, edge)
		}
	}
}

// learn makes a caller's balancer over the replicas that there are.
func (b *balancers) learn(i int32, edge *edge) {
	caller, callee := b.world.nodeOf(i), &b.world.nodes[edge.callee]
	e, p := &b.of[i][edge.slot], b.world.variant.PolicyOf(caller.name, edge.call.To)
	n := int(callee.count)
	var list []int32
	if callee.lives {
		list = slices.Clone(b.servers.ready[edge.callee])
		n = len(list)
	}
	next := balance.New(p.OutlierDetection, n)
	if !callee.lives {
		next.Weigh(p.Weights)
	}
	if !p.IgnoreZones {
		e.locate(next, i-caller.first, caller, callee, list)
	}
	if e.balancer != nil {
		index := make([]int, len(list))
		for at, replica := range list {
			index[at] = slices.Index(e.list, replica)
		}
		next.Carry(e.balancer, index)
	}
	e.balancer, e.list = next, list
	if p.HealthCheck.Enabled() {
		b.checks.follow(e, i, edge, p.HealthCheck.WithDefaults())
	}
}

// locate tells a balancer the zones of its replicas, and that of a caller, by its number.
func (e *endpoints) locate(to *balance.Balancer, number int32, caller, callee *node, list []int32) {
	if len(caller.zones) == 0 || len(callee.zones) == 0 {
		return
	}
	var zones []string
	for at := range callee.count {
		if list == nil {
			zones = append(zones, callee.zone(at))
		}
	}
	for _, replica := range list {
		zones = append(zones, callee.zone(replica-callee.first))
	}
	to.Locate(caller.zone(number), zones)
}

// number is which of the balancer's endpoints a replica is, -1 for none of them.
func (e *endpoints) number(replica int32, callee *node) int {
	switch {
	case replica < 0:
		return -1
	case !callee.lives:
		return int(replica - callee.first)
	}
	return slices.Index(e.list, replica)
}

// pick chooses the replica of an attempt on an edge that balances, which is not the one just tried if there is another;
// the address that nobody stands behind if there is none.
func (b *balancers) pick(ai uint32) {
	a := b.traffic.attempts.at(ai)
	c := b.traffic.calls.at(a.call)
	edge := &b.world.edges[c.edge]
	e, callee := &b.of[c.inst][edge.slot], &b.world.nodes[edge.callee]
	random := b.traffic.chanceOfAttempt(ai, ofReplica, &e.stream).Uint64()
	tried := b.triedBy(a)
	i, begun := e.balancer.Begin(time.Duration(b.world.now), random, e.number(*tried-1, callee))
	switch {
	case i < 0:
		a.replica = callee.first + callee.count
		return
	case callee.lives:
		a.replica = e.list[i]
	default:
		a.replica = callee.first + int32(i)
	}
	a.picked = true
	*tried = a.replica + 1
	*b.begunBy(a) = begun
}

// begunBy is what the balancer knows of an attempt.
func (b *balancers) begunBy(a *attempt) *balance.Attempt {
	at := int(a.call)*core.MaxCopies + int(a.copy)
	for len(b.begun) <= at {
		b.begun = append(b.begun, balance.Attempt{})
	}
	return &b.begun[at]
}

// triedBy is the replica of the attempt before this one of the same call, + 1; 0 for none.
func (b *balancers) triedBy(a *attempt) *int32 {
	for len(b.tried) <= int(a.call) {
		b.tried = append(b.tried, 0)
	}
	tried := &b.tried[a.call]
	if a.number == 1 && a.copy == 0 {
		*tried = 0
	}
	return tried
}

// done tells the balancer that chose the replica of an attempt what became of it.
func (b *balancers) done(a *attempt, class abate.Class) {
	a.picked = false
	begun := b.begunBy(a)
	begun.Done(time.Duration(b.world.now), hops.EndpointResult(class))
	*begun = balance.Attempt{}
}
