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
// as each proxy has. Every decision about that is balance.Balancer's.
type balancers struct {
	world   *world
	traffic *traffic
	servers *servers
	of      [][]endpoints // of instances, by index, and of the edges of their node
	tried   []int32       // of calls, by index: the endpoint of the last attempt, where the edge balances
	known   []known
	chose   []uint32 // of the copies of calls: + 1: the one of known that chose, where replicas come and go
}

// endpoints are the replicas of a service as one of its callers knows them.
type endpoints struct {
	balancer *balance.Balancer // nil where something else chooses: see servers.choose
	stream   kernel.Stream
	known    uint32 // + 1: what it knows of replicas that come and go; 0 of those that stay
}

// known is what one caller knew of replicas that come and go, from one change of their list to the next: attempts under
// way belong to the balancer that chose their replica.
type known struct {
	balancer *balance.Balancer
	list     []int32
}

// reset makes new balancers for all instances: they know nothing yet.
func (b *balancers) reset() {
	b.known = b.known[:0]
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
			if callee := &b.world.nodes[edge.callee]; callee.lives {
				b.learn(&e, edge)
			} else {
				p := b.world.variant.PolicyOf(name, edge.call.To)
				e.balancer = balance.New(p.OutlierDetection, int(callee.count))
				e.balancer.Weigh(p.Weights)
			}
			e.stream = b.world.stream(name, number, edge.call.To, "balancer", restarts)
		}
		b.of[i] = append(b.of[i], e)
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
			b.learn(&b.of[caller.first+i][edge.slot], edge)
		}
	}
}

// learn makes a caller's balancer over the replicas that there are.
func (b *balancers) learn(e *endpoints, edge *edge) {
	list := slices.Clone(b.servers.ready[edge.callee])
	p := b.world.variant.PolicyOf(b.world.nodes[edge.caller].name, edge.call.To)
	next := balance.New(p.OutlierDetection, len(list))
	if e.balancer != nil {
		before := b.known[e.known-1].list
		index := make([]int, len(list))
		for i, replica := range list {
			index[i] = slices.Index(before, replica)
		}
		next.Carry(e.balancer, index)
	}
	b.known = append(b.known, known{next, list})
	e.balancer, e.known = next, uint32(len(b.known))
}

// pickKnown chooses among replicas that come and go; the address that nobody stands behind if there is none.
func (b *balancers) pickKnown(a *attempt, e *endpoints, random uint64, callee *node) {
	list, tried := b.known[e.known-1].list, b.triedBy(a)
	i := e.balancer.Pick(time.Duration(b.world.now), random, slices.Index(list, *tried))
	if i < 0 {
		a.replica = callee.first + callee.count
		return
	}
	a.replica, a.picked = list[i], true
	*tried = a.replica
	*b.chosenBy(a) = e.known
}

// chosenBy is who chose the replica of an attempt, among replicas that come and go.
func (b *balancers) chosenBy(a *attempt) *uint32 {
	at := int(a.call)*core.MaxCopies + int(a.copy)
	for len(b.chose) <= at {
		b.chose = append(b.chose, 0)
	}
	return &b.chose[at]
}

// pick chooses the replica of an attempt on an edge that balances, which is not the one just tried if there is another.
func (b *balancers) pick(ai uint32) {
	a := b.traffic.attempts.at(ai)
	c := b.traffic.calls.at(a.call)
	edge := &b.world.edges[c.edge]
	e := &b.of[c.inst][edge.slot]
	random := b.traffic.chanceOfAttempt(ai, ofReplica, &e.stream).Uint64()
	if e.known > 0 {
		b.pickKnown(a, e, random, &b.world.nodes[edge.callee])
		return
	}
	tried := b.triedBy(a)
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
	if b.of[c.inst][edge.slot].known > 0 {
		k := &b.known[*b.chosenBy(a)-1]
		i = slices.Index(k.list, a.replica)
		k.balancer.Done(i, time.Duration(b.world.now), hops.EndpointResult(class))
		return
	}
	b.of[c.inst][edge.slot].balancer.Done(i, time.Duration(b.world.now), hops.EndpointResult(class))
}
