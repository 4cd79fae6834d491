package istio

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// protocols of which a sidecar sees requests. Of others it passes connections on, and repeats nothing.
var protocols = []string{"HTTP", "HTTP2", "GRPC", "GRPC-WEB", ""}

// entry reads a ServiceEntry: services outside the mesh, or beside it, that sidecars know. What they repeat for those
// depends on the protocol of the ports.
func (r *reader) entry(e resource) {
	read, codes, opaque := 0, 0, 0
	var at topology.Position
	for _, p := range e.Spec.Get("ports").List() {
		switch protocol := strings.ToUpper(p.Get("protocol").Text()); {
		case !slices.Contains(protocols, protocol):
			opaque++
		case protocol == "GRPC" || protocol == "GRPC-WEB" || protocol == "HTTP2":
			codes, at = codes+1, p.Get("protocol").At()
			read++
		default:
			read++
		}
	}
	for _, h := range e.Spec.Get("hosts").List() {
		switch host := h.Text(); {
		case strings.Contains(host, "*"):
		case read == 0 && opaque > 0:
			r.opaque = append(r.opaque, resolve(host, e.Namespace))
		case codes > 0:
			r.form.Services = append(r.form.Services, topology.Service{Name: resolve(host, e.Namespace), At: h.At(),
				Speaks: topology.Write(topology.SpeaksGRPC, at)})
		}
	}
}
