// Package drill plays a retry storm over real sockets on loopback, so that it can be seen rather than believed.
//
// A payment service with a finite number of workers and a bounded queue serves clients that send on schedule, whatever
// became of their earlier requests. In the middle its database stops answering. The same play is given twice: with
// clients that retry as so many do, and with the same clients behind an Abate guard.
//
// Nothing is scripted. The service does not know who calls it. The storm outlives its outage for one reason: offered
// load × attempts is more than the service can do, and it goes on working for callers that have left.
//
// The parts do not know each other: Database (what breaks), Service (capacity, queue), clients and their callers (load,
// retries), Recorder (what happened when), and Result with its Report and Plot (what people and machines read). Run puts
// them together.
package drill
