// Package proxy is Abate's data plane: it takes HTTP requests of programs in any language and sends them to their
// services under the guards of a policy file. It runs beside one program (a sidecar, for its outgoing calls) or in
// front of several services (a gateway); and before services that the file protects, as the gate for what comes in.
// One process can be all of it.
//
// The package has rooms, of which the lower know nothing of the upper (internal/tidy holds that). From the bottom up:
//
//   - the wire: bytes, fields, the clock (buffer.go, fields.go); and services, with their endpoints (fleet.go), where
//     these are found (finding.go, package discovery), and the connections to them (route.go, post.go, transport.go,
//     pool.go, http2_pool.go, package spread). The plane (plane.go) joins both:
//     it is what all requests share.
//   - the request (request.go): what a client asks for, and where it goes; its client (client.go) is an interface. At
//     the gate of a protected service an arrival (arrival.go) is what is known of its sender, and a keyed (keyed.go)
//     the idempotency key that it holds. Its content (content.go, upload.go, http2_feed.go) is sent to one attempt
//     after the other.
//   - the attempt (answer.go, attempt.go; upstream.go over HTTP/1.1, http2_upstream.go over HTTP/2), whose verdict of
//     gRPC is in verdict.go; and the guarded call (call.go, judge.go, hedge.go), which makes attempts as its guard
//     says.
//   - the reply (reply.go, problem.go, refusal.go, grpc_answer.go): what the client gets, with what the proxy says by
//     itself; the transfer (transfer.go, keyedpass.go, degrade.go) passes the answer of a service on.
//   - the exchange (exchange.go) has all of these for one request: outcome.go decides what the client gets, ingress.go
//     asks the gate, claim.go the store of idempotency keys.
//   - clients (conn.go over HTTP/1.1, http2.go over HTTP/2), the lobby where they come in and rest (door.go, lobby.go,
//     clientslots.go, roost_linux.go), administration (entrances.go, admin.go), and the Proxy.
//
// The path of a request, top to bottom: door.serve accepts its connection, clientConn.serve reads it, and
// exchange.serve finds its service by the path that it is also sent with (path.go). guardedCall.begin asks the guard,
// answer.send sends the request to an endpoint that the balancer picks, and exchange.answer decides what the client
// gets: the service's answer, the fallback or an honest refusal.
//
// A request to a protected service goes the same way with one more step: exchange.arrive has the gate decide
// (ingress.go), in the order deadline, rate limit, shed, idempotency key (keyed.go), and the guard behind it lets
// everything pass. What such a request says about itself is read in one place (arrival.go), and counts only if a
// trusted peer says it. The addresses at which they come in follow the policy file (entrances.go), as do certificates
// and tokens (secrets.go) and the Redis that instances share (instances.go, and package sharing).
//
// What is not a request to a service of the file is let through only if the file says so (section outside), and is
// counted: CONNECT (connect.go), requests to other hosts (outside.go), and connections that a firewall redirects here
// (redirected.go). Every address is looked at when it is dialled (screen.go). A stream of HTTP/2 can be such a tunnel
// too (streamconn.go), and begins a WebSocket by an extended CONNECT (websocket.go).
//
// What layers of a chain tell each other about attempts is in calltree.go for calls that go out and in
// calltreeingress.go for requests that come in. The proxy stands on both sides of its program, and a
// calltree.Table joins them: a call belongs to the request it is made for if the program passes on
// Abate-Retry-Allowance or the name of its trace (package calltree). Of a program that passes on neither nothing is
// known, and its calls are the first of their trees.
//
// Traces are in package tracing. A request joins its trace once it has a service (traced.go); each of its attempts has
// a span that ends when the attempt is released (attemptspan.go), and the request one that ends with it (callspan.go).
//
// A slot at a gate is held from the admission to the last byte of the answer, and lent while the client is waited for
// (lendingconn.go): for more of its request, or for room in its socket or window. Not held is one by a body of known
// length up to MaxBufferedBody, which is read before; by a stream of events or a protocol that was switched to, from
// the head of the answer on; and by a client that has left, unless its request has an idempotency key: that is
// finished, within the lease of the key, so that the client's next try finds the answer.
//
// HTTP/1.1 is spoken without net/http: one goroutine per client does everything, on bytes (package h1), with
// connections to the services kept in pools of its own, so that no retry is hidden from the budget. So is HTTP/2, for
// the same reason (package h2): a client's stream is the client of its exchange (http2.go), an attempt is a stream on
// one of a few connections to its endpoint (http2_upstream.go, http2_pool.go), and a request whose content is still
// coming has it fed to one attempt after the other (http2_feed.go). Both meet in exchange: the policy does not know
// which it was.
//
// gRPC (verdict.go) is HTTP/2 whose verdict stands at the end, in grpc-status. An attempt that ended without a message
// is judged like an answer of HTTP, and may be repeated. With its first message the answer goes on to the client: a
// success, as the head of an answer of HTTP is, of which the guard hears at the end how it was. The head is held back
// until then, for headWait at most, while the call could still be repeated. What a stream sends is kept that long too,
// up to MaxBufferedBody. attemptTimeout bounds the wait for the head; the policy's timeout, the gate's and the client's
// own deadline bound all, streams too, and the service hears in grpc-timeout what is left. What the proxy says by
// itself it says in gRPC (grpc_answer.go). A route whose path is a method is that method's policy. At a gate, a call
// holds its slot to its end if that follows the first message at once; a stream gives it back soon after its first
// message.
package proxy
