package engine

import (
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/breaker"
)

// guards are those of all instances, one per edge of their node, as production makes them of the same policies.
type guards struct {
	world    *world
	rec      *recorder
	replicas []replica
	of       [][]*abate.Guard          // of instances, by index, and of the edges of their node
	outcomes [][EndKinds]abate.Outcome // of edges: how callers judge each kind of answer
	stopped  []bool                    // edges whose retries an operator has stopped
}

// reset makes new guards for all instances.
func (g *guards) reset() error {
	*g = guards{world: g.world, rec: g.rec, replicas: g.replicas, of: g.of, outcomes: g.outcomes[:0],
		stopped: make([]bool, len(g.world.edges))}
	for i := range g.of {
		if err := g.renew(int32(i)); err != nil {
			return err
		}
	}
	for k := range g.world.edges {
		edge := &g.world.edges[k]
		retryAfter := g.world.nodes[edge.callee].service.RetryAfter
		if edge.naive {
			retryAfter = 0
		}
		first := g.world.nodes[edge.caller].first
		g.outcomes = append(g.outcomes, outcomes(g.of[first][edge.slot], retryAfter))
	}
	return nil
}

// renew gives an instance new guards, as a program that starts has.
func (g *guards) renew(i int32) error {
	name, number, restarts := g.world.program(i)
	g.of[i] = g.of[i][:0]
	for _, k := range g.world.nodeOf(i).edges {
		edge := &g.world.edges[k]
		callee := edge.call.To
		jitter := g.world.lend(name, number, callee, "guard", restarts)
		policy := edge.policy
		policy.Rand = jitter.Uint64
		if g.world.nodeOf(i).protection != nil {
			policy.Places = &g.replicas[i]
		}
		if g.stopped[k] {
			policy.MaxRetries = 0
		}
		guard, err := abate.New(callee, policy)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.of[i] = append(g.of[i], guard)
	}
	return nil
}

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

// stopRetries reloads the policy of an edge's guards without retries, as an operator does with a policy file; or puts
// it back.
func (g *guards) stopRetries(k int, stopped bool) {
	edge := &g.world.edges[k]
	g.stopped[k] = stopped
	retries := edge.policy.MaxRetries
	if stopped {
		retries = 0
	}
	caller := &g.world.nodes[edge.caller]
	for i := range caller.count {
		guard := g.of[caller.first+i][edge.slot]
		p := *guard.Describe()
		p.MaxRetries = retries
		// Only maxRetries changes, so the policy is as valid as it was.
		_ = guard.UpdateAt(time.Duration(g.world.now), p)
	}
}

// breaker returns the circuit breaker of a consumer's calls; nil without one.
func (g *guards) breaker(i int32) *breaker.Breaker { return g.of[i][0].Breaker() }

// sample records the state of all guards, once per column of the picture.
func (g *guards) sample() {
	if !g.rec.column() {
		return
	}
	for k := range g.world.edges {
		edge := &g.world.edges[k]
		caller := &g.world.nodes[edge.caller]
		var open, half, tokens, waiting float32
		for i := range caller.count {
			state := g.of[caller.first+i][edge.slot].StateAt(time.Duration(g.world.now))
			switch state.Breaker.State {
			case breaker.Open:
				open++
			case breaker.HalfOpen, breaker.RampUp:
				half++
			}
			tokens += float32(state.Budget)
			waiting += float32(state.Bulkhead.Queued)
		}
		n := float32(caller.count)
		if !edge.policy.RetryBudget.Enabled() {
			tokens = -n
		}
		s := &g.rec.record.Detail.States[k]
		s.Open, s.HalfOpen = append(s.Open, open/n), append(s.HalfOpen, half/n)
		s.Budget, s.Bulkhead = append(s.Budget, tokens/n), append(s.Bulkhead, waiting/n)
	}
}
