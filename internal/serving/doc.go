// Package serving is the receiving side whatever the protocol: what a request that arrives is asked, in which order,
// and what its end teaches. A Sender is who sent it and what may be believed of that (sender.go). An Exchange has
// the gate decide, and settles once (exchange.go). A Claim is what its idempotency key comes to (claim.go), and a
// Hold keeps that key while the service works (hold.go). A Problem is a refusal in HTTP and in gRPC (problem.go).
//
// What is decided, inbound.Arrival and an idempotency.Store decide. A driver reads fields, writes answers and keeps
// them.
package serving
