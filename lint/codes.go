package lint

import (
	"slices"

	"github.com/abate-go/abate/topology"
)

// OnlyHTTP is the assumption that Taken reports.
const OnlyHTTP = "services of which no file says that they speak gRPC do not"

// Taken reports whether a joined form has a layer that repeats a code of gRPC in front of a service that is only taken
// to speak HTTP: what it would repeat if that were wrong is in no number.
func Taken(f topology.Form) bool {
	taken := map[string]bool{}
	for i := range f.Services {
		taken[f.Services[i].Name] = takenForHTTP(&f.Services[i])
	}
	return slices.ContainsFunc(f.Calls, func(c topology.Call) bool { return taken[c.To] && repeatsCodes(&c) })
}

// taken reports the same of a path.
func (r *run) taken(hops []Hop) bool {
	return slices.ContainsFunc(hops, func(h Hop) bool {
		i, ok := r.g.index[h.Call.To]
		return ok && takenForHTTP(&r.g.services[i]) && repeatsCodes(h.Call)
	})
}

func takenForHTTP(s *topology.Service) bool { return s.Speaks.Origin == topology.Assumed && !s.Codes() }

func repeatsCodes(c *topology.Call) bool {
	code := func(rep topology.Repeat) bool {
		return rep.Tries.Or(topology.Unbounded) > 1 && slices.ContainsFunc(rep.On, topology.Outcome.GRPC)
	}
	return slices.ContainsFunc(c.Layers, func(l topology.Layer) bool { return slices.ContainsFunc(l.Repeats, code) })
}
