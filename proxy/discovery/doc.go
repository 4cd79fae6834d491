// Package discovery finds the addresses of a service while the proxy runs: by DNS, in a file, or in Kubernetes.
//
// A [Watcher] looks for one service and keeps the last good list. What is no answer changes nothing: a name server
// that is away or says nothing, a file that is half written or empty, an API server that does not answer. [Status]
// says so in one sentence. Only Kubernetes can say that there is no endpoint: its answer is what the cluster wants,
// while a DNS server that is restarted and a file that is being replaced look empty too.
//
// The parts, bottom to top:
//
//   - config: what is looked for, and what is found; pace: when to look again, a decision without clock or I/O;
//   - parse (files), slices (EndpointSlices): bytes in, endpoints out, no I/O;
//   - dns with ttl, file, kubernetes with cluster: the sources, each with I/O of its own kind;
//   - watch: the Watcher, one goroutine that runs a source.
//
// DNS is asked by Go's own resolver, which knows resolv.conf, search lists, hosts files, and TCP for long answers. It
// hides TTLs; so the connections that it makes are read along (ttl.go). Kubernetes is asked over plain HTTPS, by a list
// and a watch, under a guard of ours: client-go would double the binary of a sidecar.
package discovery
