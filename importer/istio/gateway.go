package istio

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// proxyOf returns the name of the service that a Gateway runs on: by the workload that it selects, else its own.
func proxyOf(g resource) string {
	selector := g.Spec.Get("selector")
	for _, key := range []string{"app", "app.kubernetes.io/name", "istio", "service.istio.io/canonical-name"} {
		if v := selector.Get(key).Text(); v != "" && source.Template(v) == "" {
			if key == "istio" && v != "istio" {
				return "istio-" + strings.TrimPrefix(v, "istio-")
			}
			return v
		}
	}
	return source.Qualified(g.Name, g.Namespace)
}

// forGateway adds a call of a gateway, which is a service of its own.
func (r *reader) forGateway(x route, named source.Node, destination string, l topology.Layer, mirror bool) {
	g, _ := r.gateway(named.Text(), x.of.Namespace)
	from := proxyOf(g)
	if from == "" || source.Template(named.Text()) != "" {
		r.remark("F702", named.At(), x.of.String()+" gateway", "the gateway is a template: "+named.Text(),
			"pass the file as it is rendered")
		return
	}
	at := g.At
	if at.IsZero() {
		at = named.At()
	}
	i, known := r.callers[from]
	if !known {
		i = len(r.form.Services)
		r.callers[from] = i
		r.form.Services = append(r.form.Services, topology.Service{Name: from, At: at,
			AnswersWith: topology.DefaultOf("same", r.who, at), Cancels: topology.DefaultOf(true, r.who, at)})
	}
	for _, h := range x.of.Spec.Get("hosts").Texts() {
		if s := &r.form.Services[i]; isPublic(h) && !slices.Contains(s.Aliases, h) {
			s.Aliases = append(s.Aliases, h)
		}
	}
	l.Kind, l.Choice = topology.Gateway, "the routes of the gateway"
	r.form.Calls = append(r.form.Calls, topology.Call{From: from, To: source.Qualified(destination, x.namespace), At: l.At,
		Detached: mirror,
		Layers:   []topology.Layer{l}})
}

// isPublic reports whether a host is a name that is called from outside the cluster.
func isPublic(host string) bool {
	return strings.Contains(host, ".") && !strings.Contains(host, "*") && !isLocal(host) && source.Template(host) == ""
}

func isLocal(host string) bool {
	return !strings.Contains(host, ".") || strings.HasSuffix(topology.Strip(host)+".", ".svc.") || strings.Contains(host,
		".svc.")
}

// checkGateways remarks a VirtualService that is for a gateway that cannot serve it.
func (r *reader) checkGateways(v resource) {
	all := v.gatewaysOf()
	for _, n := range all {
		named := n.Text()
		if named == "mesh" {
			continue
		}
		if g, found := r.gateway(named, v.Namespace); !found {
			if other, elsewhere := r.index.named[g.Name]; elsewhere {
				r.remark("F602", n.At(), v.String()+" gateway", "there is no Gateway "+full(g.Name, g.Namespace)+
					", so these routes serve nobody; "+other.String()+" ("+other.At.String()+") is in another namespace",
					"write "+full(other.Name, other.Namespace))
			}
		}
	}
	if len(all) == 0 || v.inMesh() {
		return
	}
	for _, route := range v.Spec.Get("http").Items() {
		if !route.Get("retries").Exists() && !route.Get("timeout").Exists() {
			continue
		}
		for _, h := range v.Spec.Get("hosts").Items() {
			if host := h.Text(); host != "" && host != "localhost" && !strings.Contains(host, "*") && isLocal(host) &&
				source.Template(host) == "" {
				r.remark("F602", h.At(), v.String()+" host "+host, "the retries and timeouts for "+host+
					" hold at the gateway only: calls of other services do not pass it", "add mesh to gateways")
			}
		}
		return
	}
}
