package engine

import (
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/sim/kernel"
)

// balancers are those of callers that choose a replica by themselves: each instance has one per service that it calls,
// as each proxy has. Every decision about that is balance.Balancer's.
type balancers struct {
	world   *world
	traffic *traffic
	of      [][]endpoints // of instances, by index, and of the edges of their node
	tried   []int32       // of calls, by index: the endpoint of the last attempt, where the edge balances
}

// endpoints are the replicas of a service as one of its callers knows them.
type endpoints struct {
	balancer *balance.Balancer // nil where something else chooses: see servers.choose
	stream   kernel.Stream
}

// reset makes new balancers for all instances: they know nothing yet.
func (b *balancers) reset() {
	for i := range b.of {
		b.renew(int32(i))
	}
}

// renew gives an instance new balancers, as a program that starts has. Its attempts have ended by then.
func (b *balancers) renew(i int32) {
	name, number, restarts := b.world.program(i)
	b.of[i] = b.of[i][:0]
	for _, k := range b.world.nodeOf(i).edges {
		edge, e := &b.world.edges[k], endpoints{}
		if edge.balances {
			p := b.world.variant.PolicyOf(name, edge.call.To)
			e.balancer = balance.New(p.OutlierDetection, int(b.world.nodes[edge.callee].count))
			e.balancer.Weigh(p.Weights)
			e.stream = b.world.stream(name, number, edge.call.To, "balancer", restarts)
		}
		b.of[i] = append(b.of[i], e)
	}
}

// pick chooses the replica of an attempt on an edge that balances, which is not the one just tried if there is another.
func (b *balancers) pick(ai uint32) {
	a := b.traffic.attempts.at(ai)
	c := b.traffic.calls.at(a.call)
	edge := &b.world.edges[c.edge]
	e := &b.of[c.inst][edge.slot]
	tried := b.triedBy(a)
	random := b.traffic.chanceOfAttempt(ai, ofReplica, &e.stream).Uint64()
	i := e.balancer.Pick(time.Duration(b.world.now), random, int(*tried))
	*tried = int32(i)
	a.replica, a.picked = b.world.nodes[edge.callee].first+int32(i), true
}

// triedBy is the endpoint of the attempt before this one of the same call, -1 for none.
func (b *balancers) triedBy(a *attempt) *int32 {
	for len(b.tried) <= int(a.call) {
		b.tried = append(b.tried, -1)
	}
	tried := &b.tried[a.call]
	if a.number == 1 && a.copy == 0 {
		*tried = -1
	}
	return tried
}

// done tells the balancer that chose the replica of an attempt what became of it.
func (b *balancers) done(a *attempt, class abate.Class) {
	c := b.traffic.calls.at(a.call)
	edge := &b.world.edges[c.edge]
	i := int(a.replica - b.world.nodes[edge.callee].first)
	a.picked = false
	b.of[c.inst][edge.slot].balancer.Done(i, time.Duration(b.world.now), hops.EndpointResult(class))
}
