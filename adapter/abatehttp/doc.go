// Package abatehttp puts a guard between an http.Client and a server, and a gate in front of an http.Handler.
//
// # Calling
//
// A [Transport] is an http.RoundTripper: any client gets retries, hedges, circuit breaker, budget and bulkhead by one
// line, and keeps its own transport below it.
//
//	client := &http.Client{Transport: abatehttp.NewTransport(nil, guard)}
//
// What makes it more than a loop around RoundTrip:
//
//   - A request is repeated only if that does no harm: its method is in retryMethods (by default the safe ones, RFC
//     9110 §9.2.1), or it carries an Idempotency-Key; and its body can be sent again, through GetBody or from a bounded
//     buffer. All others are sent once, as a stream, and still count for breaker and bulkhead.
//   - 408, 429, 500, 502, 503, 504 and errors of the connection are retried, which retryOn and neverRetryOn change. A
//     429 or 503 is an overload, and its Retry-After (RFC 9110 §10.2.3), as seconds or as a date, is a lower bound for
//     the wait. Other 5xx are failures that nobody repeats. Other 4xx are good answers to bad questions. A server that
//     answers x-envoy-ratelimited, finagle-http-nonretryable-nack or x-should-retry: false is not asked again.
//   - Answers that nobody will see are read to their end, within limits, so that their connections are used again.
//   - The time limit of an attempt covers the reading of its body: its context ends when the body is closed or read to
//     its end. Close every body, as with any http.Client.
//   - Each attempt says its number (x-envoy-attempt-count) and how long its caller is going to wait
//     (x-envoy-expected-rq-timeout-ms), so that a server can refuse late attempts first and stop work that nobody waits
//     for.
//   - Each attempt says how many retries its call tree has left (abate-retry-allowance), and what the answer says about
//     those that were made behind it (abate-retries-made) counts as if they had been made here. See "Across hops".
//   - The retries that net/http makes by itself are counted, and drawn from the retry budget and the call tree.
//
// A request that succeeds at once pays three allocations, or four under a policy with a time limit, and starts no
// goroutine: about 550 ns on top of what a plain http.Client takes without a network, or 450 ns without a time limit.
// Most of that is memory: the copy of the request, which the contract of RoundTripper demands, and of its header.
//
// # Being called
//
// A [Handler] stands in front of any http.Handler and hands it what its gate admits:
//
//	gate, err := inbound.NewGate("checkout", inbound.DefaultProtection())
//	server := &http.Server{Handler: abatehttp.NewHandler(gate, mux)}
//
// The guards of what the service calls should know the gate: policy.Places = gate. A policy file sees to that itself.
//
// A request passes, in this order: authentication → deadline → rate limit → shed, with its queue → idempotency key →
// the handler. What is refused comes to none of the later ones: a request that is shed burns no key. Refusals are RFC
// 9457 problems with a stable code, Retry-After (1 to 30 s for load: those who are refused come back one after the
// other), X-Should-Retry: false if coming again is in vain, and Abate-Reason.
//
//   - The deadline is the least of the gate's timeout, the context's and those in X-Envoy-Expected-Rq-Timeout-Ms and
//     Grpc-Timeout, which anybody may send: they only shorten his own request. The handler's context ends with it. If
//     the handler returns then without a word, the answer is 504.
//   - X-Forwarded-For, the caller's header, Abate-Priority, Abate-Retry-Allowance and the attempt headers count only if
//     they come from one of the gate's trusted peers. From others they are left in the request, and not looked at.
//   - Priority and deadline travel on: a Transport that is given the handler's context sends them to the next service.
//   - While a rate limit is on, every answer says what is left: RateLimit, RateLimit-Policy and X-RateLimit-Limit,
//     -Remaining and -Reset.
//   - The gate sees what the handler answers: 503 and 429 are overload, other 5xx and panics are failures, the rest is
//     success, and what a client did not wait for says nothing. The handler's http.ResponseWriter can do what the one
//     below it can: flush, be taken over, read from files, send hints and trailers, and be set time limits by an
//     http.ResponseController.
//   - For the limits a request is done when its handler returns, or when that flushes: the time to the first byte is
//     what they learn, and an event stream that lasts an hour holds no place. Of a connection that is taken over they
//     learn nothing. The deadline holds for streams as well, so those that are to last need a gate without a timeout.
//
// # Across hops
//
// Three layers that try three times each send 27 requests to a service that is down. With a Handler and a Transport in
// each layer they send 3: the first call of the tree says how many retries there are for all (its maxRetries), and each
// layer what is left of them. docs/headers.md specifies the headers.
//
//   - A Handler reads Abate-Retry-Allowance from trusted peers, puts an [core.CallTree] into the request's context, and
//     says in Abate-Retries-Made what became of it. Calls that the handler makes with that context belong to the tree.
//   - An answer that fails after all was tried says so: Abate-Retries-Made ends in ;final, X-Should-Retry is false, and
//     Envoy, if it has sent its attempt number and is trusted, is told X-Envoy-Ratelimited: it does not retry that.
//   - When the head of an answer is written, what is left of the allowance goes back to the caller: calls that the
//     handler makes after that are sent once.
//   - Requests without Abate-Retry-Allowance and without an attempt number have no tree and cost nothing. With one they
//     cost three allocations.
//   - The retries of net/http itself are paid for, but when nothing is left the server may still see one more for each
//     kept-alive connection that dies with a request on it. Transport.NoHiddenRetries ends that.
//
// A service that wants only this, and no protection, takes a gate that lets everything pass but knows whom to believe:
//
//	gate, err := inbound.NewGate("checkout", inbound.Protection{TrustedPeers: []string{"10.0.0.0/8"}})
//	server := &http.Server{Handler: abatehttp.NewHandler(gate, mux)}
//
// # Idempotency keys
//
// A request with an Idempotency-Key, or the older X-Idempotency-Key, of a method for which the gate keeps keys, is done
// once. Repeats get the answer of that time with Idempotency-Replayed: true, 409 while it is running, and 422 if
// method, target or body differ. Keys belong to a principal: what Caller or the protection's caller says, if that is
// more than an address, else the credential that the request shows. Config.Scope of package idempotency has the rest.
// An address alone never counts.
//
//   - The request's body is read before it is done, and compared. One above maxBody is refused with 413.
//   - The answer is given out when the store has confirmed that it has it: as long as it fits in maxAnswer (4 MiB) it
//     is held back, head and all, unless the handler flushes. A longer one passes and is not stored; that the request
//     was done is, before the first byte goes out, and its repeats get 409. If the store does not confirm it until the
//     request's deadline, for a lease at most, the client gets 503 (idempotency-unrecorded) and the answer waits for
//     the store in the background: a repeat gets it. Flush and Write return an error then. [Drain] waits for what is
//     under way.
//   - Stored are status, body, trailers and the fields that the handler has set, without those that belong to one
//     connection or one time (Date), and without Set-Cookie: the cookies of a session are not left lying about.
//   - The client may leave: the handler's context does not end for that, only with the deadline, and what comes of it
//     is stored. [TryOf] tells the handler whether an earlier try has crashed, and gives it a token against its ghost.
//   - While the handler runs its lease is renewed. An answer of 5xx or 429, and a panic, let the key go. With
//     keepServerErrors one of 5xx is stored, and the repeats of a try that panicked get 409: it may have had its
//     effect.
package abatehttp
