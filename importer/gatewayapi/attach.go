package gatewayapi

import (
	"slices"

	"github.com/abate-go/abate/importer/source"
)

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
		if policy, found := r.attached(want.of, want.section); found {
			t = append(t, policy)
		}
	}
	return t
}

// attached returns the first policy for an object, or for one section of it.
func (r *reader) attached(o source.Resource, section string) (source.Resource, bool) {
	for _, policy := range r.targeted[target{o.Kind, o.Name, section}] {
		if near(policy, o) {
			return policy, true
		}
	}
	for _, policy := range r.selecting {
		for _, s := range policy.Spec.Get("targetSelectors").Items() {
			if s.Get("kind").Text() == o.Kind && section == "" && near(policy, o) &&
				selects(s, o.Root.Get("metadata", "labels")) {
				return policy, true
			}
		}
	}
	return source.Resource{}, false
}

// target is what a policy is for: an object, or one section of it.
type target struct{ kind, name, section string }

// attach finds what each policy is for.
func (r *reader) attach() {
	r.targeted = map[target][]source.Resource{}
	for _, policy := range r.policies {
		for _, ref := range refs(policy) {
			t := target{ref.Get("kind").Text(), ref.Get("name").Text(), ref.Get("sectionName").Text()}
			if t.name != "" {
				r.targeted[t] = append(r.targeted[t], policy)
			}
		}
		if policy.Spec.Get("targetSelectors").IsList() {
			r.selecting = append(r.selecting, policy)
		}
	}
}

func refs(policy source.Resource) []source.Node {
	return append(policy.Spec.Get("targetRefs").Items(), policy.Spec.Get("targetRef"))
}

// near reports whether two objects are of one namespace, as far as their files say it.
func near(a, b source.Resource) bool {
	return a.Namespace == b.Namespace || a.Namespace == "" || b.Namespace == ""
}

// selects reports whether a selector takes an object with these labels. One that names none takes all of its kind.
func selects(selector, labels source.Node) bool {
	for _, p := range selector.Get("matchLabels").Pairs() {
		if labels.Get(p.Key).Text() != p.Value.Text() {
			return false
		}
	}
	for _, e := range selector.Get("matchExpressions").Items() {
		label := labels.Get(e.Get("key").Text())
		in := slices.Contains(e.Get("values").Texts(), label.Text())
		switch holds := label.Exists(); e.Get("operator").Text() {
		case "In":
			if !holds || !in {
				return false
			}
		case "NotIn":
			if holds && in {
				return false
			}
		case "Exists", "DoesNotExist":
			if holds != (e.Get("operator").Text() == "Exists") {
				return false
			}
		}
	}
	return true
}

// unattached remarks policies whose target is in no file, where the files have other objects of its kind.
func (r *reader) unattached() {
	objects := map[target][]source.Resource{} // by kind, and by kind and name
	names := map[string][]string{}
	for _, all := range [][]source.Resource{r.routes, r.gateways} {
		for _, o := range all {
			objects[target{kind: o.Kind}] = append(objects[target{kind: o.Kind}], o)
			objects[target{kind: o.Kind, name: o.Name}] = append(objects[target{kind: o.Kind, name: o.Name}], o)
			names[o.Kind] = append(names[o.Kind], o.Name)
		}
	}
	for _, policy := range r.policies {
		for _, ref := range refs(policy) {
			kind, name := ref.Get("kind").Text(), ref.Get("name")
			inReach := func(o source.Resource) bool { return near(o, policy) }
			if !name.Exists() || source.Template(name.Text()) != "" ||
				slices.ContainsFunc(objects[target{kind: kind, name: name.Text()}], inReach) ||
				!slices.ContainsFunc(objects[target{kind: kind}], inReach) {
				continue
			}
			r.remark("F602", name.At(), policy.String()+" target", "there is no "+kind+" "+name.Text()+
				" in its namespace, so this policy does nothing", source.Meant(name.Text(), names[kind]))
		}
	}
}
