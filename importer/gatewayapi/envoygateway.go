package gatewayapi

import (
	"strconv"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

var (
	policyRetryKeys = []string{"numRetries", "numAttemptsPerPriority", "retryOn", "perRetry"}
	breakerKeys     = []string{"maxConnections", "maxPendingRequests", "maxParallelRequests", "maxParallelRetries",
		"maxRequestsPerConnection", "perEndpoint", "retryBudget"}
)

// ofEnvoyGateway reads a rule as Envoy Gateway does: without a retry block there are no retries.
func (r *reader) ofEnvoyGateway(l *topology.Layer, o source.Resource, p parent, rule source.Node) {
	own := rule.Get("retry")
	traffic := r.trafficOf(o, p, rule)
	block := traffic.get("retry")
	r.limits(l, rule, own.Written() || block.Written())
	l.Overall = envoywords.Or(l.Overall, envoywords.Or(read(r, traffic.get("timeout").Get("http", "requestTimeout"),
		source.Duration),
		topology.DefaultOf(envoywords.RouteTimeout, p.who, l.At)))
	l.Connect = envoywords.Or(read(r, traffic.get("timeout").Get("tcp", "connectTimeout"), source.Duration),
		topology.DefaultOf(10*time.Second, p.who, l.At))
	switch {
	case own.Written():
		r.retry(l, p, own, []source.Part{{Text: "503", At: own.At()}})
	case block.Written():
		r.block(l, p, block)
	default:
		l.Repeats = []topology.Repeat{envoywords.Off(topology.DefaultOf(1, p.who, l.At), "", l.At)}
	}
	if open := traffic.get("httpUpgrade"); len(open.Items()) > 0 {
		l.Upgrades = topology.Write(true, open.At())
	}
	r.breaker(l, p, traffic.get("circuitBreaker"))
	if v := &l.Budget.Concurrent; v.Origin == topology.Default && v.At == l.At && block.Written() {
		v.At = block.At() // the policy is where a cap belongs
	}
	if passive := traffic.get("healthCheck").Get("passive"); passive.Written() {
		l.Ejection = r.passive(passive, p.who)
	}
}

// block reads the retry of a BackendTrafficPolicy.
func (r *reader) block(l *topology.Layer, p parent, n source.Node) {
	subject := l.Name + " retry"
	r.form.Remarks = append(r.form.Remarks, n.Unknown("Envoy Gateway", subject, policyRetryKeys...)...)
	on, each := n.Get("retryOn"), n.Get("perRetry")
	r.form.Remarks = append(r.form.Remarks, on.Unknown("Envoy Gateway", subject+".retryOn", "triggers",
		"httpStatusCodes")...)
	r.form.Remarks = append(r.form.Remarks, each.Unknown("Envoy Gateway", subject+".perRetry", "timeout", "backOff")...)
	tries := envoywords.Or(envoywords.PlusOne(read(r, n.Get("numRetries"), source.Int)),
		topology.DefaultOf(1+defaultRetries, p.who, n.At()))
	codes := on.Get("httpStatusCodes").Parts(",")
	policy := words(n.At(), []source.Part{{Text: "503", At: n.At()}})
	if len(codes) > 0 {
		policy.Codes = codes
	}
	if triggers := on.Get("triggers").Parts(","); len(triggers) > 0 {
		policy.Words, policy.Codes = triggers, codes
	}
	policy.Product, policy.Subject, policy.Tries, policy.Elsewhere = "Envoy Gateway", subject, tries, true
	repeats, more := policy.Repeats()
	l.Repeats, r.form.Remarks = repeats, append(r.form.Remarks, more...)
	if one := read(r, each.Get("timeout"), source.Duration); !one.IsZero() && l.PerTry.IsZero() {
		l.PerTry = one
	}
	l.Backoff = envoywords.Backoff(read(r, each.Get("backOff", "baseInterval"), source.Duration),
		read(r, each.Get("backOff", "maxInterval"), source.Duration), p.who, n.At())
}

// breaker reads circuitBreaker, which is caps of what is in flight. Envoy Gateway lifts Envoy's cap of 3 retries to
// 1024.
func (r *reader) breaker(l *topology.Layer, p parent, n source.Node) {
	at := l.At
	if n.Written() {
		at = n.At()
		r.form.Remarks = append(r.form.Remarks, n.Unknown("Envoy Gateway", l.Name+" circuitBreaker", breakerKeys...)...)
	}
	limit := func(key string) value[int] {
		return envoywords.Or(read(r, n.Get(key), source.Int), topology.DefaultOf(envoywords.ClusterLimit, p.who, at))
	}
	l.Limits = topology.Limits{Requests: limit("maxParallelRequests"), Pending: limit("maxPendingRequests"),
		Connections: limit("maxConnections")}
	l.Budget.Concurrent = limit("maxParallelRetries")
	budget := n.Get("retryBudget")
	if !budget.Written() {
		return
	}
	percent := budget.Get("percent")
	if percent.IsMap() {
		l.Budget.Share = r.fraction(percent)
	} else {
		l.Budget.Share = read(r, percent, hundredth)
	}
	l.Budget.Share = envoywords.Or(l.Budget.Share, topology.DefaultOf(envoywords.BudgetShare, p.who, budget.At()))
	l.Budget.Concurrent = envoywords.Or(read(r, budget.Get("minRetryConcurrency"), source.Int),
		topology.DefaultOf(envoywords.BudgetLeast, p.who, budget.At()))
}

// fraction reads {numerator: 1, denominator: 5}; a denominator that is left out is 100.
func (r *reader) fraction(n source.Node) value[float64] {
	v := read(r, n.Get("numerator"), source.Float)
	of := read(r, n.Get("denominator"), source.Float)
	if d := of.Or(100); v.Origin == topology.Written && d > 0 {
		v.V /= d
	}
	return v
}

func (r *reader) passive(n source.Node, who string) topology.Ejection {
	e := envoywords.Ejection(who, n.At())
	e.Consecutive = envoywords.Or(read(r, n.Get("consecutive5XxErrors"), source.Int), e.Consecutive)
	e.Interval = envoywords.Or(read(r, n.Get("interval"), source.Duration), topology.DefaultOf(3*time.Second, who, n.At()))
	e.Base = envoywords.Or(read(r, n.Get("baseEjectionTime"), source.Duration), e.Base)
	e.MaxShare = envoywords.Or(read(r, n.Get("maxEjectionPercent"), hundredth), e.MaxShare)
	return e
}

func hundredth(word string) (float64, error) {
	f, err := source.Float(word)
	if err == nil && f > 100 {
		return 0, errShare(word)
	}
	return f / 100, err
}

type errShare string

func (e errShare) Error() string { return strconv.Quote(string(e)) + " is no share from 0 to 100" }
