package kuma

import (
	"slices"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type (
	scalar                   = topology.Scalar
	value[T topology.Scalar] = topology.Value[T]
)

// rule is one entry of a policy's to list: what holds for calls of some callee by some callers.
type rule struct {
	kind           string // MeshRetry, …
	caller, callee string // empty for all
	conf           source.Node
	of             source.Resource
}

// reader holds the policies of all files while layers are made of them.
type reader struct {
	version value[string]
	who     string // whose defaults: "Kuma 2.12"
	rules   []rule
	confs   map[place][]source.Node // the last written first
	first   map[[2]string]int       // the first MeshRetry for a caller and a callee: its place among the rules
	skipped map[string]bool         // kinds whose initial policies are not made
	at      topology.Position
	form    topology.Form
}

// Read returns what the documents, all of them recognised, say, and what a mesh does besides.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{version: assume.Version("kuma", latest), skipped: map[string]bool{}, confs: map[place][]source.Node{},
		first: map[[2]string]int{}}
	r.who = "Kuma " + r.version.V
	for _, d := range docs {
		o := resource(d)
		if r.at.IsZero() || o.Kind == "Mesh" {
			r.at = o.At
		}
		if o.Kind == "Mesh" {
			for _, kind := range o.Spec.Get("skipCreatingInitialPolicies").Texts() {
				r.skipped[kind] = true
			}
			continue
		}
		r.policy(o)
	}
	if len(docs) == 0 {
		return r.form
	}
	for _, pair := range r.pairs() {
		r.emit(pair[0], pair[1])
	}
	r.form.Remarks = source.Distinct(r.form.Remarks)
	return r.form
}

func (r *reader) policy(o source.Resource) {
	caller := ""
	if top := o.Spec.Get("targetRef"); top.Exists() {
		caller = service(top)
	}
	for _, to := range o.Spec.Get("to").List() {
		target := to.Get("targetRef")
		one := rule{kind: o.Kind, caller: caller, conf: to.Get("default"), of: o}
		switch kind := target.Get("kind").Text(); kind {
		case "Mesh", "":
		case "MeshService", "MeshExternalService", "MeshMultiZoneService":
			if one.callee = service(target); one.callee == "" {
				continue
			}
		default: // a route, whose services another file says
			r.remark("F702", target.At(), o.String()+" target", "which services the "+kind+" "+target.Get("name").Text()+
				" is for is not read here", "say the result in a topology file, or audit a config_dump")
			continue
		}
		r.rules = append(r.rules, one)
		at := place{one.kind, one.caller, one.callee}
		if _, known := r.first[[2]string{one.caller, one.callee}]; !known && one.kind == "MeshRetry" {
			r.first[[2]string{one.caller, one.callee}] = len(r.rules) - 1
		}
		r.confs[at] = slices.Insert(r.confs[at], 0, one.conf)
	}
}

// pairs returns each caller and callee that some policy names; the last is for all others.
func (r *reader) pairs() [][2]string {
	var out [][2]string
	seen := map[[2]string]bool{}
	add := func(caller, callee string) {
		if p := [2]string{caller, callee}; !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	var everywhere []string // callers with policies for all callees
	for _, one := range r.rules {
		if one.caller != "" && one.callee == "" && !slices.Contains(everywhere, one.caller) {
			everywhere = append(everywhere, one.caller)
		}
	}
	for _, one := range r.rules {
		if one.callee != "" {
			add(one.caller, one.callee)
			for _, caller := range everywhere {
				add(caller, one.callee)
			}
		}
	}
	for _, caller := range everywhere {
		add(caller, "")
	}
	add("", "")
	return out
}

// conf is the settings of one kind for one caller and callee, the most special first.
type conf []source.Node

func (c conf) get(path ...string) source.Node {
	for _, n := range c {
		if found := n.Get(path...); found.Written() {
			return found
		}
	}
	return source.Node{}
}

func (r *reader) conf(kind, caller, callee string) conf {
	var out conf
	var seen []place
	for _, at := range []place{{kind, caller, callee}, {kind, "", callee}, {kind, caller, ""}, {kind, "", ""}} {
		if !slices.Contains(seen, at) {
			seen = append(seen, at)
			out = append(out, r.confs[at]...)
		}
	}
	return out
}

// place is where a setting holds: calls of a callee by a caller, either of which may be empty for all.
type place struct{ kind, caller, callee string }

func (r *reader) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: subject, Text: text, Fix: fix})
}

