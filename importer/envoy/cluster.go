package envoy

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// addresses returns the endpoints that a cluster lists, as host:port.
func addresses(c source.Node) []string {
	var out []string
	for _, locality := range get(c, "load_assignment", "endpoints").List() {
		for _, e := range get(locality, "lb_endpoints").List() {
			socket := get(e, "endpoint", "address", "socket_address")
			host := socket.Get("address").Text()
			if host == "" || source.Template(host) != "" {
				continue
			}
			if port := get(socket, "port_value").Text(); port != "" && source.Template(port) == "" {
				host = net.JoinHostPort(host, port)
			}
			out = append(out, host)
		}
	}
	return out
}

// callee returns what a cluster stands for, and other names of it. One host with a name is the service itself;
// addresses are endpoints of a service that is called as the cluster is. What listens on the loopback interface is
// another service for each Envoy, whatever its cluster is called.
func (p *proxy) callee(name string, c source.Node) (string, []string) {
	if strings.Contains(name, "|") {
		return name[strings.LastIndexByte(name, '|')+1:], nil
	}
	var hosts, aliases []string
	all := addresses(c)
	for _, a := range all {
		host := topology.Strip(a)
		ip := net.ParseIP(host)
		if local := host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()); local {
			continue
		}
		if aliases = append(aliases, a); ip == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	switch eds := get(c, "eds_cluster_config", "service_name").Text(); {
	case len(all) > 0 && len(aliases) == 0:
		return p.name + "-" + name, nil
	case len(hosts) == 1 && len(aliases) == len(all):
		return hosts[0], nil
	case eds != "":
		return eds, []string{name}
	}
	return name, aliases
}

// limits adds what a cluster says to a layer: the time to connect, the caps on what is in flight, ejection.
func (p *proxy) limits(c source.Node, l *topology.Layer, notes *remarks) {
	at := c.At()
	l.Connect = envoywords.Or(read(get(c, "connect_timeout"), source.Duration, notes),
		topology.DefaultOf(envoywords.Connect, p.who, at))
	threshold := thresholds(c)
	if threshold.Exists() {
		at = threshold.At()
	}
	limit := func(key string) value[int] {
		return envoywords.Or(read(get(threshold, key), count, notes), topology.DefaultOf(envoywords.ClusterLimit, p.who, at))
	}
	l.Limits = topology.Limits{Requests: limit("max_requests"), Pending: limit("max_pending_requests"),
		Connections: limit("max_connections")}
	l.Budget = p.budget(threshold, at, notes)
	if outliers := get(c, "outlier_detection"); outliers.Written() {
		l.Ejection = p.ejection(outliers, notes)
	}
	if c.Get("type").Text() == "STATIC" {
		if all := addresses(c); len(all) > 0 {
			l.Endpoints = topology.Write(len(all), get(c, "load_assignment").At())
		}
	}
}

// spoken returns what a cluster says that its endpoints speak. One that is told to speak HTTP/2 to them is taken for
// one of gRPC, which is what needs it.
func spoken(c source.Node) (v value[string]) {
	own := get(c, "http2_protocol_options")
	for _, p := range get(c, "typed_extension_protocol_options").Pairs() {
		for _, how := range []string{"explicit_http_config", "use_downstream_protocol_config", "auto_config"} {
			if h2 := get(p.Value, how, "http2_protocol_options"); h2.Exists() {
				own = h2
			}
		}
	}
	if own.Exists() {
		v = topology.Write(topology.SpeaksGRPC, own.At())
	}
	return v
}

// thresholds returns the caps for requests of the priority that requests have unless a route says otherwise.
func thresholds(c source.Node) source.Node {
	for _, t := range get(c, "circuit_breakers", "thresholds").List() {
		if priority := t.Get("priority").Text(); priority == "" || priority == "DEFAULT" || priority == "0" {
			return t
		}
	}
	return source.Node{}
}

func (p *proxy) budget(threshold source.Node, at topology.Position, notes *remarks) topology.Budget {
	budget := get(threshold, "retry_budget")
	if !budget.Written() {
		return topology.Budget{Concurrent: envoywords.Or(read(get(threshold, "max_retries"), count, notes),
			topology.DefaultOf(envoywords.ClusterRetry, p.who, at))}
	}
	return topology.Budget{
		Share: envoywords.Or(read(get(budget, "budget_percent", "value"), percent, notes),
			topology.DefaultOf(envoywords.BudgetShare, p.who, budget.At())),
		Concurrent: envoywords.Or(read(get(budget, "min_retry_concurrency"), count, notes),
			topology.DefaultOf(envoywords.BudgetLeast, p.who, budget.At())),
		Window: read(get(budget, "budget_interval"), source.Duration, notes),
	}
}

func (p *proxy) ejection(n source.Node, notes *remarks) topology.Ejection {
	e := envoywords.Ejection(p.who, n.At())
	e.Consecutive = envoywords.Or(read(get(n, "consecutive_5xx"), count, notes), e.Consecutive)
	if enforced := get(n, "enforcing_consecutive_5xx"); enforced.Text() == "0" {
		e.Consecutive = read(get(n, "consecutive_gateway_failure"), count, notes)
	}
	e.Interval = envoywords.Or(read(get(n, "interval"), source.Duration, notes), e.Interval)
	e.Base = envoywords.Or(read(get(n, "base_ejection_time"), source.Duration, notes), e.Base)
	e.MaxShare = envoywords.Or(read(get(n, "max_ejection_percent"), percent, notes), e.MaxShare)
	return e
}

// count reads a cap; one of 32 bits that are all set is none.
func count(word string) (int, error) {
	if n, err := strconv.ParseUint(strings.TrimSpace(word), 10, 32); err == nil && n >= topology.Unbounded {
		return topology.Unbounded, nil
	}
	return source.Int(word)
}

func percent(word string) (float64, error) {
	f, err := source.Float(word)
	return f / 100, err
}

var clusterKeys = keys("max_connections", "max_pending_requests", "max_requests", "max_retries", "retry_budget",
	"priority",
	"track_remaining", "max_connection_pools")

// remarksOf returns keys of a cluster's caps that nobody knows.
func (o *output) remarksOf(c source.Node) {
	for _, t := range get(c, "circuit_breakers", "thresholds").List() {
		o.unknown(t, "cluster "+c.Get("name").Text()+" circuit_breakers", clusterKeys)
	}
}

// keys returns keys in both spellings.
func keys(snake ...string) []string {
	var out []string
	for _, k := range snake {
		if out = append(out, k); camelCase(k) != k {
			out = append(out, camelCase(k))
		}
	}
	return out
}

func (o *output) unknown(n source.Node, subject string, known []string) {
	for _, r := range n.Unknown("Envoy", subject, known...) {
		r.Text = strings.Replace(r.Text, ", so it does nothing", ": it refuses a file with it, and ignores it in xDS", 1)
		o.remarks = append(o.remarks, r)
	}
}
