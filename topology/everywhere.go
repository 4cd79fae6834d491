package topology

import (
	"slices"
	"strings"
)

// inKubernetes are meshes whose sidecars stand beside pods only.
var inKubernetes = []string{"istio"}

// everywhere adds a policy for whole namespaces to the calls that have no layer of its product and kind.
func (j *joining) everywhere(p *Policy) {
	if !patterns(p.Callees) {
		return
	}
	databases, gateways, apart := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range j.out.Services {
		databases[s.Name] = s.Database
		apart[s.Name] = s.Runs == RunsCompose && slices.Contains(inKubernetes, p.Layer.Product)
		gateways[s.Name] = s.Proxy // such as that of an Ingress, of which no layer is known
	}
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		gateways[c.From] = gateways[c.From] || c.From != "" && c.ofGateway()
	}
	from, except := j.callers(p), map[string]bool{}
	for _, name := range p.Except {
		s, _ := j.names.Find(name, p.Namespace)
		except[s] = true
	}
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		switch {
		case except[c.To]:
		case databases[c.To] || !j.covered(p.Callees, c.To):
		case len(p.Callers) > 0 && !j.covered(p.Callers, c.From) && !slices.Contains(from, c.From):
		case p.Layer.Kind == SidecarOut && apart[c.From], p.Layer.Kind == SidecarIn && apart[c.To]:
		case p.Layer.Kind == SidecarOut && gateways[c.From] && !slices.Contains(from, c.From): // but one that is named has it
		case p.Layer.Kind == SidecarIn && gateways[c.To]:
		case c.has(p.Layer.Product, p.Layer.Kind):
		default:
			c.Layers = append(c.Layers, p.Layer)
		}
	}
}

// ofGateway reports whether a gateway makes the call.
func (c *Call) ofGateway() bool {
	for i := range c.Layers {
		if c.Layers[i].Kind == Gateway {
			return true
		}
	}
	return false
}

func (c *Call) has(product string, kind Kind) bool {
	for i := range c.Layers {
		if l := &c.Layers[i]; l.Product == product && l.Kind == kind {
			return true
		}
	}
	return false
}

func pattern(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// patterns reports whether all names are patterns; without names there is none.
func patterns(names []string) bool {
	for _, name := range names {
		if !pattern(name) {
			return false
		}
	}
	return len(names) > 0
}

// covered reports whether one of the patterns is about a service. The world outside is no service.
func (j *joining) covered(names []string, service string) bool {
	for _, name := range names {
		switch {
		case !pattern(name) || service == "":
		case name == "*.":
			if !strings.Contains(Strip(service), ".") || j.placed {
				return true
			}
		case strings.HasSuffix(Strip(service), strings.ToLower(name[1:])):
			return true
		}
	}
	return false
}

// allPlaced reports whether files say the namespace of all that Kubernetes runs.
func allPlaced(services []Service) bool {
	return !slices.ContainsFunc(services, func(s Service) bool {
		return s.Runs == RunsKubernetes && !strings.Contains(Strip(s.Name), ".")
	})
}
