package gatewayapi

import (
	"cmp"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

const consulGroup = "consul.hashicorp.com"

// ofConsul reads a rule as Consul's API gateway does: what is repeated, and for how long, only its filters say. The
// timeouts and the retry of the rule itself are not given to Consul.
func (r *reader) ofConsul(l *topology.Layer, o source.Resource, p parent, rule source.Node) {
	for _, key := range []string{"retry", "timeouts"} {
		if n := rule.Get(key); n.Written() {
			r.remark("F602", n.At(), l.Name+" "+key, "Consul's API gateway does not read the "+key+" of a rule",
				"reference a RouteRetryFilter or RouteTimeoutFilter in filters (extensionRef)")
		}
	}
	l.Repeats = []topology.Repeat{envoywords.Off(topology.DefaultOf(1, p.who, l.At), "", l.At)}
	l.Overall = topology.DefaultOf(envoywords.RouteTimeout, p.who, l.At)
	l.Budget.Concurrent = topology.DefaultOf(envoywords.ClusterRetry, p.who, l.At)
	for _, f := range rule.Get("filters").Items() {
		ref := f.Get("extensionRef")
		kind := ref.Get("kind").Text()
		if ref.Get("group").Text() != consulGroup || kind != "RouteRetryFilter" && kind != "RouteTimeoutFilter" {
			continue
		}
		filter, found := r.filter(kind, ref.Get("name").Text(), o)
		switch {
		case !found:
			r.unread(l, kind, ref)
		case kind == "RouteRetryFilter":
			r.form.Remarks = append(r.form.Remarks, envoywords.ConsulRetries(l, filter.Spec, p.who)...)
		default:
			limit, remarks := envoywords.ConsulTimeout(filter.Spec.Get("requestTimeout"), p.who, filter.At)
			l.Overall, r.form.Remarks = limit, append(r.form.Remarks, remarks...)
		}
	}
}

// filter returns a filter of a route's namespace.
func (r *reader) filter(kind, name string, o source.Resource) (source.Resource, bool) {
	for _, f := range r.filters {
		if f.Kind == kind && f.Name == name && near(f, o) {
			return f, true
		}
	}
	return source.Resource{}, false
}

// unread makes unknown what a filter that is in no file would say.
func (r *reader) unread(l *topology.Layer, kind string, ref source.Node) {
	why := kind + " " + cmp.Or(ref.Get("name").Text(), "without a name") + " is in no file"
	if kind == "RouteTimeoutFilter" {
		l.Overall = topology.NotKnown[time.Duration](why, ref.At())
	} else {
		l.Repeats = []topology.Repeat{{On: topology.AllOutcomes(), Tries: topology.NotKnown[int](why, ref.At()),
			At: ref.At()}}
	}
	r.remark("F702", ref.At(), l.Name+" "+kind, why+", so what it says is unknown", "give the audit the file with it")
}
