package engine

import "github.com/abate-go/abate/sim/kernel"

// Where a scenario says serviceTimeDrawn: request, a request has random numbers of its own. Those of a fleet's request
// are made from its number; those of an attempt from the request that it is made for, the call, and the attempt's
// number. So the third attempt of a call meets the same luck in every variant, if there is one, whatever other requests
// do.

// chance is one thing that random numbers decide about a request. Each has a stream of its own.
type chance uint64

const (
	ofReplica  chance = iota + 1 // that an attempt is sent to
	ofWay                        // whether it is lost on its way there,
	ofReturn                     // or its answer on the way back
	ofWork                       // how long it takes
	ofSlowdown                   // what a fault adds
	ofError                      // whether it fails
	ofCall                       // whether a call is made for it
	ofKey                        // what a call asks a cache for
)

// chanceOfRoot returns what the random numbers of a fleet's request are made from.
func (tr *traffic) chanceOfRoot(fleet int, number uint64) int64 {
	s := kernel.NewStream(tr.world.seed, uint64(fleet)<<48|number)
	return int64(s.Uint64())
}

// chanceAt returns what the random numbers of an attempt's request are made from.
func (tr *traffic) chanceAt(a *attempt) int64 {
	c := tr.calls.at(a.call)
	of := tr.tasks.at(c.task)
	call := uint64(c.edge)<<48 | uint64(of.step)<<32 | uint64(c.which)<<24 | uint64(a.copy)<<16 | uint64(a.number)
	s := kernel.NewStream(uint64(of.drawn), call)
	return int64(s.Uint64())
}

// chanceOf returns the random numbers that decide one thing about a request: its own, or those of a shared stream. The
// next call may overwrite them.
func (tr *traffic) chanceOf(t *task, what chance, shared *kernel.Stream) *kernel.Stream {
	if !tr.world.own {
		return shared
	}
	tr.luck = kernel.NewStream(uint64(t.drawn), uint64(what))
	return &tr.luck
}

// chanceOfAttempt is chanceOf for an attempt, which may have no request at a replica.
func (tr *traffic) chanceOfAttempt(ai uint32, what chance, shared *kernel.Stream) *kernel.Stream {
	if !tr.world.own {
		return shared
	}
	tr.luck = kernel.NewStream(uint64(tr.chanceAt(tr.attempts.at(ai))), uint64(what))
	return &tr.luck
}
