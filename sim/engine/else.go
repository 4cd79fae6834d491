package engine

import "github.com/abate-go/abate/sim/scenario"

// missed is how a call ended, for those who may call somebody else, that a cache has answered: it has not got it.
const missed = EndKinds + 1

// failureNames are what scenarios call the ways in which a call fails.
var failureNames = [missed + 1]string{
	RefusedConnection: scenario.OnConnection, Reset: scenario.OnConnection, NoConnection: scenario.OnConnection,
	QueueFull: scenario.OnOverload, Overloaded: scenario.OnOverload, RateLimited: scenario.OnOverload,
	Expired: scenario.OnOverload, ServerError: scenario.OnError, Conflict: scenario.OnError, BadGateway: scenario.OnError,
	TimedOut: scenario.OnTimeout, CircuitOpen: scenario.OnGuard, BulkheadFull: scenario.OnGuard,
	AttemptsLimited: scenario.OnGuard, Throttled: scenario.OnGuard, missed: scenario.OnMiss,
}

// insteadOf is the edge, if there is one, on which somebody else is called when a call on an edge has failed. Those
// that do not take this failure are passed over.
func (t *topology) insteadOf(edge *edge, end EndKind) (k int32, ok bool) {
	for edge.orElse > 0 {
		k = edge.orElse - 1
		edge = &t.edges[k]
		if edge.on.Takes(failureNames[end]) {
			return k, true
		}
	}
	return 0, false
}
