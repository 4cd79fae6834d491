package istio

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// mesh is the configuration of a whole mesh, as far as it is about retries.
type mesh struct {
	version value[string]
	several bool        // installations of several versions: which of them the other files are for is not known
	retries source.Node // defaultHttpRetryPolicy
	inbound source.Node // defaultInboundHttpRetryPolicy
	connect source.Node
	// repeats503 is set where the environment of istiod brings back 503 into the default of Istio 1.24 and later.
	repeats503 source.Node
}

// read takes in an installation or a mesh configuration. What another document said stays.
func (m *mesh) read(root, config source.Node) {
	keep := func(into *source.Node, n source.Node) {
		if !into.Written() {
			*into = n
		}
	}
	keep(&m.retries, config.Get("defaultHttpRetryPolicy"))
	keep(&m.inbound, config.Get("defaultInboundHttpRetryPolicy"))
	keep(&m.connect, config.Get("connectTimeout"))
	if !isInstallation(root) {
		return
	}
	spec := root.Get("spec")
	for _, tag := range []source.Node{spec.Get("tag"), spec.Get("version"), spec.Get("values", "global", "tag"),
		spec.Get("revision")} {
		v := versionOf(tag.Text())
		if v == "" {
			continue
		}
		if m.version.IsZero() {
			m.version = topology.Write(v, tag.At())
		}
		m.several = m.several || m.version.V != v
		break
	}
	const variable = "EXCLUDE_UNSAFE_503_FROM_DEFAULT_RETRY"
	for _, pilot := range []source.Node{spec.Get("values", "pilot", "env", variable), spec.Get("values",
		"pilot").Get("env." + variable)} {
		if pilot.Text() == "false" {
			keep(&m.repeats503, pilot)
		}
	}
	for _, env := range spec.Get("components", "pilot", "k8s", "env").Items() {
		if env.Get("name").Text() == variable && env.Get("value").Text() == "false" {
			keep(&m.repeats503, env)
		}
	}
}

// versionOf returns the version in a tag (1.20.3-distroless), a name of the operator (v1.24.1) or a revision (1-20-3).
func versionOf(tag string) string {
	tag = strings.TrimPrefix(tag, "v")
	tag, _, _ = strings.Cut(strings.Replace(strings.Replace(tag, "-", ".", 1), "-", ".", 1), "-")
	parts := strings.Split(tag, ".")
	if len(parts) < 2 || !digits(parts[0]) || !digits(parts[1]) {
		return ""
	}
	return parts[0] + "." + parts[1]
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
