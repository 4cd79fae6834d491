package envoy

import (
	"path"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type (
	scalar                   = topology.Scalar
	value[T topology.Scalar] = topology.Value[T]
	remarks                  = []topology.Remark
)

// Read returns what the documents, all of them recognised, say. Files of xDS resources belong to the bootstrap file of
// their folder, or make one Envoy together where there is none.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	var form topology.Form
	folders := map[string]*proxy{}
	var proxies []*proxy
	var loose []source.Document
	for _, d := range docs {
		if dead, at := version2(d.Root); dead != "" {
			form.Remarks = append(form.Remarks, refused(&d, dead, at, assume))
			continue
		}
		if isResources(d.Root) {
			loose = append(loose, d)
			continue
		}
		p := newProxy(d, assume)
		p.bootstrap(d.Root)
		p.dump(d.Root)
		proxies = append(proxies, p)
		if get(d.Root, "dynamic_resources").Exists() || folders[path.Dir(d.File)] == nil {
			folders[path.Dir(d.File)] = p
		}
	}
	for _, d := range loose {
		p := folders[path.Dir(d.File)]
		if p == nil {
			p = newProxy(d, assume)
			folders[path.Dir(d.File)] = p
			proxies = append(proxies, p)
		}
		p.resources(d.Root)
	}
	for _, p := range proxies {
		form.Add(p.form())
	}
	return form
}

// refused says that a file is for an API that is no more. An Envoy that is old enough still takes it.
func refused(d *source.Document, dead string, at topology.Position, assume source.Assume) topology.Remark {
	r := topology.Remark{Rule: "F606", At: at, Subject: "Envoy " + d.File,
		Text: "this is a configuration for Envoy's API v2 (" + dead + "), which every Envoy since 1.18 refuses",
		Fix:  "rewrite it for v3, or remove the file"}
	if v := assume.For(d.File).Version("envoy", ""); v.V != "" && source.Before(v.V, "1.18") {
		r.Text += ": it is not read; Envoy " + v.V + " still takes it"
		r.Fix = "rewrite it for v3 before Envoy is updated"
		r.Assumed = "Envoy is " + v.String()
	}
	return r
}

func isResources(root source.Node) bool {
	return root.Get("resources").IsList() || strings.Contains(root.Get(typeKey).Text(), "/envoy.")
}

// version2 returns what in a document only Envoy's dead API knows, and where it stands.
func version2(root source.Node) (string, topology.Position) {
	static := get(root, "static_resources")
	for _, c := range static.Get("clusters").List() {
		if hosts := c.Get("hosts"); hosts.Exists() {
			return "hosts of a cluster", hosts.At()
		}
	}
	for _, l := range static.Get("listeners").List() {
		for _, chain := range get(l, "filter_chains").List() {
			for _, f := range chain.Get("filters").List() {
				if config := f.Get("config"); config.IsMap() && f.Get("name").Exists() {
					return "config of a filter", config.At()
				}
			}
		}
	}
	for _, r := range append(root.Get("resources").Items(), root) {
		if kind := r.Get(typeKey); strings.Contains(kind.Text(), "/envoy.api.v2") {
			return kind.Text(), kind.At()
		}
	}
	return "", topology.Position{}
}

// proxy is one Envoy.
type proxy struct {
	name     string
	at       topology.Position
	kind     topology.Kind
	version  value[string]
	who      string // whose defaults: "Envoy 1.40"
	clusters map[string]source.Node
	order    []string
	tables   []table
	managers []source.Node // HTTP connection managers
	tcp      []source.Node
	remarks  remarks
}

// table is one RouteConfiguration, and whether its callers may override what it says.
type table struct {
	config      source.Node
	overridable value[bool]
	upgrades    source.Node // of the connection manager
}

