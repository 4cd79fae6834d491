// Package kong reads declarative configurations of Kong: services, the upstreams behind them, and how often each is
// tried.
//
// Kong repeats by nginx's rule: errors and time-outs, never an answer, and a POST only while nothing of it was sent.
// Unlike nginx it tries one target again as often as several.
package kong

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "3.9"

// Recognise reports whether a document is a declarative configuration of Kong.
func Recognise(d source.Document) bool {
	return d.Root.Get("_format_version").Exists() && (d.Root.Get("services").Exists() || d.Root.Get("upstreams").Exists())
}

// Read returns what the documents say: each is one Kong.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	var out topology.Form
	for i := range docs {
		d := &docs[i]
		k := &kong{root: d.Root, form: &out, service: d.Service("kong"),
			version: assume.For(d.File).Version("kong", assumedVersion)}
		services := d.Root.Get("services").Items()
		for _, s := range services {
			k.callee(s)
		}
		if len(services) > 0 {
			out.Services = append(out.Services, topology.Service{Name: k.service, At: d.Root.At(),
				Cancels: topology.DefaultOf(true, k.product(), d.Root.At())})
		}
	}
	return out
}

type kong struct {
	root    source.Node
	form    *topology.Form
	service string
	version topology.Value[string]
}

func (k *kong) product() string { return "Kong " + k.version.V }

func scalar[T topology.Scalar](k *kong, n source.Node, parse func(string) (T, error)) topology.Value[T] {
	v, remarks := source.Scalar(n, parse)
	k.form.Remarks = append(k.form.Remarks, remarks...)
	return v
}

// callee makes the call of one service.
func (k *kong) callee(s source.Node) {
	address := s.Get("host").Text()
	if url := s.Get("url"); url.Exists() {
		address = url.Text()
	}
	host := source.Callee(address)
	at := s.At()
	name := "service " + s.Get("name").Text()
	if host == "" {
		k.form.Remarks = append(k.form.Remarks, topology.Remark{Rule: "F702", At: at, Subject: k.service + " " + name,
			Text: "where this service leads could not be read", Fix: "write its host, or a line under calls: for it"})
		return
	}
	milliseconds := source.DurationIn(time.Millisecond)
	one := Service{Name: name, Choice: "kong " + k.service, Product: "kong", Version: k.version, Who: k.product(), At: at,
		Retries: scalar(k, s.Get("retries"), source.Int), ReadTimeout: scalar(k, s.Get("read_timeout"), milliseconds),
		ConnectTimeout: scalar(k, s.Get("connect_timeout"), milliseconds)}
	u, isUpstream := k.upstream(host)
	to, aliases := host, []string(nil)
	if isUpstream {
		to, aliases, one.Several = behind(host, u.Get("targets").Items())
	}
	l := one.Layer()
	for _, is := range []source.Node{s.Get("protocol"), s.Get("url")} {
		if scheme, _, _ := strings.Cut(is.Text(), "://"); scheme == "grpc" || scheme == "grpcs" {
			l.Speaks = topology.Write(topology.SpeaksGRPC, is.At())
		}
	}
	l.Match = match(s)
	if isUpstream {
		l.Endpoints = topology.Write(len(u.Get("targets").Items()), u.At())
		l.Ejection = k.ejection(u)
	}
	if len(aliases) > 0 {
		k.form.Services = append(k.form.Services, topology.Service{Name: to, At: at, Aliases: aliases})
	}
	k.form.Calls = append(k.form.Calls, topology.Call{From: k.service, To: to, At: at, Layers: []topology.Layer{l}})
}

// match reads which requests come to a service, where it has one route.
func match(s source.Node) topology.Match {
	var m topology.Match
	routes := s.Get("routes").Items()
	if len(routes) != 1 {
		return m
	}
	if paths := routes[0].Get("paths").Texts(); len(paths) == 1 && paths[0] != "" {
		m.Path = paths[0]
		if !strings.HasPrefix(m.Path, "~") {
			m.Path += "*"
		}
	}
	if hosts := routes[0].Get("hosts").Texts(); len(hosts) == 1 {
		m.Host = hosts[0]
	}
	m.Methods = routes[0].Get("methods").Texts()
	return m
}

// upstream returns the upstream of a host, if the host is one.
func (k *kong) upstream(host string) (source.Node, bool) {
	for _, u := range k.root.Get("upstreams").Items() {
		if topology.Strip(u.Get("name").Text()) == host {
			return u, true
		}
	}
	return source.Node{}, false
}

// behind returns the service behind the targets of an upstream.
func behind(upstream string, targets []source.Node) (to string, aliases []string, several bool) {
	var hosts []string
	for _, t := range targets {
		if h := source.Callee(t.Get("target").Text()); h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	to, aliases = source.Behind(upstream, hosts)
	return to, aliases, len(targets) > 1
}

// ejection reads the passive health checks of an upstream. Each is off by default.
func (k *kong) ejection(u source.Node) topology.Ejection {
	unhealthy := u.Get("healthchecks", "passive", "unhealthy")
	var e topology.Ejection
	for _, key := range []string{"http_failures", "tcp_failures", "timeouts"} {
		v, remarks := source.Scalar(unhealthy.Get(key), source.Int)
		k.form.Remarks = append(k.form.Remarks, remarks...)
		if n, ok := v.Get(); ok && n > 0 && (e.Consecutive.IsZero() || n < e.Consecutive.V) {
			e = topology.Ejection{Consecutive: v, MaxShare: topology.DefaultOf(1.0, k.product(), u.At())}
		}
	}
	return e
}
