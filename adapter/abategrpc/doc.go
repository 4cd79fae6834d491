// Package abategrpc puts gRPC clients and servers under abate: a guard in front of every call that goes out, a gate in
// front of every call that comes in.
//
// # Calling
//
// [DialOptions] are all that a client needs:
//
//	conn, err := grpc.NewClient(target, append(abategrpc.DialOptions(guard), credentials)...)
//
// Unary calls and streams get retries, circuit breaker, budget and bulkhead, unary calls hedges too, and the retries of
// grpc-go itself are switched off. Methods may have guards of their own; [ForMethods] makes one that shares the budget
// of its server. A [Client] can do more than DialOptions asks, and [ServiceConfig] makes one of a service config.
//
//   - A call is repeated only if that does no harm: it has an idempotency key ([WithIdempotencyKey], or the metadata
//     x-idempotency-key or idempotency-key), its method is declared idempotent in its .proto file (idempotency_level,
//     if the generated code is linked in) or listed in retryMethods ("/shop.Payment/Get", "/shop.Payment/*"), or
//     retryOn names codes. All others are sent once, and still count for breaker and bulkhead. A call that has
//     certainly not left, because there was no connection, is repeated in any case.
//   - UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED are retried, which retryOn and neverRetryOn change.
//     UNKNOWN, INTERNAL, DATA_LOSS and a CANCELLED that the server sends are failures that nobody repeats. The other
//     codes are good answers to bad questions. What the client did itself, such as a message that is too large, is
//     nobody's failure.
//   - grpc-retry-pushback-ms (gRFC A6) and google.rpc.RetryInfo are lower bounds for the wait; a pushback that is
//     negative, garbage or there twice means never.
//   - An attempt says its number in grpc-previous-rpc-attempts, from the second on; its deadline is what is really
//     left.
//   - A stream is repeated until its first message has come back; see [Client.Stream].
//   - Errors have codes: see [Client].
//   - grpc-go repeats one thing by itself, which cannot be switched off: an RPC that a server has refused unread, when
//     its connection closes. It is one at most for each attempt, and no handler has seen the first.
//
// A unary call that succeeds at once pays one allocation, of 192 bytes, and starts no goroutine: about 350 ns with all
// parts of a policy. If the caller's context has outgoing metadata, that has to be looked through and written anew: 5
// allocations, and one more for each further name.
//
// # Being called
//
// [ServerOptions] put a server behind a gate:
//
//	gate, err := inbound.NewGate("payments", inbound.DefaultProtection())
//	server := grpc.NewServer(abategrpc.ServerOptions(gate)...)
//
// The guards of what the server calls should know the gate: policy.Places = gate. A policy file sees to that itself.
//
// A call passes, in this order: authentication → deadline → rate limit → shed, with its queue → idempotency key → the
// handler. Refusals have details (google.rpc.ErrorInfo with a stable reason, RetryInfo), say in grpc-retry-pushback-ms
// when to come again, or never, and cost less than a call. [Server] and [TryOf] say the rest.
//
//   - The deadline is the least of the gate's timeout, the context's and the one in x-envoy-expected-rq-timeout-ms.
//   - Attempt numbers, priority and the caller's metadata count only if they come from one of the gate's trusted peers.
//   - The gate sees the status: RESOURCE_EXHAUSTED is overload, UNAVAILABLE, DEADLINE_EXCEEDED, UNKNOWN, INTERNAL and
//     DATA_LOSS are failures, the rest is success.
//   - A stream holds its place until its first message goes out, or it ends.
//
// # Both: a chain of services
//
// The handler's context belongs to the call tree of its request ([core.CallTree]): guarded calls made under it, over
// gRPC or HTTP, share what extra attempts the first call of the tree allows. The client sends what is left in
// abate-retry-allowance; the server says in the trailer abate-retries-made what was used, and whether trying again is
// in vain. docs/headers.md specifies both. Deadlines and priorities travel with the context too.
package abategrpc
