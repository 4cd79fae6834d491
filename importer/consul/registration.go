package consul

import (
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// registered returns the services that a file of an agent registers and whose sidecars have upstreams.
func registered(root source.Node) []source.Node {
	var all []source.Node
	services := append(root.Get("service").List(), root.Get("services").List()...)
	for _, s := range append(services, ofJobs(root)...) {
		if get(s, "Name").Text() != "" && len(upstreams(s)) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// ofJobs returns the services of the groups of a job of Nomad, which registers them as an agent does: in HCL, or in the
// JSON of its API.
func ofJobs(root source.Node) (services []source.Node) {
	for _, job := range labelled(root.Get("job")) {
		for _, group := range labelled(job.Get("group")) {
			services = append(services, group.Get("service").List()...)
		}
	}
	job := root
	if root.Get("Job").Exists() {
		job = root.Get("Job")
	}
	for _, group := range job.Get("TaskGroups").List() {
		services = append(services, group.Get("Services").List()...)
	}
	return services
}

// labelled returns the blocks of a type, each of which stands under its label.
func labelled(blocks source.Node) (all []source.Node) {
	for _, block := range blocks.List() {
		for _, p := range block.Pairs() {
			all = append(all, p.Value)
		}
	}
	return all
}

// upstreams returns what the sidecar of a service is to call. A proxy may be registered beside its service, too.
func upstreams(service source.Node) []source.Node {
	proxy := get(get(get(service, "Connect"), "SidecarService"), "Proxy")
	return append(get(proxy, "Upstreams").List(), get(get(service, "Proxy"), "Upstreams").List()...)
}

// registration reads the upstreams of a service: each is a call, and its config what the sidecar does with it.
func (r *reader) registration(s source.Node) {
	caller := get(s, "Name")
	if own := get(get(s, "Proxy"), "DestinationServiceName"); own.Text() != "" {
		caller = own
	}
	from, ok := r.name(caller)
	if !ok {
		return
	}
	r.custom("sidecar of "+from, get(get(get(get(s, "Connect"), "SidecarService"), "Proxy"), "Config"))
	for _, up := range upstreams(s) {
		to := get(up, "DestinationName")
		if kind := get(up, "DestinationType").Text(); to.Text() == "" || kind != "" && kind != "service" {
			continue // a prepared query chooses when it is asked
		}
		callee, known := r.name(to)
		if known {
			r.custom("upstream "+callee+" of "+from, get(up, "Config"))
			r.form.Calls = append(r.form.Calls, topology.Call{From: from, To: callee, At: to.At(),
				PerRequest: topology.Assume(1.0, "it is an upstream of the sidecar of "+from),
				Layers:     r.upstream(from, callee, get(up, "Config"))})
		}
	}
}

// upstream returns the layer of a sidecar, if its config says something that an entry for the callee does not.
func (r *reader) upstream(from, to string, config source.Node) []topology.Layer {
	protocol, connect := get(config, "Protocol"), get(config, "ConnectTimeoutMs")
	if protocol.Text() == "" {
		protocol = r.protocolOf(to)
	}
	speaks := spoken(protocol)
	if !guarded(config) && !connect.Exists() && (speaks.IsZero() || r.routed[to]) {
		return nil
	}
	l := r.layer("upstream "+to+" of "+from, config.At())
	l.Speaks = speaks
	l.Connect = read(r, connect, source.DurationIn(time.Millisecond))
	switch {
	case r.routed[to]: // what routes its requests says for how long, and what is answered
		l.Answers = nil
	case !speaks.IsZero():
		l.Overall = topology.DefaultOf(envoywords.RouteTimeout, r.who, config.At())
	case strings.EqualFold(protocol.Text(), "tcp"):
		l.Overall = topology.DefaultOf(time.Duration(0), r.who+", which ends no connection of TCP", config.At())
		l.Answers = []topology.Answer{{After: topology.Refused, Gives: topology.ResetSent}} // it has taken the connection
	default:
		l.Overall = topology.NotKnown[time.Duration]("the limit depends on the protocol of the service", config.At())
	}
	r.guards(config, &l)
	return []topology.Layer{l}
}

// guarded reports whether the config of an upstream bounds what is in flight, or takes instances out.
func guarded(config source.Node) bool {
	return get(config, "Limits").Exists() || get(config, "PassiveHealthCheck").Exists()
}

// guards reads both into a layer.
func (r *reader) guards(config source.Node, l *topology.Layer) {
	limits, check := get(config, "Limits"), get(config, "PassiveHealthCheck")
	l.Limits = topology.Limits{Connections: read(r, get(limits, "MaxConnections"), source.Int),
		Pending:  read(r, get(limits, "MaxPendingRequests"), source.Int),
		Requests: read(r, get(limits, "MaxConcurrentRequests"), source.Int)}
	enforced := read(r, get(check, "EnforcingConsecutive5xx"), source.Int)
	if never := enforced.V == 0 && !enforced.IsZero(); never || !check.Exists() {
		return
	}
	l.Ejection = envoywords.Ejection(r.who, check.At())
	l.Ejection.Consecutive = envoywords.Or(read(r, get(check, "MaxFailures"), source.Int), l.Ejection.Consecutive)
	share := read(r, get(check, "MaxEjectionPercent"), source.Float)
	share.V /= 100
	l.Ejection.MaxShare = envoywords.Or(share, l.Ejection.MaxShare)
	l.Ejection.Interval = envoywords.Or(read(r, get(check, "Interval"), source.DurationIn(time.Nanosecond)),
		l.Ejection.Interval)
	l.Ejection.Base = envoywords.Or(read(r, get(check, "BaseEjectionTime"), source.DurationIn(time.Nanosecond)),
		l.Ejection.Base)
}

// custom remarks parts of a sidecar that are written in Envoy's own words, in the place of what Consul would write.
// What is added beside that, such as clusters for traces, changes no call.
func (r *reader) custom(of string, config source.Node) {
	for _, part := range []string{"EnvoyListenerJSON", "EnvoyClusterJSON", "EnvoyPublicListenerJSON",
		"EnvoyLocalClusterJSON"} {
		if n := get(config, part); n.Text() != "" {
			r.remark("F702", n.At(), of+" "+part, "this part of the sidecar is written in Envoy's own JSON, which is not "+
				"read, so what it repeats and for how long is not known", "give the audit the config_dump of the sidecar")
		}
	}
}
