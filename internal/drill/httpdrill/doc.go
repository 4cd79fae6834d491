// Package httpdrill runs a scenario of the simulator over HTTP: its variants are the acts of a drill.
//
// A service with a finite number of workers and a bounded queue serves clients that send on schedule, whatever became
// of their earlier requests. In the middle something breaks, for instance the database behind it. The acts are the same
// but for the policies: clients that retry as so many do, and the same clients under another policy. All of them call
// through an Abate guard.
//
// Nothing is scripted. The service does not know who calls it. The storm outlives its trouble for one reason: offered
// load × attempts is more than the service can do, and it goes on working for callers that have left.
//
// # Reading order
//
// config.go (what is run) → supported.go (what can be) → drill.go (Run, and what an act does) → server.go and faults.go
// (capacity, queue, what breaks) → gate.go (what may stand in front of it) → clients.go and callers.go (load, guards) →
// recorder.go (what happened when) → measure.go and result.go with report.go and verdict.go (what people and machines
// read) → compare.go.
//
// Everything is measured by the definitions of the simulator: recorder.go fills the record of one of its runs, and
// package engine reads it. So a drill can be set beside the simulation of the same scenario, number by number.
package httpdrill
