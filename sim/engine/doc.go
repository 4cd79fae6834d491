// Package engine makes one run of a scenario: clients, services, links, faults, and on every edge the guards of
// production, in virtual time.
//
// The deciding code is not here. A call is a [core.Call] of an [abate.Guard], made from the same policy file as in
// production; this package is one more driver of it, with an event queue instead of goroutines and timers. Where
// callers choose a replica, each has a [balance.Balancer]. internal/tidy holds that nothing here decides about a call.
// What is here is the world around the guards: who arrives when, who waits in which queue, how long work takes, and
// what breaks.
//
// # Rooms
//
// The parts of an [Engine], from the bottom up. Each knows only those before it, which rooms_test.go holds:
//
//   - The world: virtual time, the events to come, random streams (world.go), who calls whom (topology.go, load.go).
//   - Recording: what comes out (record.go, topicrecord.go, sessionrecord.go, classrecord.go, blank.go, histogram.go),
//     how things end and what that looks like to who asked (failure.go), the measures that expectations name (value.go;
//     lasting.go for collapse and recovery), and who writes it down (recorder.go, detail.go, trace.go, family.go).
//   - Traffic: requests, calls and attempts under way, and what layers say to each other of attempts that are left
//     (traffic.go, tree.go, in slabs and herds), and what chance does to them (chance.go).
//   - Servers: replicas with queues, workers and faults at work (replica.go, line.go), gates (gate.go) and the limits
//     that they share (fleetlimit.go), and how a request moves through them (server.go, handshake.go, ready.go), also
//     one that nobody waits for (given.go).
//   - Clients: guards (guards.go, failure.go) and what they share (sharing.go, finding.go), balancers (balance.go,
//     checks.go), connections (pool.go, dial.go) and sessions (session.go), who is called instead (else.go), what
//     caches hold (shelf.go, cache.go), calls (call.go, fetch.go), and what a request needs step by step (request.go).
//   - Messages: topics, partitions and their consumers (consumer.go, deliver.go).
//   - On top: fleets, where requests come from (fleet.go), faults and operators (faults.go), how
//     replicas come and go by themselves (lives.go, autoscale.go), and the loop (engine.go), which reads ahead
//     (ahead.go), and may be about one queue only (climb.go).
//
// A lower room reaches an upper one in two ways: by an event of the queue, or by one of three functions that [New]
// sets. servers.begin runs the steps of a request that has got a worker, calls.ended goes on with the request of a call
// that has ended, and requests.ended takes back what began at a fleet.
//
// # Randomness
//
// Every entity (a fleet's arrivals, a replica's service times, a guard's jitter) draws from a stream of its own, named
// by the seed and the entity's name. Adding an entity, or changing a policy, moves no other stream: variants of a
// scenario meet the same arrivals. With serviceTimeDrawn: request they also meet the same service times, errors and
// losses, request by request: see chance.go.
package engine
