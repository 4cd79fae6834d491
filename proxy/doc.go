// Package proxy is Abate's data plane: it takes HTTP requests of programs in any language and sends them to their services
// under the guards of a policy file. It runs beside one program (a sidecar, for its outgoing calls) or in front of several
// services (a gateway).
//
// The path of a request, top to bottom: clientConn.serve reads it (conn.go), Proxy.route finds its service (route.go),
// exchange.serve asks the guard (exchange.go), sendUnder sends it to an endpoint that the balancer picks (answer.go,
// upstream.go), and exchange.answer decides what the client gets (problem.go): the service's answer, the fallback
// (degrade.go) or an honest refusal.
//
// HTTP/1.1 is spoken without net/http: one goroutine per client does everything, on bytes (package h1), with connections
// to the services kept in pools of its own, so that no retry is hidden from the budget. HTTP/2 is net/http on both sides
// (http2.go). Both meet in exchange: the policy does not know which it was.
package proxy
