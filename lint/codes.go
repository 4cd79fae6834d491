package lint

import (
	"slices"

	"github.com/abate-go/abate/topology"
)

// taken reports whether a path has a layer that repeats a code of gRPC in front of a service that is only taken to
// speak HTTP: what it would repeat if that were wrong is not in the number.
func (r *run) taken(hops []Hop) bool {
	code := func(rep topology.Repeat) bool { return slices.ContainsFunc(rep.On, topology.Outcome.GRPC) }
	for _, h := range hops {
		i, ok := r.g.index[h.Call.To]
		if !ok || r.g.services[i].Speaks.Origin != topology.Assumed || r.g.services[i].Codes() {
			continue
		}
		for k := range h.Call.Layers {
			if slices.ContainsFunc(h.Call.Layers[k].Repeats, code) {
				return true
			}
		}
	}
	return false
}
