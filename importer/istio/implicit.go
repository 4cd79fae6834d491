package istio

import (
	"slices"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// implicit adds what every sidecar of the mesh does although nobody wrote it: 2 retries of calls that have no route,
// and, since 1.24, 2 retries towards its own application of requests that were never sent.
func (r *reader) implicit(docs []source.Document) {
	docs = slices.DeleteFunc(slices.Clone(docs), func(d source.Document) bool { // which only say where proxies are
		return isAmbient(d.Root) || waypoint(d.Root)
	})
	if len(docs) == 0 || len(r.patterns()) == 0 {
		return
	}
	at := docs[0].Root.At()
	if r.mesh.retries.Written() {
		at = r.mesh.retries.At()
	}
	out := r.layer(topology.SidecarOut, "every sidecar, towards others", at)
	out.Overall = topology.DefaultOf(time.Duration(0), r.who, at)
	r.limits(&out, resource{}, "", "")
	r.retries(&out, source.Node{}, true)
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{"*"}, Callers: r.patterns(),
		Except: r.opaque, Layer: out})
	if source.Before(r.version.V, "1.24") {
		return
	}
	in := r.layer(topology.SidecarIn, "every sidecar, towards its application", docs[0].Root.At())
	in.Choice = ""
	in.Overall = topology.DefaultOf(time.Duration(0), r.who, in.At)
	in.Backoff = r.backoff(value[time.Duration]{}, in.At)
	in.Budget.Concurrent = topology.DefaultOf(topology.Unbounded, r.who, in.At)
	if r.mesh.inbound.Written() {
		r.block(&in, r.mesh.inbound, false)
		inherit(&in, "meshConfig.defaultInboundHttpRetryPolicy")
	} else {
		in.Repeats, _ = envoywords.Policy{Product: "Istio", Words: []source.Part{{Text: "reset-before-request", At: in.At}},
			Tries: topology.DefaultOf(1+implicitRetries, r.who, in.At)}.Repeats()
	}
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: r.patterns(), Layer: in})
}
