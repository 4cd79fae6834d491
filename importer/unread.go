package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// notRead are gateways and meshes whose objects no format reads, by the groups of these.
var notRead = []struct{ group, product string }{
	{"getambassador.io", "Emissary"}, {"gateway.solo.io", "Gloo"}, {"apisix.apache.org", "APISIX"},
	{"k8s.nginx.org", "NGINX Ingress Controller"}, {"appmesh.k8s.aws", "App Mesh"}, {"cilium.io", "Cilium"},
	{"policy.openservicemesh.io", "Open Service Mesh"}, {"zalando.org", "Skipper"}, {"flagger.app", "Flagger"},
	{"gateway.kgateway.dev", "kgateway"}, {"networking.gke.io", "GKE"},
}

// limits are keys that say how often a call is tried, or for how long.
var limits = regexp.MustCompile(`(?i)retr(y|ies)|time-?_?out`)

// unread is one kind of object of a product that no format reads.
type unread struct {
	at    topology.Position
	text  string
	count int
}

// skip notes an object that sets retries or limits of time for a gateway or a mesh that an audit does not read.
func (r *reading) skip(d source.Document) {
	group, _, _ := strings.Cut(d.Root.Get("apiVersion").Text(), "/")
	for _, p := range notRead {
		if p.group != group || !sets(d.Root.Get("spec"), 0) {
			continue
		}
		key := p.product + " " + d.Root.Get("kind").Text()
		if r.skipped == nil {
			r.skipped = map[string]*unread{}
		}
		if r.skipped[key] == nil {
			r.skipped[key] = &unread{at: d.Root.Get("kind").At(), text: d.Root.Get("kind").Text() + " of " + p.product}
			r.kinds = append(r.kinds, key)
		}
		r.skipped[key].count++
	}
}

// sets reports whether a key of a node, or of one below it, says how often a call is tried, or for how long.
func sets(n source.Node, depth int) bool {
	if depth > 20 {
		return false
	}
	for _, p := range n.Pairs() {
		if limits.MatchString(p.Key) || sets(p.Value, depth+1) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items(), func(item source.Node) bool { return sets(item, depth+1) })
}

// notReadYet remarks what was skipped, once for each kind.
func (r *reading) notReadYet() {
	for _, kind := range r.kinds {
		u := r.skipped[kind]
		how := "this one is"
		if u.count > 1 {
			how = fmt.Sprintf("these %d are", u.count)
		}
		r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: u.at, Subject: "kind " + kind,
			Text: "no " + u.text + " is read, and " + how + " about retries or limits of time",
			Fix: "say what they do under calls: in a file of its own, or audit what the product makes of them (a config_dump " +
				"of Envoy)"})
	}
}
