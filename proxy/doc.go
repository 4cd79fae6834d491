// Package proxy is Abate's data plane: it takes HTTP requests of programs in any language and sends them to their services
// under the guards of a policy file. It runs beside one program (a sidecar, for its outgoing calls) or in front of several
// services (a gateway); and before services that the file protects, as the gate for what comes in. One process can be all of
// it.
//
// The path of a request, top to bottom: door.serve accepts its connection (door.go), clientConn.serve reads it (conn.go),
// Proxy.route finds its service (route.go), exchange.serve asks the guard (exchange.go), sendUnder sends it to an endpoint
// that the balancer picks (answer.go, upstream.go), and exchange.answer decides what the client gets (problem.go): the
// service's answer, the fallback (degrade.go) or an honest refusal.
//
// A request to a protected service goes the same way with one more step: exchange.arrive has the gate decide (ingress.go),
// in the order deadline, rate limit, shed, idempotency key (keyed.go), and the guard behind it lets everything pass. What
// such a request says about itself is read in one place (arrival.go), and counts only if a trusted peer says it. The
// addresses at which they come in follow the policy file (entrances.go), as do certificates and tokens (secrets.go) and the
// Redis that instances share (fleet.go).
//
// A place at a gate is held from the admission to the last byte of the answer. Not held is one by a body of known length up
// to MaxBufferedBody, which is read before; by a stream of events or a protocol that was switched to, from the head of the
// answer on; and by a client that has left, unless its request has an idempotency key: that is finished, within the lease of
// the key, so that the client's next try finds the answer.
//
// HTTP/1.1 is spoken without net/http: one goroutine per client does everything, on bytes (package h1), with connections
// to the services kept in pools of its own, so that no retry is hidden from the budget. HTTP/2 is net/http on both sides
// (http2.go). Both meet in exchange: the policy does not know which it was.
package proxy
