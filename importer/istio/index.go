package istio

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// index finds resources by name, so that thousands of them are read in a time that grows with their number.
type index struct {
	rules     map[string]resource   // DestinationRules by the service of their host
	short     map[string][]resource // the same with a namespace, by their host without it
	wide      []resource            // those whose host is a pattern
	routed    map[string]bool       // services that a VirtualService for sidecars stands for or sends requests to
	delegates map[string][]resource // VirtualServices without hosts, by namespace and name
	gateways  map[string]resource   // by namespace and name
	named     map[string]resource   // the first gateway of a name in any namespace
}

func (r *reader) indexed() index {
	x := index{rules: map[string]resource{}, short: map[string][]resource{}, routed: map[string]bool{},
		delegates: map[string][]resource{}, gateways: map[string]resource{}, named: map[string]resource{}}
	for _, rule := range r.rules {
		name := resolve(rule.Spec.Get("host").Text(), rule.Namespace)
		if strings.HasPrefix(name, "*") {
			x.wide = append(x.wide, rule)
			continue
		}
		was, taken := x.rules[name]
		if !taken || was.String() == rule.String() && !was.says() && rule.says() {
			x.rules[name] = rule
		}
	}
	for name, rule := range x.rules {
		if host, namespace, _ := strings.Cut(name, "."); namespace != "" && !strings.Contains(namespace, ".") {
			x.short[host] = append(x.short[host], rule)
		}
	}
	for _, v := range r.virtual {
		if len(v.Spec.Get("hosts").List()) == 0 {
			key := full(v.Name, v.Namespace)
			x.delegates[key] = append(x.delegates[key], v)
		}
		for _, kind := range []string{"tcp", "tls"} { // what is no HTTP is not repeated
			for _, route := range v.Spec.Get(kind).Items() {
				for _, d := range route.Get("route").Items() {
					x.routed[resolve(d.Get("destination", "host").Text(), v.Namespace)] = true
				}
			}
		}
		if v.inMesh() {
			for _, name := range v.services() {
				x.routed[name] = true
			}
		}
	}
	for _, g := range r.gateways {
		if _, taken := x.gateways[full(g.Name, g.Namespace)]; !taken {
			x.gateways[full(g.Name, g.Namespace)] = g
		}
		if _, taken := x.named[g.Name]; !taken {
			x.named[g.Name] = g
		}
	}
	return x
}

// says reports whether a DestinationRule says more than which subsets there are. Of two of one name, which are meant as
// alternatives or to be applied one after the other, the one that does counts.
func (v resource) says() bool {
	for _, of := range append(v.Spec.Get("subsets").Items(), v.Spec) {
		if of.Get("trafficPolicy").Get("outlierDetection|connectionPool").Exists() {
			return true
		}
	}
	return false
}

// services returns the services that a VirtualService stands for or sends requests to.
func (v resource) services() []string {
	var names []string
	for _, h := range v.Spec.Get("hosts").Texts() {
		names = append(names, resolve(h, v.Namespace))
	}
	for _, route := range v.Spec.Get("http").Items() {
		for _, d := range route.Get("route").Items() {
			names = append(names, resolve(d.Get("destination", "host").Text(), v.Namespace))
		}
	}
	return names
}

// rule returns the DestinationRule for a host as a namespace sees it: one for the host itself before one for a pattern.
func (r *reader) rule(host, namespace string) (resource, bool) {
	name := resolve(host, namespace)
	if rule, found := r.index.rules[name]; found {
		return rule, true
	}
	if same := r.index.short[name]; namespace == "" && len(same) == 1 { // wherever the route is applied
		return same[0], true
	}
	for _, rule := range r.index.wide {
		if suffix := strings.TrimPrefix(resolve(rule.Spec.Get("host").Text(), rule.Namespace), "*"); strings.HasSuffix(name,
			suffix) {
			return rule, true
		}
	}
	return resource{}, false
}

// gateway returns the Gateway that a VirtualService names: NAME in its own namespace, or NAMESPACE/NAME.
func (r *reader) gateway(named, namespace string) (g resource, found bool) {
	space, name, slash := strings.Cut(named, "/")
	if !slash {
		space, name = namespace, named
	}
	if space == "." {
		space = namespace
	}
	if g, found = r.index.gateways[full(name, space)]; found {
		return g, true
	}
	if g, found = r.index.gateways[full(name, "")]; found { // as Helm and Kustomize place it: wherever they are told
		return g, true
	}
	if g, found = r.index.named[name]; found && space == "" { // as kubectl applies it: wherever it is told
		return g, true
	}
	return resource{source.Resource{Name: name, Namespace: space}}, false
}
