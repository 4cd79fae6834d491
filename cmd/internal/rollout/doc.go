// Package rollout is a test and has no code of its own. It replaces every pod of a service, every gateway and a
// caller's sidecar while all of them are used, as Kubernetes does, with real processes of abate-proxy: the new ones are
// ready and listed, the old ones are told to end, and those who send them requests hear of that late. No request may
// fail, and no POST may be done twice. Clients repeat none, but for what HTTP/2 says nobody has seen.
//
//	clients ── balancer of connections ────────────────┬── gate ── service     a pod
//	clients ── balancer of connections ── gateway ─────┤
//	clients ── the caller's sidecar ───────────────────┘
//
// Clients speak HTTP/1.1 with connections that are kept, HTTP/2, and gRPC, of which calls and streams. The balancers
// are what a ClusterIP is: they see connections and no requests, and leave those alone that are there.
package rollout
