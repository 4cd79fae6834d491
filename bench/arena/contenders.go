package main

import (
	"context"

	"github.com/abate-go/abate/bench/program"
)

// contender is one way to call the service.
type contender struct {
	name string
	what string // how it is configured and why, for the page and docs/arena.md

	// available returns an error that says why it cannot take part; nil when it always can.
	available func(ctx context.Context) error
	// serve is what the service speaks; HTTP when it is nil.
	serve listening
	// start puts it in front of the run's service, and returns who calls.
	start func(r *rig) (caller, error)
}

// allContenders are in the order of the table.
var allContenders = []contender{
	{name: "nothing", what: "one attempt of a second", start: startNothing},
	{name: "naive", what: "three retries at once after any failure, each of a second", start: startNaive},
	{name: "envoy", what: "its defaults: no retries, no ejection, 1,024 requests at once",
		available: haveEnvoy, start: startEnvoy(envoyPlain)},
	{name: "envoy-guarded",
		what:      "retries under a budget of 20 %, ejection, admission control, 20 requests at once and a short queue",
		available: haveEnvoy, start: startEnvoy(envoyGuarded)},
	{name: "envoy-adaptive", what: "adaptive concurrency in place of the fixed limit and of admission control",
		available: haveEnvoy, start: startEnvoy(envoyAdaptive)},
	{name: "haproxy", what: "20 requests at once, a queue of a second, retries of answered failures",
		available: installed("haproxy"), start: startHAProxy},
	{name: "nginx", what: "160 requests at once, one retry of answered failures",
		available: installed("nginx"), start: startNginx},
	{name: "grpc-go", what: "gRPC; retries under its retryThrottling", serve: serveGRPC, start: startGRPC},
	{name: "failsafe-go", what: "retries under a budget, adaptive limit with a queue, time limit", start: startFailsafe},
	{name: "abate library", what: "DefaultPolicy in the caller", start: startLibrary},
	{name: "abate sidecar", what: "DefaultPolicy in abate proxy", available: haveAbate, start: startSidecar},
	{name: "abate gateway", what: "the same with --gateway, which does not retry",
		available: haveAbate, start: startGateway},
	{name: "abate gate", what: "DefaultProtection in abate proxy, in front of the service; callers as nothing",
		available: haveAbate, start: startGate},
	{name: "abate guard+gate", what: "the library's callers, and the gate",
		available: haveAbate, start: startGuardAndGate},
}

// haveAbate is always so: a lab builds it, and fails if it cannot.
func haveAbate(context.Context) error { return nil }

func installed(name string) func(context.Context) error {
	return func(context.Context) error { return program.Installed(name) }
}
