// Package engine plays one run of a scenario: clients, services, links, faults, and on every edge the guards of
// production, in virtual time.
//
// The deciding code is not here. A call is an [abate.Call] of an [abate.Guard], made from the same policy file as in
// production; this package is one more driver of it, with an event queue instead of goroutines and timers. What is here
// is the world around the guards: who arrives when, who waits in which queue, how long work takes, and what breaks.
//
// # Reading order
//
// engine.go (the loop over events) → fleet.go (a request arrives) → task.go (what it needs, step by step) → call.go (a
// guarded call; asks the guard) → server.go (the attempt at the replica: queue, worker, work) → back to call.go (the
// answer). tree.go carries what layers tell each other of attempts that are left; faults.go breaks things; record.go is what comes out, and value.go the measures that expectations name.
//
// # Randomness
//
// Every entity (a fleet's arrivals, a replica's service times, a guard's jitter) draws from a stream of its own, named by
// the seed and the entity's name. Adding an entity, or changing a policy, moves no other stream: variants of a scenario
// meet the same arrivals.
package engine
