// Package policyfile turns one YAML file into checked policies and protections, and the guards and gates that follow
// them.
//
// A retry policy is changed during an outage, by someone in a hurry, on every machine at once. So the file is read
// strictly: a key that nobody knows is an error and not ignored, every mistake is reported and not only the first, and
// each has its file:line:col and says what would be right. Nothing of a file with a mistake is put in force: Load
// fails, and Reload and Watch keep the last good policy.
//
//	defaults: {maxRetries: 3, initialDelay: 100ms}
//	services:
//	  payment-service: {maxRetries: 2}
//	gatewayRetries: false
//
// What arrives is protected under protect, each entry for itself on top of inbound.DefaultProtection; what instances
// share (fleet: true) goes through redis:
//
//	protect:
//	  orders: {listen: "0.0.0.0:8080", upstreams: ["http://127.0.0.1:9000"], rateLimit: {limit: 100/s, fleet: true}}
//	redis: {addresses: ["redis:6379"]}
//
// A file needs one of defaults, services, gatewayRetries and protect; one with protect alone leaves calls to the
// defaults.
//
// What opens connections is guarded as a service, too, with preset: connections. It starts from abate.ConnectionPolicy,
// and defaults, which is about requests, leaves it alone:
//
//	services:
//	  orders-db: {preset: connections}
//
// Every other policy starts from abate.DefaultPolicy; defaults changes it for all services, a service for itself. A key
// left out is inherited, key by key inside sections too; a list replaces the inherited one. The file may be wrapped in
// a Kubernetes ConfigMap, and positions then point into the outer file. Anchors, aliases and merge keys (<<) work; keys
// of the top level that begin with x- are not looked at, so that anchors have a place to stand. The keys and their
// limits are the fields of Policy, Protection and Redis, and their tags; Schema is the same as a JSON Schema. Policy
// and Protection hold what a guard or a gate is made of, abate.Policy and inbound.Protection, and beside it what nobody
// but the reader of a file acts on: the proxy, or a consumer of messages.
//
// Cost: a file of 10 services takes well under a millisecond to check. Set.Guard, Set.Match and Set.Entrance are map
// look-ups without a lock for services that the file lists, and allocate nothing.
package policyfile