func newProxy(d source.Document, assume source.Assume) *proxy {
	p := &proxy{at: d.Root.At(), kind: topology.Gateway, clusters: map[string]source.Node{}}
	node := d.Root.Get("node")
	for _, c := range d.Root.Get("configs").Items() {
		if n := c.Get("bootstrap", "node"); n.Exists() {
			node = n
		}
	}
	p.version = assume.For(d.File).Version("envoy", envoywords.Latest)
	if v := node.Get(both("user_agent_build_version"), "version", both("major_number")); v.Exists() {
		minor := node.Get(both("user_agent_build_version"), "version", both("minor_number"))
		p.version = topology.Write(v.Text()+"."+minor.Text(), v.At())
	}
	p.who = "Envoy " + p.version.V
	if strings.HasPrefix(node.Get("id").Text(), "sidecar~") { // one of Istio's
		p.kind = topology.SidecarOut
	}
	p.name = p.nameOf(d, node)
	return p
}

// nameOf returns what to call an Envoy: the service it belongs to, its cluster, or what its file is called.
func (p *proxy) nameOf(d source.Document, node source.Node) string {
	for _, name := range []string{d.Owner, node.Get("cluster").Text(), node.Get("id").Text()} {
		if name != "" && source.Template(name) == "" {
			return name
		}
	}
	base, _, _ := strings.Cut(path.Base(d.File), ".")
	folder := path.Base(path.Dir(d.File))
	if slices.Contains([]string{"envoy", "config", "bootstrap", "config_dump", "-", ""}, base) && len(folder) > 1 {
		return folder
	}
	if base == "" || base == "-" {
		return "envoy"
	}
	return base
}

// bootstrap takes in a bootstrap configuration.
func (p *proxy) bootstrap(n source.Node) {
	static := get(n, "static_resources")
	for _, c := range static.Get("clusters").List() {
		p.cluster(c)
	}
	for _, l := range static.Get("listeners").List() {
		p.listener(l)
	}
}

// dump takes in what a running Envoy says of itself.
func (p *proxy) dump(root source.Node) {
	for _, c := range root.Get("configs").Items() {
		p.bootstrap(c.Get("bootstrap"))
		for _, list := range []string{"static_clusters", "dynamic_active_clusters", "dynamic_warming_clusters"} {
			for _, item := range get(c, list).Items() {
				p.cluster(item.Get("cluster"))
			}
		}
		for _, item := range get(c, "static_listeners").Items() {
			p.listener(item.Get("listener"))
		}
		for _, item := range get(c, "dynamic_listeners").Items() {
			p.listener(get(item, "active_state", "listener"))
		}
		for _, item := range get(c, "dynamic_route_configs").Items() {
			p.tables = append(p.tables, table{config: get(item, "route_config")})
		}
	}
}

// resources takes in a file of xDS resources.
func (p *proxy) resources(root source.Node) {
	for _, r := range append(root.Get("resources").Items(), root) {
		switch kind := r.Get(typeKey).Text(); {
		case strings.HasSuffix(kind, ".Cluster"):
			p.cluster(r)
		case strings.HasSuffix(kind, ".Listener"):
			p.listener(r)
		case strings.HasSuffix(kind, ".RouteConfiguration"):
			p.tables = append(p.tables, table{config: r})
		}
	}
}

func (p *proxy) cluster(n source.Node) {
	name := n.Get("name").Text()
	if _, known := p.clusters[name]; known || name == "" {
		return
	}
	p.clusters[name] = n
	p.order = append(p.order, name)
}

func (p *proxy) listener(n source.Node) {
	if n.Get("name").Text() == "virtualOutbound" { // of a sidecar of Istio, also where a dump has lost its node
		p.kind = topology.SidecarOut
	}
	chains := append(get(n, "filter_chains").List(), get(n, "default_filter_chain"))
	for _, chain := range chains {
		for _, f := range chain.Get("filters").List() {
			config := get(f, "typed_config")
			switch kind := config.Get(typeKey).Text(); {
			case strings.HasSuffix(kind, ".HttpConnectionManager"):
				p.managers = append(p.managers, config)
			case strings.HasSuffix(kind, ".TcpProxy"):
				p.tcp = append(p.tcp, config)
			}
		}
	}
}
