package envoy

import (
	"net"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// form returns the Envoy as a service, with its calls.
func (p *proxy) form() topology.Form {
	p.rename()
	out := &output{proxy: p, calls: map[string]*topology.Call{}}
	for _, manager := range p.managers {
		may := p.overridable(manager)
		if inline := get(manager, "route_config"); inline.Exists() {
			out.table(table{inline, may, get(manager, "upgrade_configs")})
		}
		name := get(manager, "rds", "route_config_name").Text()
		for i := range p.tables {
			if name != "" && p.tables[i].config.Get("name").Text() == name && p.tables[i].overridable.IsZero() {
				p.tables[i].overridable, p.tables[i].upgrades = may, get(manager, "upgrade_configs")
			}
		}
	}
	for _, t := range p.tables {
		out.table(t)
	}
	for _, filter := range p.tcp {
		out.tcp(filter)
	}
	for _, c := range p.order {
		out.remarksOf(p.clusters[c])
	}
	form := topology.Form{Remarks: source.Distinct(append(p.remarks, out.remarks...)), Policies: out.inbound}
	if len(out.order) == 0 && len(out.inbound) == 0 {
		return form
	}
	form.Services = append([]topology.Service{p.service()}, out.services...)
	for _, to := range out.order {
		form.Calls = append(form.Calls, *out.calls[to])
	}
	return form
}

// rename tells an Envoy apart from a service behind it that has the same name.
func (p *proxy) rename() {
	for name, c := range p.clusters {
		if to, _ := p.callee(name, c); p.kind == topology.Gateway && topology.Strip(to) == topology.Strip(p.name) {
			p.name += "-envoy"
			return
		}
	}
}

func (p *proxy) service() topology.Service {
	s := topology.Service{Name: p.name, At: p.at}
	if p.kind == topology.Gateway {
		s.AnswersWith = topology.DefaultOf("same", p.who, topology.Position{})
		s.Cancels = topology.DefaultOf(true, p.who, topology.Position{})
		s.Aliases = p.domains()
	}
	return s
}

// domains returns the hosts under which an Envoy is called from outside: the domains of its virtual hosts that are
// names with a dot, and are not those of what stands behind it.
func (p *proxy) domains() []string {
	var names []string
	left := map[string]bool{} // hosts of what stands behind it, and names that were found
	for _, c := range p.clusters {
		for _, a := range addresses(c) {
			left[topology.Strip(a)] = true
		}
	}
	tables := slices.Clone(p.tables)
	for _, m := range p.managers {
		tables = append(tables, table{config: get(m, "route_config")})
	}
	for _, t := range tables {
		for _, host := range get(t.config, "virtual_hosts").List() {
			for _, domain := range host.Get("domains").Texts() {
				name := topology.Strip(domain)
				if strings.Contains(name, ".") && !strings.Contains(name, "*") && source.Template(name) == "" &&
					net.ParseIP(name) == nil && !strings.Contains(domain, ".svc") && !left[name] {
					names = append(names, name)
					left[name] = true
				}
			}
		}
	}
	return names
}

// overridable reports whether callers may change tries and limits by x-envoy-… headers: only those whose address counts
// as internal, which since 1.33 none does by default.
func (p *proxy) overridable(manager source.Node) value[bool] {
	config := get(manager, "internal_address_config")
	if get(config, "cidr_ranges").Exists() || get(config, "unix_sockets").Text() == "true" {
		return topology.Write(true, config.At())
	}
	if remote := get(manager, "use_remote_address"); source.Before(p.version.V, "1.33") && remote.Text() == "true" {
		return topology.DefaultOf(true, "Envoy before 1.33, to which private addresses are internal", remote.At())
	}
	return topology.DefaultOf(false, p.who, manager.At())
}

// output gathers the calls of one Envoy.
type output struct {
	proxy    *proxy
	calls    map[string]*topology.Call
	order    []string
	services []topology.Service
	inbound  []topology.Policy
	remarks  remarks
}

// add adds a layer to the call of a cluster.
func (o *output) add(cluster string, layer topology.Layer, detached bool) {
	node, known := o.proxy.clusters[cluster]
	callee, aliases := o.proxy.callee(cluster, node)
	if o.proxy.kind == topology.SidecarOut && strings.HasPrefix(cluster, "inbound|") {
		layer.Kind = topology.SidecarIn
		o.inbound = append(o.inbound, topology.Policy{Callees: []string{o.proxy.name}, Layer: layer})
		return
	}
	if callee == "" || o.proxy.kind == topology.SidecarOut && !strings.Contains(cluster, "|") {
		return // of a sidecar: its own administration, passthrough, black hole
	}
	c := o.calls[callee]
	if c == nil {
		c = &topology.Call{From: o.proxy.name, To: callee, At: layer.At, Detached: detached}
		o.calls[callee] = c
		o.order = append(o.order, callee)
		if len(aliases) > 0 {
			o.services = append(o.services, topology.Service{Name: callee, At: node.At(), Aliases: aliases})
		}
	}
	c.Detached = c.Detached && detached
	if known {
		o.proxy.limits(node, &layer, &o.remarks)
		layer.Speaks = spoken(node)
	}
	c.Layers = append(c.Layers, layer)
}
