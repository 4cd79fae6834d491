package istio

import (
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

var (
	poolKeys = []string{"http1MaxPendingRequests", "http2MaxRequests", "maxRequestsPerConnection", "maxRetries",
		"idleTimeout",
		"h2UpgradePolicy", "useClientProtocol", "maxConcurrentStreams", "http2KeepAlive"}
	outlierKeys = []string{"consecutive5xxErrors", "consecutiveGatewayErrors", "consecutiveLocalOriginFailures",
		"splitExternalLocalOriginErrors", "interval", "baseEjectionTime", "maxEjectionPercent", "minHealthPercent"}
)

// traffic is a trafficPolicy with the more special ones of a subset and a port laid over it.
type traffic struct{ pool, outliers, budget, balancer source.Node }

func (t *traffic) lay(n source.Node, whole bool) {
	over := traffic{n.Get("connectionPool"), n.Get("outlierDetection"), n.Get("retryBudget"), n.Get("loadBalancer")}
	if whole {
		*t = over
		return
	}
	for _, part := range []struct{ into, from *source.Node }{{&t.pool, &over.pool}, {&t.outliers, &over.outliers},
		{&t.budget, &over.budget}, {&t.balancer, &over.balancer}} {
		if part.from.Written() {
			*part.into = *part.from
		}
	}
}

// trafficOf returns what a DestinationRule says for a subset and a port, which may be empty. What a port says replaces
// the rest.
func trafficOf(rule resource, subset, port string) (t traffic) {
	policies := []source.Node{rule.Spec.Get("trafficPolicy")}
	for _, s := range rule.Spec.Get("subsets").Items() {
		if subset != "" && s.Get("name").Text() == subset {
			policies = append(policies, s.Get("trafficPolicy"))
		}
	}
	for _, p := range policies {
		t.lay(p, false)
		for _, of := range p.Get("portLevelSettings").Items() {
			if number := of.Get("port", "number").Text(); number != "" && number == port {
				t.lay(of, true)
			}
		}
	}
	return t
}

// limits adds to a layer what a DestinationRule says, or Istio's defaults where there is none. It reports whether the
// endpoint is chosen by a hash.
func (r *reader) limits(l *topology.Layer, rule resource, subset, port string) (hashed bool) {
	t := trafficOf(rule, subset, port)
	at := l.At
	if rule.Kind != "" {
		at = rule.At
	}
	l.Connect = envoywords.Or(read(r, t.pool.Get("tcp", "connectTimeout"), source.Duration),
		envoywords.Or(read(r, r.mesh.connect, source.Duration), topology.DefaultOf(10*time.Second, r.who, at)))
	http := t.pool.Get("http")
	l.Limits = topology.Limits{
		Requests:    r.limit(http.Get("http2MaxRequests"), at),
		Pending:     r.limit(http.Get("http1MaxPendingRequests"), at),
		Connections: r.limit(t.pool.Get("tcp", "maxConnections"), at),
	}
	l.Budget = r.budget(t.budget, http.Get("maxRetries"), at)
	if t.outliers.Written() {
		l.Ejection = r.ejection(t.outliers)
	}
	return t.balancer.Get("consistentHash").Exists()
}

// limit reads a limit of a connection pool. None and 0 are the same, which is no limit.
func (r *reader) limit(n source.Node, at topology.Position) value[int] {
	v := read(r, n, source.Int)
	if number, known := v.Get(); v.IsZero() || known && number == 0 {
		return topology.DefaultOf(topology.Unbounded, r.who, at)
	}
	return v
}

func (r *reader) budget(n, retries source.Node, at topology.Position) topology.Budget {
	if !n.Written() || source.Before(r.version.V, "1.27") {
		return topology.Budget{Concurrent: r.limit(retries, at)}
	}
	b := topology.Budget{Share: read(r, n.Get("percent"), percent), Concurrent: read(r, n.Get("minRetryConcurrency"),
		source.Int),
		Window: read(r, n.Get("budgetInterval"), source.Duration)}
	if b.Share.IsZero() {
		b.Share = topology.DefaultOf(envoywords.BudgetShare, r.who, n.At())
		if source.Before(r.version.V, "1.30") { // mended in March 2026
			b.Share = topology.DefaultOf(envoywords.BudgetShare/100, r.who+", which takes 0.2 for 0.2 %", n.At())
		}
	}
	if least, known := b.Concurrent.Get(); b.Concurrent.IsZero() || known && least == 0 {
		b.Concurrent = topology.DefaultOf(envoywords.BudgetLeast, r.who, n.At())
	}
	return b
}

func (r *reader) ejection(n source.Node) topology.Ejection {
	e := envoywords.Ejection(r.who, n.At())
	e.Consecutive = envoywords.Or(read(r, n.Get("consecutive5xxErrors"), source.Int), e.Consecutive)
	if e.Consecutive.Or(1) == 0 { // off
		e.Consecutive = read(r, n.Get("consecutiveGatewayErrors"), source.Int)
	}
	e.Interval = envoywords.Or(read(r, n.Get("interval"), source.Duration), e.Interval)
	e.Base = envoywords.Or(read(r, n.Get("baseEjectionTime"), source.Duration), e.Base)
	if share := read(r, n.Get("maxEjectionPercent"), percent); !share.IsZero() && share.Or(1) != 0 {
		e.MaxShare = share
	}
	return e
}

func percent(word string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if err != nil || !(f >= 0) || f > 100 {
		return 0, errPercent(word)
	}
	return f / 100, nil
}

type errPercent string

func (e errPercent) Error() string { return strconv.Quote(string(e)) + " is no share from 0 to 100" }

// checkRule remarks what a DestinationRule says without effect.
func (r *reader) checkRule(rule resource) {
	policies := []source.Node{rule.Spec.Get("trafficPolicy")}
	for _, s := range rule.Spec.Get("subsets").Items() {
		policies = append(policies, s.Get("trafficPolicy"))
	}
	for _, p := range policies {
		policies = append(policies, p.Get("portLevelSettings").Items()...)
	}
	for _, p := range policies {
		subject := rule.String()
		r.checkPool(subject, p.Get("connectionPool"))
		outliers := p.Get("outlierDetection")
		for _, remark := range outliers.Unknown("Istio", subject, outlierKeys...) {
			if strings.HasSuffix(remark.Subject, " consecutiveErrors") {
				remark.Text = "Istio ignores consecutiveErrors, which is deprecated, so it does nothing"
				remark.Fix = "write consecutive5xxErrors, which it was renamed to"
			}
			r.form.Remarks = append(r.form.Remarks, remark)
		}
		if budget := p.Get("retryBudget"); budget.Written() && source.Before(r.version.V, "1.27") {
			r.remark("F601", budget.At(), subject+" retryBudget",
				"Istio "+r.version.V+" has no retryBudget: it came with 1.27, so it does nothing", "remove it, or update Istio")
		}
	}
}

// checkPool remarks what a connection pool says without effect.
func (r *reader) checkPool(subject string, pool source.Node) {
	http := pool.Get("http")
	r.form.Remarks = append(r.form.Remarks, http.Unknown("Istio", subject, poolKeys...)...)
	for _, limit := range []source.Node{http.Get("maxRetries"), http.Get("http1MaxPendingRequests"),
		http.Get("http2MaxRequests"), pool.Get("tcp", "maxConnections")} {
		if limit.Text() == "0" {
			r.remark("F604", limit.At(), subject+" limit of 0",
				"Istio cannot tell a limit that is written as 0 from none, so there is no limit",
				"write 1 for the least that it knows")
		}
	}
}

// rulesAlone makes policies of DestinationRules for hosts that no VirtualService is for: the retries there are
// implicit.
func (r *reader) rulesAlone() {
	for _, rule := range r.rules {
		r.checkRule(rule)
		host := rule.Spec.Get("host")
		name := resolve(host.Text(), rule.Namespace)
		if first, _, _ := strings.Cut(name, "."); first == "istio-egressgateway" {
			continue // nobody calls it: routes of other hosts send requests there
		}
		if name == "" || strings.Contains(name, "*") || source.Template(name) != "" || r.index.routed[name] ||
			r.bare(rule.Namespace) {
			continue
		}
		l := r.layer(topology.SidecarOut, rule.String(), rule.At)
		l.Overall = topology.DefaultOf(time.Duration(0), r.who, rule.At)
		hashed := r.limits(&l, rule, "", "")
		r.retries(&l, source.Node{}, !hashed)
		r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{host.Text()}, Namespace: rule.Namespace,
			Layer: l})
	}
}
