package proxy

import (
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/h1"
)

// marks say which fields a request may have of those that the proxy looks for. Most requests have few or none of them,
// and many others: then nobody has to look through all of them again. That a request lacks a mark is certain. That it
// has one is not, so that whoever looks for a field still compares its name.
type marks uint16

const (
	hasVia       marks = 1 << iota
	hasForwarded       // X-Forwarded-Host or X-Forwarded-Proto
	hasTrace           // about the trace that the request belongs to
	hasTree            // a name that it shares with others of its call tree
	hasAllowance
	hasNumber // which attempt it is
	hasRPC    // about one attempt of a gRPC call
	hasEnvoy  // replaced by the proxy's own
	hasType   // Content-Type
)

// markOf has the marks of a name, by its length and the lower five bits of its first letter: upper and lower case are
// the same there, and so are the dash and the underscore behind it, which some servers take for one.
var markOf = func() (by [32][32]marks) {
	for mark, names := range map[marks][]string{
		hasVia:       {"via"},
		hasForwarded: {"x-forwarded-host", "x-forwarded-proto"},
		hasTrace:     {"traceparent", "tracestate"},
		hasTree:      {"traceparent", "b3", "x-b3-traceid", "x-request-id"},
		hasAllowance: {hops.Allowance},
		hasNumber: {hops.AWSAttempt, hops.GoogleAttempt, hops.StainlessRetries, hops.EcosystemAttempt,
			hops.AttemptCount, hops.GRPCAttempts, hops.RestLiAttempts},
		hasRPC:   {"grpc-timeout", "grpc-previous-rpc-attempts"},
		hasEnvoy: {"x-envoy-attempt-count", "x-envoy-expected-rq-timeout-ms"},
		hasType:  {"content-type"},
	} {
		for _, name := range names {
			by[len(name)][name[0]&31] |= mark
		}
	}
	return by
}()

// marksOf looks at each field once.
func marksOf(fields []h1.Field) (all marks) {
	for i := range fields {
		if name := fields[i].Name; 0 < len(name) && len(name) < len(markOf) {
			all |= markOf[len(name)][name[0]&31]
		}
	}
	return all
}
