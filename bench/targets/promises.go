package main

// promise is one line of the project's table of numbers to reach: our row takes
// at most limit times the fastest of the peers' rows, in the same run.
type promise struct {
	what  string
	ours  string
	peers []string
	// floor is a row without any library. When set, what is compared is the cost
	// added to it, in time and in allocations.
	floor string
	// byTurns reports whether our row measured both sides, alternating, in processor time: it reports cpu-ns/op,
	// peer-cpu-ns/op and cpu-ratio. peers then only names the other side.
	byTurns bool
	// limit is the largest ratio kept; 0 prints the ratio without judging it.
	limit float64
	// allocs is the largest number of allocations kept; anyNumber does not judge.
	allocs float64
}

const anyNumber = -1

var promises = []promise{
	{
		what:   "Do, full policy, success",
		limit:  0.10,
		allocs: 0,
		ours:   "Stack5/policies=four/impl=abate/mode=seq",
		peers:  []string{"Stack5/policies=five/impl=failsafe/mode=seq"},
	},
	{
		what:   "Do, full policy with timeouts, success",
		limit:  0.13,
		allocs: 1,
		ours:   "Stack5/policies=timeout/impl=abate/mode=seq",
		peers:  []string{"Stack5/policies=five/impl=failsafe/mode=seq"},
	},
	{
		what:   "  the same policies on both sides",
		allocs: anyNumber,
		ours:   "Stack5/policies=four/impl=abate/mode=seq",
		peers:  []string{"Stack5/policies=four/impl=failsafe/mode=seq"},
	},
	{
		what:   "  the same policies, with timeouts",
		allocs: anyNumber,
		ours:   "Stack5/policies=timeout/impl=abate/mode=seq",
		peers:  []string{"Stack5/policies=timeout/impl=failsafe/mode=seq"},
	},
	{
		what:   "  against libraries glued by hand",
		allocs: anyNumber,
		ours:   "Stack5/policies=four/impl=abate/mode=seq",
		peers:  []string{"Stack5/policies=four/impl=glued/mode=seq"},
	},
	{
		what:   "breaker alone, time window, closed",
		limit:  0.4,
		allocs: 0,
		ours:   "Breaker/window=time/impl=abate-policy/mode=seq",
		peers:  []string{"Breaker/window=time/impl=gobreaker/mode=seq"},
	},
	{
		what:   "  the same through Do",
		allocs: anyNumber,
		ours:   "Breaker/window=time/impl=abate/mode=seq",
		peers:  []string{"Breaker/window=time/impl=gobreaker/mode=seq"},
	},
	{
		what:   "  all processors against one",
		limit:  1,
		allocs: 0,
		ours:   "Breaker/window=time/impl=abate-policy/mode=par",
		peers:  []string{"Breaker/window=time/impl=abate-policy/mode=seq"},
	},
	{
		what:   "rejection by an open breaker",
		limit:  0.5,
		allocs: anyNumber,
		ours:   "BreakerOpen/impl=abate-policy/mode=seq",
		peers:  []string{"BreakerOpen/impl=gobreaker/mode=seq"},
	},
	{
		what:   "  the same through Do",
		allocs: anyNumber,
		ours:   "BreakerOpen/impl=abate/mode=seq",
		peers:  []string{"BreakerOpen/impl=gobreaker/mode=seq"},
	},
	{
		what: "retry, two failures then success", limit: 0.2, allocs: 0,
		ours: "RetryFail2/impl=abate/mode=seq",
		peers: []string{
			"RetryFail2/impl=failsafe/mode=seq",
			"RetryFail2/impl=backoff/mode=seq",
			"RetryFail2/impl=avast4/mode=seq",
			"RetryFail2/impl=avast5/mode=seq",
			"RetryFail2/impl=eapache/mode=seq",
		},
	},
	{
		what:   "hedge armed, not fired, fixed delay",
		limit:  0.3,
		allocs: 2,
		ours:   "HedgeNotFired/delay=fixed/impl=abate/mode=seq",
		peers:  []string{"HedgeNotFired/delay=fixed/impl=failsafe/mode=seq"},
	},
	{
		what:   "hedge armed, not fired, quantile",
		limit:  0.3,
		allocs: 2,
		ours:   "HedgeNotFired/delay=quantile/impl=abate/mode=seq",
		peers:  []string{"HedgeNotFired/delay=quantile/impl=failsafe/mode=seq"},
	},
	{
		what:   "shed admit and release",
		limit:  0.3,
		allocs: 0,
		ours:   "Shed/impl=abate-policy/mode=seq",
		peers:  []string{"Shed/impl=failsafe-policy/mode=seq"},
	},
	{
		what:   "  from all processors",
		limit:  0.3,
		allocs: 0,
		ours:   "Shed/impl=abate-policy/mode=par",
		peers:  []string{"Shed/impl=failsafe-policy/mode=par"},
	},
	{
		what:   "  the clock read twice",
		allocs: anyNumber,
		ours:   "Shed/impl=abate-policy-twoclocks/mode=seq",
		peers:  []string{"Shed/impl=failsafe-policy/mode=seq"},
	},
	{
		what:   "Redis limit, 64 goroutines, one hot key",
		limit:  0.01,
		allocs: 0,
		ours:   "RedisLimit/key=hot/impl=abate/mode=par",
		peers:  []string{"RedisLimit/key=hot/impl=redis_rate/mode=par"},
	},
	{
		what:   "  the same far over the limit",
		limit:  0.01,
		allocs: 0,
		ours:   "RedisLimit/key=over/impl=abate/mode=par",
		peers:  []string{"RedisLimit/key=over/impl=redis_rate/mode=par"},
	},
	{
		what:   "  a cold key",
		allocs: anyNumber,
		ours:   "RedisLimit/key=cold/impl=abate/mode=seq",
		peers:  []string{"RedisLimit/key=cold/impl=redis_rate/mode=seq"},
	},
	{
		what:   "rate limit, one bucket, from all processors",
		limit:  0.4,
		allocs: 0,
		ours:   "RateLimit/impl=abate-policy/mode=par",
		peers:  []string{"RateLimit/impl=xtime/mode=par"},
	},
	{
		what:   "  from one",
		allocs: anyNumber,
		ours:   "RateLimit/impl=abate-policy/mode=seq",
		peers:  []string{"RateLimit/impl=xtime/mode=seq"},
	},
	{
		what:   "  refused, from all processors",
		limit:  0.4,
		allocs: 0,
		ours:   "RateLimitRefused/impl=abate-policy/mode=par",
		peers:  []string{"RateLimitRefused/impl=xtime/mode=par"},
	},
	{
		what:   "  a million keys against one",
		limit:  1.5,
		allocs: 0,
		ours:   "RateLimitKeys/keys=1000000/impl=abate-policy/mode=par",
		peers:  []string{"RateLimitKeys/keys=1/impl=abate-policy/mode=par"},
	},
	{
		what:   "database/sql, a statement on an open connection",
		allocs: 2,
		ours:   "SQL/call=exec/impl=abate/mode=seq",
		peers:  []string{"SQL/call=exec/impl=plain/mode=seq"},
	},
	{
		what:   "  only what the driver is asked",
		allocs: 0,
		ours:   "SQLDriver/impl=abate/mode=seq",
		peers:  []string{"SQLDriver/impl=plain/mode=seq"},
	},
	{
		what:   "RoundTripper, added to a plain client",
		limit:  0.25,
		allocs: 6,
		ours:   "HTTPStub/impl=abate/mode=seq",
		peers:  []string{"HTTPStub/impl=failsafe-five/mode=seq"},
		floor:  "HTTPStub/impl=floor/mode=seq",
	},
	{
		what:   "gRPC unary interceptor, success",
		limit:  0.15,
		allocs: 1,
		ours:   "GRPCStub/impl=abate/mode=seq",
		peers:  []string{"GRPCStub/impl=failsafe-five/mode=seq"},
		floor:  "GRPCStub/impl=floor/mode=seq",
	},
	{
		what:   "  from all processors",
		limit:  0.15,
		allocs: 1,
		ours:   "GRPCStub/impl=abate/mode=par",
		peers:  []string{"GRPCStub/impl=failsafe-five/mode=par"},
		floor:  "GRPCStub/impl=floor/mode=par",
	},
	{
		what:   "  five policies on both sides",
		allocs: anyNumber,
		ours:   "GRPCStub/impl=abate-five/mode=seq",
		peers:  []string{"GRPCStub/impl=failsafe-five/mode=seq"},
		floor:  "GRPCStub/impl=floor/mode=seq",
	},
	{
		what:    "gRPC unary over loopback, processor time",
		byTurns: true,
		limit:   1.03,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=abate/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain/mode=seq"},
	},
	{
		what:    "  16 at once",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=abate/mode=par",
		peers:   []string{"GRPCLoopbackCPU/impl=plain/mode=par"},
	},
	{
		what:    "  against plain with a field of metadata",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=abate-field/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain-field/mode=seq"},
	},
	{
		what:    "  what that field costs plain",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=plain-field/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain/mode=seq"},
	},
	{
		what:    "  without sending the server what is left",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=abate-silent/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain/mode=seq"},
	},
	{
		what:    "  without a time limit on either side",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=abate-untimed/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain-untimed/mode=seq"},
	},
	{
		what:    "  failsafe-go in our place",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=failsafe-five/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain/mode=seq"},
	},
	{
		what:    "  plain in our place: the noise",
		byTurns: true,
		allocs:  anyNumber,
		ours:    "GRPCLoopbackCPU/impl=plain/mode=seq",
		peers:   []string{"GRPCLoopbackCPU/impl=plain/mode=seq"},
	},
}
