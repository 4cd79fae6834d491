package grpcconfig

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version of grpc-go whose defaults hold when nobody says which it is.
const assumedVersion = "1.80"

// key is a key as it is documented, and as Go programs write it: grpc-go reads a config with Go's JSON, to which a key
// in another case is the same.
func key(name string) string { return name + "|" + capital(name) }

func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// unknown returns remarks about the keys of n that gRPC does not have there.
func unknown(n source.Node, subject string, known ...string) []topology.Remark {
	all := slices.Clone(known)
	for _, name := range known {
		all = append(all, capital(name))
	}
	remarks := n.Unknown("gRPC", subject, all...)
	for i := range remarks {
		word := remarks[i].Subject[strings.LastIndexByte(remarks[i].Subject, ' ')+1:]
		remarks[i].Fix = source.Meant(word, known)
	}
	return remarks
}

// Recognise reports whether a document is a service config, or a list of choices of them as DNS has it.
func Recognise(d source.Document) bool {
	root := d.Root
	if items := root.Items(); len(items) > 0 {
		root = items[0].Get("serviceConfig")
	}
	policy := root.Get(key("retryPolicy"))
	return root.Get(key("methodConfig")).IsList() ||
		root.Get(key("retryThrottling")).IsMap() && !root.Get("kind").Exists() ||
		policy.Get(key("retryableStatusCodes")).Exists() || policy.Get(key("maxAttempts")).Exists()
}

// Read returns what the documents say. Each method that a config names becomes a policy for the callee that has the
// method; the caller is the owner of the document, where it is known.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	var out topology.Form
	for i := range docs {
		d := &docs[i]
		roots := []source.Node{d.Root}
		if items := d.Root.Items(); len(items) > 0 {
			roots = nil
			for _, item := range items {
				roots = append(roots, item.Get("serviceConfig"))
			}
		}
		for _, root := range roots {
			c := &config{doc: d, root: root, form: &out, version: assume.Version("grpc", assumedVersion)}
			c.read()
		}
	}
	return out
}

// config is one service config.
type config struct {
	doc     *source.Document
	root    source.Node
	form    *topology.Form
	version topology.Value[string]
	refused bool // the client will not take it
	seen    map[string]bool
}

func (c *config) product() string { return "gRPC " + c.version.V }

func (c *config) remark(rule string, n source.Node, subject, text, fix string) {
	c.form.Remarks = append(c.form.Remarks, topology.Remark{Rule: rule, At: n.At(), Subject: subject, Text: text,
		Fix: fix})
}

// refuse remarks what makes the client refuse the whole config.
func (c *config) refuse(n source.Node, subject, text, fix string) {
	c.refused = true
	c.remark("F606", n, subject, text+"; gRPC refuses the whole config, and then repeats nothing", fix)
}

var topKeys = []string{"methodConfig", "retryThrottling", "loadBalancingConfig", "loadBalancingPolicy",
	"healthCheckConfig",
	"appSpecificConfig"}

func (c *config) read() {
	c.seen = map[string]bool{}
	before := len(c.form.Policies)
	if p := c.root.Get(key("retryPolicy")); p.Exists() {
		c.remark("F602", p, "retryPolicy", "a retryPolicy beside methodConfig has no effect",
			"move it into an entry of methodConfig")
	}
	for _, r := range unknown(c.root, "service config", append([]string{"retryPolicy"}, topKeys...)...) {
		if !strings.HasPrefix(r.Subject, "service config $") {
			c.form.Remarks = append(c.form.Remarks, r)
		}
	}
	budget := c.throttle()
	for _, m := range c.root.Get(key("methodConfig")).Items() {
		c.method(m, budget)
	}
	slices.SortStableFunc(c.form.Policies[before:], func(a,
		b topology.Policy) int { // the narrowest name is looked at first
		return breadth(a.Layer.Match.Path) - breadth(b.Layer.Match.Path)
	})
	for i := before; i < len(c.form.Policies) && c.refused; i++ {
		l := &c.form.Policies[i].Layer // nothing of it is in force
		*l = topology.Layer{Kind: l.Kind, Choice: l.Choice, Product: l.Product, Version: l.Version, Name: l.Name +
			" (refused)", At: l.At, Match: l.Match,
			Cancels: l.Cancels, Overall: topology.NotKnown[time.Duration]("gRPC refuses the config", l.At)}
	}
}

func breadth(path string) int {
	switch {
	case path == "":
		return 2
	case strings.HasSuffix(path, "/*"):
		return 1
	}
	return 0
}

