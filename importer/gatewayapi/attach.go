package gatewayapi

import "github.com/abate-go/abate/importer/source"

// traffic is the policies of Envoy Gateway for one rule: the more special first. A part comes from the first, unless
// that is merged with what is less special.
type traffic []source.Resource

// get returns a part of the policies.
func (t traffic) get(key string) source.Node {
	for _, p := range t {
		if n := p.Spec.Get(key); n.Written() {
			return n
		}
		if !p.Spec.Get("mergeType").Exists() {
			break
		}
	}
	return source.Node{}
}

// trafficOf returns the policies for a rule of a route: one for the rule by its name, the route, the listener, the
// gateway.
func (r *reader) trafficOf(o source.Resource, p parent, rule source.Node) traffic {
	var t traffic
	for _, want := range []struct {
		of      source.Resource
		section string
	}{{o, rule.Get("name").Text()}, {o, ""}, {p.gateway, p.section}, {p.gateway, ""}} {
		for _, policy := range r.policies {
			if targets(policy, want.of, want.section) {
				t = append(t, policy)
				break
			}
		}
	}
	return t
}

// targets reports whether a policy is for an object, or for one section of it.
func targets(policy, o source.Resource, section string) bool {
	if policy.Namespace != o.Namespace && policy.Namespace != "" && o.Namespace != "" {
		return false
	}
	refs := append(policy.Spec.Get("targetRefs").Items(), policy.Spec.Get("targetRef"))
	for _, ref := range refs {
		if ref.Get("kind").Text() == o.Kind && ref.Get("name").Text() == o.Name && ref.Get("name").Exists() &&
			ref.Get("sectionName").Text() == section {
			return true
		}
	}
	for _, s := range policy.Spec.Get("targetSelectors").Items() {
		if s.Get("kind").Text() == o.Kind && section == "" && selects(s.Get("matchLabels"), o.Root.Get("metadata",
			"labels")) {
			return true
		}
	}
	return false
}

func selects(want, labels source.Node) bool {
	for _, p := range want.Pairs() {
		if labels.Get(p.Key).Text() != p.Value.Text() {
			return false
		}
	}
	return len(want.Pairs()) > 0
}

// unattached remarks policies whose target is in no file, where the files have other objects of its kind.
func (r *reader) unattached() {
	all := append(append([]source.Resource{}, r.routes...), r.gateways...)
	for _, policy := range r.policies {
		refs := append(policy.Spec.Get("targetRefs").Items(), policy.Spec.Get("targetRef"))
		for _, ref := range refs {
			kind, name := ref.Get("kind").Text(), ref.Get("name")
			others, found := false, false
			for _, o := range all {
				if o.Kind == kind && (o.Namespace == policy.Namespace || o.Namespace == "" || policy.Namespace == "") {
					others = true
					found = found || o.Name == name.Text()
				}
			}
			if others && !found && name.Exists() && source.Template(name.Text()) == "" {
				r.remark("F602", name.At(), policy.String()+" target", "there is no "+kind+" "+name.Text()+
					" in its namespace, so this policy does nothing", source.Meant(name.Text(), namesOf(all, kind)))
			}
		}
	}
}

func namesOf(all []source.Resource, kind string) []string {
	var names []string
	for _, o := range all {
		if o.Kind == kind {
			names = append(names, o.Name)
		}
	}
	return names
}
