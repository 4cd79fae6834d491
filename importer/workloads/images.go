package workloads

import (
	"path"
	"regexp"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// products are the names of images and the products that they hold. A name that says little has the last part of its
// registry.
var products = map[string]string{"nginx": "nginx", "nginx-unprivileged": "nginx", "haproxy": "haproxy",
	"envoy": "envoy", "proxyv2": "istio", "pilot": "istio", "traefik": "traefik", "kong": "kong", "daprd": "dapr",
	"kuma-dp": "kuma", "ingress-nginx/controller": "ingress-nginx", "nginx-ingress-controller": "ingress-nginx",
	"kubernetes-ingress-controller": "kong-ingress-controller", "nginx-ingress": "nginx-ingress",
	"nginx-plus-ingress": "nginx-ingress"}

// tagged is a tag that begins with a version: "1.27", "v3.1.2-alpine".
var tagged = regexp.MustCompile(`^v?(\d+\.\d+(?:\.\d+)?)(?:[-+].*)?$`)

// Images returns the versions of products that the tags of images name. A product of which two versions run has none:
// which of them a file is for is not known.
func Images(docs []source.Document) map[string]topology.Value[string] {
	found, twice := map[string]topology.Value[string]{}, map[string]bool{}
	add := func(image source.Node) {
		product, version, ok := Tagged(image.Text())
		if !ok {
			return
		}
		if was, ok := found[product]; ok && was.V != version {
			twice[product] = true
		}
		found[product] = topology.Write(version, image.At())
	}
	for _, d := range docs {
		if isWorkload(d.Root) {
			for _, c := range containers(d.Root) {
				add(c.Get("image"))
			}
		}
		if isCompose(d.Root) {
			for _, p := range d.Root.Get("services").Pairs() {
				add(p.Value.Get("image"))
			}
		}
	}
	for product := range twice {
		delete(found, product)
	}
	return found
}

// Tagged returns the product that an image holds and the version that its tag names, and whether both are known.
func Tagged(image string) (product, version string, ok bool) {
	name, tag, _ := strings.Cut(path.Base(image), ":")
	tag, _, _ = strings.Cut(tag, "@")
	product, known := products[name]
	if !known {
		product, known = products[path.Join(path.Base(path.Dir(image)), name)]
	}
	m := tagged.FindStringSubmatch(tag)
	if !known || m == nil {
		return "", "", false
	}
	return product, m[1], true
}