// throttle reads the budget that all methods share.
func (c *config) throttle() topology.Budget {
	n := c.root.Get(key("retryThrottling"))
	if !n.Exists() {
		return topology.Budget{}
	}
	b := topology.Budget{Tokens: scalar(c, n.Get(key("maxTokens")), source.Float),
		Ratio: scalar(c, n.Get(key("tokenRatio")), source.Float)}
	if most, ok := b.Tokens.Get(); !b.Tokens.IsUnknown() && (!ok || most <= 0 || most > 1000) {
		c.refuse(n, "retryThrottling maxTokens", "maxTokens must be above 0 and at most 1000", "write for example 10")
	}
	if ratio, ok := b.Ratio.Get(); !b.Ratio.IsUnknown() && (!ok || ratio <= 0) {
		c.refuse(n, "retryThrottling tokenRatio", "tokenRatio must be above 0", "write for example 0.1")
	}
	return b
}

func scalar[T topology.Scalar](c *config, n source.Node, parse func(string) (T, error)) topology.Value[T] {
	v, remarks := source.Scalar(n, parse)
	if len(remarks) > 0 {
		c.refused = true
		for i := range remarks {
			remarks[i].Rule = "F606"
		}
	}
	c.form.Remarks = append(c.form.Remarks, remarks...)
	return v
}

// method reads one entry of methodConfig.
func (c *config) method(m source.Node, budget topology.Budget) {
	retry, hedge := m.Get(key("retryPolicy")), m.Get(key("hedgingPolicy"))
	copies := topology.Hedge{}
	if hedge.Exists() && !retry.Exists() {
		copies = c.hedge(hedge)
	}
	l := topology.Layer{Kind: topology.Client, Product: "grpc", Version: c.version, At: m.At(),
		Overall: scalar(c, m.Get(key("timeout")), duration), Hedge: copies, Budget: budget,
		Cancels: topology.DefaultOf(true, c.product(), m.At())}
	c.form.Remarks = append(c.form.Remarks, unknown(m, "methodConfig", "name", "timeout", "retryPolicy",
		"hedgingPolicy", "waitForReady", "maxRequestMessageBytes", "maxResponseMessageBytes", "description", "comment")...)
	if retry.Exists() && hedge.Exists() {
		c.remark("F603", hedge, "hedgingPolicy",
			"a method has a retryPolicy or a hedgingPolicy, not both; grpc-go ignores the second, "+
				"others refuse the config", "remove one")
	}
	if retry.Exists() {
		c.retry(retry, &l)
	}
	if l.Repeats == nil && copies == (topology.Hedge{}) { // it still takes its calls away from wider entries
		l.Budget = topology.Budget{}
	}
	names := m.Get(key("name")).Items()
	for _, name := range names {
		service, method := name.Get(key("service")).Text(), name.Get(key("method")).Text()
		full := "/" + service + "/" + method
		if c.seen[full] {
			c.refuse(name, "name "+full, full+" is named twice", "remove one")
		}
		c.seen[full] = true
		one := l
		one.At, one.Choice = name.At(), "service config "+c.root.At().String()
		one.Name, one.Match.Path = c.title(service, method), full
		if method == "" {
			one.Match.Path = "/" + service + "/*"
		}
		if service == "" {
			one.Match.Path = ""
			if method != "" {
				c.refuse(name, "name", "a name has a method and no service", "write the service, with its package")
			}
		}
		p := topology.Policy{Callees: c.callees(service), Layer: one}
		if c.doc.Owner != "" {
			p.Callers = []string{c.doc.Owner}
		}
		c.form.Policies = append(c.form.Policies, p)
	}
	if len(names) == 0 {
		c.remark("F602", m, "methodConfig", "an entry without names is for no method", `write "name": [{}] for all methods`)
	}
}

func (c *config) title(service, method string) string {
	switch {
	case service == "":
		return "methodConfig of all methods"
	case method == "":
		return "methodConfig " + service
	}
	return "methodConfig " + service + "/" + method
}

// callees returns the names that the service behind a gRPC service may have: of shop.v1.OrderService they are
// orderservice, order-service and order. A config for all methods is named after its file.
func (c *config) callees(service string) []string {
	if service == "" {
		d := source.Document{File: c.doc.File}
		name := d.Service("grpc-target")
		for _, end := range []string{"_service_config", "-service-config", "_grpc", "-grpc"} {
			name = strings.TrimSuffix(name, end)
		}
		if name == "" || name == c.doc.Owner {
			name = "grpc-target"
		}
		return []string{name}
	}
	service = strings.Trim(service, ".")
	last := cmp.Or(service[strings.LastIndexByte(service, '.')+1:], "grpc-target")
	names := []string{strings.ToLower(last), kebab(last)}
	if stem := strings.TrimSuffix(last, "Service"); stem != last && stem != "" {
		names = append(names, kebab(stem))
	}
	return slices.Compact(names)
}

// kebab writes OrderService as order-service.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
