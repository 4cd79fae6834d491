package traefik

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// traefik turns a configuration into calls.
type traefik struct {
	*configuration
	form    *topology.Form
	service string
	version topology.Value[string]

	mentions func(text string) bool // of source.Assume
}

func (t *traefik) product() string { return "Traefik " + t.version.V }

func (t *traefik) calls() {
	for _, r := range t.routers {
		if t.redirects(&r) {
			continue
		}
		var retries []*middleware
		for _, name := range r.middlewares {
			retries = append(retries, t.tried(name, map[string]bool{})...)
		}
		for _, name := range r.services {
			t.route(&r, name, retries, map[string]bool{})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.middlewares)) {
		if m := t.middlewares[name]; m.retry != nil && !m.used && !t.mentioned(name) {
			t.form.Remarks = append(t.form.Remarks, topology.Remark{Rule: "F602", At: m.at,
				Subject: "middleware " + name, Text: "no router uses the retry middleware " + name + ", so it has no effect",
				Fix: "name it under the middlewares of a router, or remove it"})
		}
	}
}

// mentioned reports whether a text names a middleware as an Ingress does. Where a program puts the text together, as in
// Terraform, no router is seen to use it.
func (t *traefik) mentioned(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return t.mentions != nil && t.mentions("-"+name+"@kubernetescrd")
}

// tried returns the retry middlewares that a name stands for, each once.
func (t *traefik) tried(name string, seen map[string]bool) []*middleware {
	m := t.middlewares[name]
	if resource, known := t.resources[name]; known && m == nil {
		m = t.middlewares[resource]
	}
	if m == nil || seen[name] {
		return nil
	}
	seen[name] = true
	var out []*middleware
	if m.retry != nil {
		m.used, out = true, append(out, m)
	}
	for _, inner := range m.chain {
		out = append(out, t.tried(inner, seen)...)
	}
	return out
}

// redirects reports that a router sends nothing on: it redirects to TLS what did not come over TLS, and another router
// has the same services. A router without another may have the TLS of its entry point, which stands elsewhere.
func (t *traefik) redirects(r *router) bool {
	return t.toTLS(r) && slices.ContainsFunc(t.routers, func(other router) bool {
		return !t.toTLS(&other) && slices.Equal(other.services, r.services)
	})
}

func (t *traefik) toTLS(r *router) bool {
	return !r.tls && slices.ContainsFunc(r.middlewares, func(name string) bool { return t.https(name, map[string]bool{}) })
}

// https reports whether a middleware, or one of its chain, redirects to TLS.
func (t *traefik) https(name string, seen map[string]bool) bool {
	m := t.middlewares[name]
	if resource, known := t.resources[name]; known && m == nil {
		m = t.middlewares[resource]
	}
	if m == nil || seen[name] {
		return false
	}
	seen[name] = true
	return m.https || slices.ContainsFunc(m.chain, func(inner string) bool { return t.https(inner, seen) })
}

// route makes the calls of one router to one service, or to those that it is made of.
func (t *traefik) route(r *router, name string, retries []*middleware, seen map[string]bool) {
	g := t.services[name]
	if g == nil || seen[name] {
		return
	}
	seen[name] = true
	for _, other := range g.others {
		t.route(r, other, retries, seen)
	}
	if g.servers == 0 {
		return
	}
	to, aliases := source.Behind(plain(name), g.hosts)
	if to == "" || to == t.service { // the pages of Traefik itself
		return
	}
	if len(aliases) > 0 {
		t.form.Services = append(t.form.Services, topology.Service{Name: to, At: g.at, Aliases: aliases})
	}
	call := topology.Call{From: t.service, To: to, At: r.at}
	for i, m := range retries {
		l := t.layer(r, g, i)
		t.retry(m, g, &l)
		call.Layers = append(call.Layers, l)
	}
	if len(retries) == 0 {
		call.Layers = []topology.Layer{t.layer(r, g, 0)}
	}
	t.form.Calls = append(t.form.Calls, call)
}

var condition = regexp.MustCompile("(Host|PathPrefix|Path)\\([`\"']([^`\"']+)[`\"']\\)")

