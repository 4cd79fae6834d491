// Package abateotel shows what guards do as OpenTelemetry spans and metrics, by the semantic conventions where they
// have a name for it. It needs the API of OpenTelemetry only; what becomes of the data is up to the SDK that the
// program sets up.
//
//	telemetry, err := abateotel.New(abateotel.Config{}) // the global providers
//	set, err := policyfile.Load("policy.yaml", telemetry.Adjust)
//	telemetry.Add(set.Guard("payment-service"))
//	guarded := &abatehttp.Transport{Base: telemetry.Attempts(nil), Guard: set.Guard("payment-service")}
//	client := &http.Client{Transport: telemetry.Calls(guarded)}
//
// # Spans
//
// A request then is one span, "call payment-service", with a child for each attempt that was really sent:
//
//	call payment-service                      abate.attempts=3 abate.outcome=success
//	├─ GET                                    error.type=503
//	│  · abate.retry.scheduled                abate.retry.delay=0.14
//	├─ GET  http.request.resend_count=1       error.type=timeout
//	│  · abate.retry.scheduled                abate.retry.delay=0.31
//	└─ GET  http.request.resend_count=2       http.response.status_code=200
//
// The marks are events of the call's span. They say what the policy decided, and when:
//
//	abate.call.queued       the bulkhead is full, and the call waits
//	abate.retry.scheduled   another attempt follows after abate.retry.delay seconds; error.type says what was wrong
//	                        with the last
//	abate.hedge.sent        a second copy of a slow attempt is on its way
//	abate.hedge.denied      it was due, and abate.reason said no
//	abate.call.stopped      the call gets no (further) attempt, for abate.reason: circuit_open,
//	                        budget_exhausted, deadline, ...
//
// Each attempt carries a traceparent of its own, so that the server's span hangs below the attempt that caused it.
// Spans last until the answer's body is closed or read to its end. What was cancelled, because its caller left or
// another copy was quicker, has error.type canceled and is no error. A call whose retry succeeded is none either.
//
// Passwords in URLs and the values of query parameters that are known to be signatures are not written down.
//
// [Do] and [DoHedged] do the same for functions. Guarded calls of other adapters (gRPC, SQL, Redis, Kafka) write their
// events into the span that is theirs already, if their context comes from [Decisions]: their own instrumentation makes
// the attempts' spans.
//
// # Metrics
//
// All have the attribute abate.guard, the guard's name. Every other attribute has a closed set of values, so that the
// number of series is about forty for each guard.
//
//	abate.client.call.duration           s            how long calls took until they had their answer, waits included;
//	                                                  abate.outcome, and error.type of those that failed
//	abate.client.active_calls            {call}       calls that have begun and not ended
//	abate.client.active_attempts         {attempt}    attempts that are with the service now
//	abate.client.attempts                {attempt}    attempts by abate.outcome: the service's own health
//	abate.client.retries                 {attempt}    attempts sent after a failed one
//	abate.client.retry.delay             s            how long calls wait before a retry
//	abate.client.hedges                  {attempt}    second copies sent
//	abate.client.hedge.denials           {attempt}    second copies due and not sent, by abate.reason
//	abate.client.hidden_retries          {attempt}    attempts that something below the guard repeated by itself
//	abate.client.fallbacks               {call}       callers that got the fallback
//	abate.policy.changes                 {change}     policies put in force
//	abate.circuit_breaker.transitions    {transition} changes of state, by the new abate.circuit_breaker.state
//	abate.circuit_breaker.state          1            1 for the state that the breaker is in, 0 for the others
//	abate.retry_budget.balance           {attempt}    retries and hedges that could be sent now
//	abate.bulkhead.running               {call}       calls that hold a permit
//	abate.bulkhead.queued                {call}       calls that wait for one
//	abate.bulkhead.limit                 {call}       permits, as the policy says
//	abate.pacing.wait                    s            how long an attempt that asked now would wait for its token
//
// The last six are read when metrics are collected, from guards that were added; what a policy has switched off is left
// out. There is no http.client.request.duration here: an instrumentation of HTTP has it.
//
// # What it costs
//
// Without the network and without what exporters take, on one core of a machine that was busy with other things:
//
//	                                        no-op         not sampled    recorded
//	an event, for the metrics               5 to 50 ns                   10 to 140 ns, no allocation
//	a call that succeeds, with its metrics  75 ns more                   250 ns more, no allocation
//	an attempt's span                       1.3 µs, 10    2.3 µs, 17     4 µs, 20 allocations
//	a call's span over HTTP                 0.9 µs, 6     1.6 µs, 8      2.4 µs, 13 allocations
//	Do, with both spans                     0.3 µs, 2     0.4 µs, 3      3.6 µs, 21 allocations
//
// A call that is recorded has an observer of its own for its decisions: one of those allocations, of 1.5 KB. Others do
// not pay for it.
package abateotel
