// Package istio reads Istio: VirtualService, DestinationRule and Gateway, the mesh's configuration (IstioOperator,
// Istio, the ConfigMap of a mesh), and what every sidecar repeats although nobody wrote it.
//
// A policy for the mesh belongs to the sidecar of whoever calls; one for a gateway is a layer of the calls that this
// gateway makes. Defaults depend on the version, which an IstioOperator may say; see source.Assume. They are held
// against what Istio's own translation gave and what Envoy did with it.
package istio

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
)

const latest = "1.31"

// Recognise reports whether a document is a resource of Istio, or the configuration of a mesh.
func Recognise(d source.Document) bool {
	version := d.Root.Get("apiVersion").Text()
	if strings.HasPrefix(version, "networking.istio.io/") {
		return true
	}
	return meshOf(d).Exists() || isInstallation(d.Root) || isAmbient(d.Root) || waypoint(d.Root)
}

// isAmbient reports whether a document is a namespace whose pods have no sidecars.
func isAmbient(root source.Node) bool {
	return root.Get("kind").Text() == "Namespace" &&
		root.Get("metadata", "labels", "istio.io/dataplane-mode").Text() == "ambient"
}

// waypoint reports whether requests for what a document names pass a waypoint.
func waypoint(root source.Node) bool {
	name := root.Get("metadata", "labels", "istio.io/use-waypoint").Text()
	return name != "" && name != "none"
}

func isInstallation(root source.Node) bool {
	version, kind := root.Get("apiVersion").Text(), root.Get("kind").Text()
	return kind == "IstioOperator" && strings.HasPrefix(version, "install.istio.io/") ||
		kind == "Istio" && strings.HasPrefix(version, "sailoperator.io/")
}

// meshOf returns the MeshConfig of a document, if it has one.
func meshOf(d source.Document) source.Node {
	root := d.Root
	if isInstallation(root) {
		for _, at := range []source.Node{root.Get("spec", "meshConfig"), root.Get("spec", "values", "meshConfig")} {
			if at.Exists() {
				return at
			}
		}
		return source.Node{}
	}
	if text := root.Get("data", "mesh"); root.Get("kind").Text() == "ConfigMap" && text.Exists() {
		if inner, _ := source.Embedded("mesh", text).Parsed(); len(inner) > 0 && isMesh(inner[0].Root) {
			return inner[0].Root
		}
	}
	if mesh := root.Get("meshConfig"); d.Name == "values" && isMesh(mesh) { // of Istio's chart
		return mesh
	}
	if d.Name == "mesh" && isMesh(root) {
		return root
	}
	return source.Node{}
}

func isMesh(n source.Node) bool {
	for _, key := range []string{"rootNamespace", "defaultConfig", "trustDomain", "defaultHttpRetryPolicy",
		"enableTracing",
		"defaultProviders", "accessLogFile", "outboundTrafficPolicy"} {
		if n.Get(key).Written() {
			return true
		}
	}
	return false
}