// layer is a router with the limits of its transport.
func (t *traefik) layer(r *router, g *group, n int) topology.Layer {
	l := topology.Layer{Kind: topology.Gateway, Product: "traefik", Version: t.version, Name: "router " + r.name, At: r.at,
		Choice:  "traefik " + t.service + ", middleware " + strconv.Itoa(n+1),
		Backoff: topology.Backoff{First: topology.DefaultOf(time.Duration(0), t.product(), r.at)},
		Cancels: topology.DefaultOf(true, t.product(), r.at),
		Answers: []topology.Answer{{After: topology.Refused, Gives: topology.S502},
			{After: topology.ResetUnsent, Gives: topology.S502}, {After: topology.ResetSent, Gives: topology.S502},
			{After: topology.Hang, Gives: topology.S504}}}
	l.Match = r.match
	if g.h2c { // which is how it is told that there is gRPC
		l.Speaks = topology.Write(topology.SpeaksGRPC, g.at)
	}
	for _, m := range condition.FindAllStringSubmatch(r.rule, -1) {
		switch m[1] {
		case "Host":
			l.Match.Host = m[2]
		case "PathPrefix":
			l.Match.Path = m[2] + "*"
		case "Path":
			l.Match.Path = m[2]
		}
	}
	own := t.transports[g.transport] // which replaces the one that Traefik starts with
	limits := own.Get("forwardingTimeouts")
	limit := func(key string, byDefault time.Duration) topology.Value[time.Duration] {
		v, remarks := source.Scalar(limits.Get(key), source.DurationIn(time.Second))
		t.form.Remarks = append(t.form.Remarks, remarks...)
		if started, ok := t.started[strings.ToLower(key)]; ok && v.IsZero() && !own.Exists() {
			v = started
		}
		if v.IsZero() {
			return topology.DefaultOf(byDefault, t.product(), r.at)
		}
		return v
	}
	l.PerTry, l.Connect = limit("responseHeaderTimeout", 0), limit("dialTimeout", 30*time.Second)
	return l
}

// value reads a setting of a middleware.
func value[T topology.Scalar](t *traefik, w word, parse func(string) (T, error)) topology.Value[T] {
	if !w.set {
		return topology.Value[T]{}
	}
	v, remarks := source.Word(w.text, w.at, parse)
	t.form.Remarks = append(t.form.Remarks, remarks...)
	return v
}

// retry reads what a retry middleware repeats. attempts counts the first try.
func (t *traefik) retry(m *middleware, g *group, l *topology.Layer) {
	tries := value(t, m.retry("attempts"), source.Int)
	if tries.IsZero() {
		t.form.Remarks = append(t.form.Remarks, topology.Remark{Rule: "F606", At: m.at, Subject: "middleware " + m.name,
			Text: "a retry middleware without attempts is refused", Fix: "write how many tries a request may make in all"})
		return
	}
	if n, known := tries.Get(); known && n == 0 {
		t.form.Remarks = append(t.form.Remarks, topology.Remark{Rule: "F606", At: tries.At, Subject: "middleware " + m.name,
			Text: "attempts counts the first try; Traefik refuses 0, and with it each router that uses the middleware",
			Fix:  "write 1 for no retry, or leave the middleware out"})
		return
	}
	l.Overall = value(t, m.retry("timeout"), source.DurationIn(time.Second))
	repeat := func(word string, at topology.Position, methods topology.Methods, on ...topology.Outcome) {
		l.Repeats = append(l.Repeats, topology.Repeat{On: on, Methods: methods, Tries: tries, Word: word, At: at,
			Elsewhere: g.servers > 1})
	}
	if off := value(t, m.retry("disableRetryOnNetworkError"), source.Bool); !off.Or(false) {
		repeat("attempts", m.at, topology.AllMethods, topology.Refused, topology.ResetUnsent)
	}
	methods := topology.Safe
	if value(t, m.retry("retryNonIdempotentMethod"), source.Bool).Or(false) {
		methods = topology.AllMethods
	}
	if status := m.retry("status"); status.set && !source.Before(t.version.V, "3.7") {
		if on := within(status.text); len(on) > 0 {
			repeat("status", status.at, methods, on...)
		}
	} else if status.set {
		t.form.Remarks = append(t.form.Remarks, topology.Remark{Rule: "F601", At: status.at,
			Subject: "middleware " + m.name + " status",
			Text:    t.product() + " does not know status, which came with 3.7, so it does nothing",
			Fix:     "raise Traefik"})
	}
	if first := value(t, m.retry("initialInterval"), source.DurationIn(time.Second)); !first.IsZero() {
		l.Backoff.First = first
		l.Backoff.Max = topology.DefaultOf(2*first.V, t.product()+", twice the first", m.at)
		l.Backoff.Multiplier = topology.DefaultOf(1.5, t.product(), m.at)
		l.Backoff.Jitter = topology.DefaultOf("±50%", t.product(), m.at)
	}
}

var statuses = []struct {
	code int
	o    topology.Outcome
}{{500, topology.S500}, {502, topology.S502}, {503, topology.S503}, {504, topology.S504}, {429, topology.S429},
	{408, topology.S408}, {409, topology.S409}, {404, topology.S4xx}}

// within returns the outcomes in a list of statuses and ranges of them: 500-599,429.
func within(list string) []topology.Outcome {
	var on []topology.Outcome
	for _, s := range statuses {
		for part := range strings.SplitSeq(list, ",") {
			low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
			a, err := strconv.Atoi(low)
			b := a
			if isRange {
				b, _ = strconv.Atoi(high)
			}
			if err == nil && a <= s.code && s.code <= b {
				on = append(on, s.o)
				break
			}
		}
	}
	return on
}
