package policyfile

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/internal/upstream"
)

// Discovery says where the proxy finds the addresses of a service. Its one upstream then says how they are spoken to:
// scheme, Host, path, and the name in their certificates. Each address is an endpoint of its own, and the proxy
// balances over them. They change while requests run, and without a reload of the policy file. What was known last is
// kept while there is no answer. docs/endpoints.md has an example of each type.
type Discovery struct {
	// Type is where the addresses come from. dns: all A and AAAA records of a name, as of a headless service, looked up
	// again when their TTL is over. srv: an SRV record, which has ports and weights too. file: a file in the form of
	// Prometheus' file_sd, read again when it changes. kubernetes: the EndpointSlices of a Service, watched. Empty: the
	// upstreams are the endpoints, each dialled by its name.
	Type string `yaml:"type" enum:"dns|srv|file|kubernetes" example:"dns"`
	// Name is what is looked up: a DNS name with dns and srv, the name of the Service with kubernetes. Empty: the host of
	// the upstream, with kubernetes the first label of it.
	Name string `yaml:"name" example:"orders.shop.svc.cluster.local"`
	// Namespace is that of the Service, with kubernetes. Empty: the second label of the upstream's host, and without one
	// the namespace that the proxy runs in.
	Namespace string `yaml:"namespace" example:"shop"`
	// Port is the name or the number of the port of the pods, with kubernetes. Empty: the one they have.
	Port string `yaml:"port" example:"grpc"`
	// Path is that of the file, with file.
	Path string `yaml:"path" example:"/etc/abate/orders.json"`
	// Server is the DNS server to ask, with dns and srv. Empty: those of /etc/resolv.conf, with its search list.
	Server string `yaml:"server" example:"127.0.0.1:8600"`
}

// Enabled reports whether addresses are looked for.
func (d Discovery) Enabled() bool { return d.Type != "" }

// discoveryKeys are the types that a key belongs to.
var discoveryKeys = []struct {
	key, types string
	value      func(*Discovery) string
}{
	{"name", "dns srv kubernetes", func(d *Discovery) string { return d.Name }},
	{"namespace", "kubernetes", func(d *Discovery) string { return d.Namespace }},
	{"port", "kubernetes", func(d *Discovery) string { return d.Port }},
	{"path", "file", func(d *Discovery) string { return d.Path }},
	{"server", "dns srv", func(d *Discovery) string { return d.Server }},
}

// checkDiscovery finds what is wrong with d beside its upstreams.
func checkDiscovery(v *check.Errors, d Discovery, upstreams []string, weights []int) {
	for _, k := range discoveryKeys {
		switch {
		case k.value(&d) == "":
		case d.Type == "":
			v.Add("discovery.type", "is missing", "write type: dns, srv, file or kubernetes beside "+k.key)
			return
		case !strings.Contains(" dns srv file kubernetes ", " "+d.Type+" "):
			return // which the walk reports
		case !strings.Contains(" "+k.types+" ", " "+d.Type+" "):
			v.Add("discovery."+k.key, "is not used by type "+d.Type, "remove it, or write type: "+
				strings.ReplaceAll(k.types, " ", " or "))
		}
	}
	if !d.Enabled() {
		return
	}
	if len(upstreams) != 1 {
		v.Add("discovery", "needs one upstream, which says how the addresses are spoken to",
			`for example upstreams: ["http://orders:8080"]`)
	}
	if len(upstreams) == 1 && isSocket(upstreams[0]) {
		v.Add("discovery", "is for an upstream that is reached over TCP, and this one is a Unix socket", "remove discovery")
	}
	if len(weights) > 0 {
		v.Add("weights", "are those of upstreams, and the addresses are found by discovery",
			"remove them; files and SRV records have weights of their own")
	}
	if d.Type == "file" && d.Path == "" {
		v.Add("discovery.path", "is missing", "write the path of the file, for example path: /etc/abate/orders.json")
	}
	if d.Type == "srv" && d.Name == "" {
		v.Add("discovery.name", "is missing", "write the name of the SRV record, for example name: _http._tcp.orders.shop")
	}
	if d.Server != "" && !isHostPort(d.Server) {
		v.Add("discovery.server", strconv.Quote(d.Server)+" is not an address",
			`allowed: host:port, for example "127.0.0.1:8600"`)
	}
}

// Target is what is looked for, with what the upstream says written out: name and namespace are empty where nobody says
// them.
func (d Discovery) Target(of string) Discovery {
	u, err := url.Parse(of)
	if err != nil {
		return d
	}
	switch d.Type {
	case "dns":
		if d.Name == "" {
			d.Name = u.Hostname()
		}
	case "kubernetes":
		labels := strings.Split(u.Hostname(), ".")
		if d.Name == "" {
			d.Name = labels[0]
		}
		if d.Namespace == "" && len(labels) > 1 {
			d.Namespace = labels[1]
		}
	}
	return d
}

// isSocket reports whether an upstream is a Unix socket.
func isSocket(raw string) bool {
	u, _ := upstream.Parse(raw)
	return u.Socket != ""
}
