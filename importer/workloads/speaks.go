package workloads

import (
	"path"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// spoken returns what a Service of Kubernetes says of its ports: their appProtocol, their names as meshes read them
// ("grpc-orders"), or the annotations of Contour and Kuma. HTTP/2 without TLS (h2c) is taken for gRPC, which is why
// people write it. A Service speaks HTTP if all its ports do, or are for metrics; of a port that says
// both, gRPC counts.
func spoken(n source.Node) (v topology.Value[string]) {
	for _, p := range n.Get("metadata", "annotations").Pairs() {
		switch kind := path.Base(p.Key); {
		case strings.HasPrefix(p.Key, "projectcontour.io/upstream-protocol.") && strings.Contains(kind, ".h2"),
			strings.HasSuffix(p.Key, "kuma.io/protocol") && protocol(p.Value.Text()) == topology.SpeaksGRPC:
			return topology.Write(topology.SpeaksGRPC, p.Value.At())
		}
	}
	all := true
	for _, port := range n.Get("spec", "ports").Items() {
		said := port.Get("appProtocol|name")
		for _, key := range []string{"name", "targetPort"} { // the latter is the name of a port of the pods
			other := port.Get(key)
			if is := protocol(other.Text()); is == topology.SpeaksGRPC || is != "" && protocol(said.Text()) == "" {
				said = other
			}
		}
		switch protocol(said.Text()) {
		case topology.SpeaksGRPC:
			return topology.Write(topology.SpeaksGRPC, said.At())
		case topology.SpeaksHTTP:
			if v.IsZero() {
				v = topology.Write(topology.SpeaksHTTP, said.At())
			}
		default:
			all = all && strings.Contains(said.Text(), "metrics")
		}
	}
	if !all {
		return topology.Value[string]{}
	}
	return v
}

// protocol reads the name or the protocol of a port, behind the domain of who defines it: the word before a dash, or
// gRPC before or behind any.
func protocol(word string) string {
	words := strings.Split(path.Base(strings.ToLower(word)), "-")
	word = words[0]
	switch {
	case slices.Contains(words, "grpc"), slices.Contains(words, "grpcs"),
		slices.Contains([]string{"grpc", "grpcs", "h2c", "http2", "h2"}, word):
		return topology.SpeaksGRPC
	case word == "http" || word == "https":
		return topology.SpeaksHTTP
	}
	return ""
}

// ofPods returns what the pods of a workload say that their program speaks: to their sidecars of Dapr, by the name of a
// port for gRPC, or because they are asked in gRPC how they are.
func ofPods(n source.Node) topology.Value[string] {
	said := n.Get("spec", "template", "metadata", "annotations").Get("dapr.io/app-protocol")
	switch word := strings.ToLower(said.Text()); word {
	case "grpc", "grpcs", "h2c":
		return topology.Write(topology.SpeaksGRPC, said.At())
	case "http", "https":
		return topology.Write(topology.SpeaksHTTP, said.At())
	}
	for _, c := range containers(n) {
		for _, port := range c.Get("ports").Items() {
			if name := port.Get("name"); protocol(name.Text()) == topology.SpeaksGRPC {
				return topology.Write(topology.SpeaksGRPC, name.At())
			}
		}
		for _, probe := range []string{"readinessProbe", "livenessProbe", "startupProbe"} {
			if asked := c.Get(probe, "grpc"); asked.Exists() {
				return topology.Write(topology.SpeaksGRPC, asked.At())
			}
		}
	}
	return topology.Value[string]{}
}
