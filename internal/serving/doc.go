// Package serving drives what stands between a server and its handlers, whatever the protocol: it waits for what a
// gate decides about a request, and holds the idempotency key of one that is done once. What is decided,
// abate.Arrival and an idempotency.Store decide; what an answer looks like is the adapter's.
package serving
