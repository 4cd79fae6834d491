// Package hops reads and writes what one service reports to the next about a call, and what it gets back: the headers
// of HTTP and the metadata of gRPC in which attempts are numbered, time limits and allowances for retries go down, and
// "do not retry, I already did" comes up. docs/headers.md specifies them for other languages, with test vectors in
// docs/headers.json.
//
// Everything here is a function of its arguments: text in, values out. The adapters and the proxy share it, so that a
// chain may change between HTTP and gRPC at any hop.
package hops

// The headers of our own. gRPC metadata has the same names in lower case; Made comes in the trailers there.
const (
	// Allowance is on requests: how many extra attempts the call tree has left, and whose they are.
	Allowance = "Abate-Retry-Allowance"
	// Made is on answers: how many extra attempts were made, and whether another would be one too many.
	Made = "Abate-Retries-Made"
	// Priority is on requests: how much the work matters, one of the words of package shed.
	Priority = "Abate-Priority"
)

// Headers that others have made, which we read and write too.
const (
	AttemptCount     = "X-Envoy-Attempt-Count"          // from 1
	TimeLeft         = "X-Envoy-Expected-Rq-Timeout-Ms" // milliseconds
	Ratelimited      = "X-Envoy-Ratelimited"            // Envoy does not repeat what is answered with it
	RestLiAttempts   = "X-Number-Of-Retry-Attempts"     // from 0
	GRPCTimeout      = "Grpc-Timeout"
	GRPCAttempts     = "Grpc-Previous-Rpc-Attempts" // from 1, absent at first
	maxOwner         = 128
	mostMilliseconds = 1 << 31
)
