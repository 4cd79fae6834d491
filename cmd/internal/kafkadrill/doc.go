// Package kafkadrill runs an outage for Kafka consumers, over real sockets on loopback, so that it can be seen rather
// than believed.
//
// A service with a finite number of workers answers over HTTP. Messages are written to two topics, the same at the same
// moments, and two consumers, which are package abatekafka's, call the service for each: one with retry topics and
// nothing else, one with the same retry topics under abate's default policy. Each act has a service and topics of its
// own, so both run at once. For some seconds the services fail at once; then all is well again.
//
// Nothing is scripted. What retry topics do by themselves is arithmetic: whatever fails for longer than the sum of
// their delays is a dead letter, and what comes back, live messages and those of every retry topic with their attempts,
// is more than the service can do.
//
// # Reading order
//
// config.go (what is run), policy.go (under which policies) → drill.go (Run), brokers.go → act.go (a consumer and its
// load, for the engine of package drill) → service.go (capacity, what breaks) → recorder.go (what happened when) →
// result.go and report.go (what people and machines read).
package kafkadrill