// read is source.Scalar, whose remarks are added to the form's.
func read[T scalar](r *reader, n source.Node, parse func(string) (T, error)) value[T] {
	v, more := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

// initial returns what the policies say that Kuma makes for every mesh, unless the mesh goes without them.
func initial[T scalar](r *reader, kind string, v T) value[T] {
	if r.skipped["*"] || r.skipped[kind] {
		return value[T]{}
	}
	return topology.DefaultOf(v, r.who+" for every mesh", r.at)
}

// emit adds the layer of the calls of a callee by a caller; both may be empty for all others.
func (r *reader) emit(caller, callee string) {
	name, at := "MeshRetry of every mesh", r.at
	if found := r.nearest(caller, callee); found.kind != "" {
		name, at = found.of.String(), found.conf.At()
	}
	l := topology.Layer{Kind: topology.SidecarOut, Product: "kuma", Version: r.version, Name: name, At: at,
		Choice: "the routes of the sidecar", Answers: envoywords.Answers(), Cancels: topology.DefaultOf(true, r.who, at),
		Overridable: topology.DefaultOf(false, r.who, at)}
	r.retries(&l, r.conf("MeshRetry", caller, callee))
	r.limits(&l, caller, callee)
	p := topology.Policy{Callees: []string{callee}, Layer: l}
	if caller != "" {
		p.Callers = []string{caller}
	}
	if callee == "" {
		if p.Callees = []string{"*"}; caller == "" {
			p.Callers = []string{"*"}
		}
	}
	r.form.Policies = append(r.form.Policies, p)
}

// nearest returns the MeshRetry that is most special for a call.
func (r *reader) nearest(caller, callee string) rule {
	for _, at := range [][2]string{{caller, callee}, {"", callee}, {caller, ""}, {"", ""}} {
		if i, found := r.first[at]; found {
			return r.rules[i]
		}
	}
	return rule{}
}

// limits adds what MeshTimeout and MeshCircuitBreaker say.
func (r *reader) limits(l *topology.Layer, caller, callee string) {
	times := r.conf("MeshTimeout", caller, callee)
	l.Connect = envoywords.Or(read(r, times.get("connectionTimeout"), source.Duration),
		envoywords.Or(initial(r, "MeshTimeout", 5*time.Second), topology.DefaultOf(5*time.Second, r.who, l.At)))
	l.Overall = envoywords.Or(read(r, times.get("http", "requestTimeout"), source.Duration),
		envoywords.Or(initial(r, "MeshTimeout", 15*time.Second), topology.DefaultOf(15*time.Second, r.who, l.At)))
	caps := r.conf("MeshCircuitBreaker", caller, callee)
	limit := func(key string, byDefault int) value[int] {
		return envoywords.Or(read(r, caps.get("connectionLimits", key), source.Int),
			envoywords.Or(initial(r, "MeshCircuitBreaker", byDefault), topology.DefaultOf(byDefault, r.who, l.At)))
	}
	l.Limits = topology.Limits{Requests: limit("maxRequests", envoywords.ClusterLimit),
		Pending: limit("maxPendingRequests", envoywords.ClusterLimit), Connections: limit("maxConnections",
			envoywords.ClusterLimit)}
	l.Budget.Concurrent = limit("maxRetries", envoywords.ClusterRetry)
	outliers := caps.get("outlierDetection")
	if !outliers.Written() || outliers.Get("disabled").Text() == "true" {
		return
	}
	l.Ejection = envoywords.Ejection(r.who, outliers.At())
	l.Ejection.Interval = envoywords.Or(read(r, outliers.Get("interval"), source.Duration), l.Ejection.Interval)
	l.Ejection.Base = envoywords.Or(read(r, outliers.Get("baseEjectionTime"), source.Duration), l.Ejection.Base)
	l.Ejection.MaxShare = envoywords.Or(read(r, outliers.Get("maxEjectionPercent"), hundredth), l.Ejection.MaxShare)
	l.Ejection.Consecutive = envoywords.Or(read(r, outliers.Get("detectors", "totalFailures", "consecutive"), source.Int),
		l.Ejection.Consecutive)
}

func hundredth(word string) (float64, error) {
	f, err := source.Float(word)
	return f / 100, err
}
