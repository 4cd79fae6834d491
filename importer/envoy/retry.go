package envoy

import (
	"strings"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

var retryKeys = keys("retry_on", "num_retries", "per_try_timeout", "per_try_idle_timeout", "retry_priority",
	"retry_host_predicate", "retry_options_predicates", "host_selection_retry_max_attempts", "retriable_status_codes",
	"retry_back_off", "rate_limited_retry_back_off", "retriable_headers", "retriable_request_headers")

// retries adds a retry_policy to a layer.
func (o *output) retries(l *topology.Layer, policy source.Node, subject string) {
	who := o.proxy.who
	o.unknown(policy, subject, retryKeys)
	l.PerTry = read(get(policy, "per_try_timeout"), source.Duration, &o.remarks)
	tries := envoywords.Or(read(get(policy, "num_retries"), count, &o.remarks),
		topology.DefaultOf(envoywords.Retries, who, policy.At()))
	words := get(policy, "retry_on").Parts(",")
	if len(words) == 0 {
		o.remarks = append(o.remarks, topology.Remark{Rule: "F602", At: policy.At(), Subject: subject + " retry_policy",
			Text: "this retry_policy repeats nothing, because it has no retry_on",
			Fix:  "say in retry_on what to repeat, or remove the policy"})
		return
	}
	methods, listed := retriedMethods(get(policy, "retriable_request_headers"))
	repeats, more := envoywords.Policy{
		Product: "Envoy", Subject: subject, Words: words, Codes: get(policy, "retriable_status_codes").Parts(","),
		Tries: envoywords.PlusOne(tries), Methods: methods, Listed: listed,
		Elsewhere: avoidsPrevious(policy), Hedged: l.Beside.Or(false),
	}.Repeats()
	l.Repeats, o.remarks = append(l.Repeats, repeats...), append(o.remarks, more...)
	backoff := get(policy, "retry_back_off")
	at := policy.At()
	if backoff.Exists() {
		at = backoff.At()
	}
	l.Backoff = envoywords.Backoff(read(get(backoff, "base_interval"), source.Duration, &o.remarks),
		read(get(backoff, "max_interval"), source.Duration, &o.remarks), who, at)
	if limited := get(policy, "rate_limited_retry_back_off"); get(limited, "reset_headers").Exists() {
		l.Backoff.RetryAfter = topology.Write(true, limited.At())
	}
}

func avoidsPrevious(policy source.Node) bool {
	for _, predicate := range get(policy, "retry_host_predicate").List() {
		if strings.Contains(predicate.Get("name").Text(), "previous_hosts") {
			return true
		}
	}
	return false
}

var safeMethods = map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "PUT": true, "DELETE": true,
	"TRACE": true}

// retriedMethods returns the kinds of methods that a policy repeats, and the methods. Matchers that are about anything
// but a method leave it open.
func retriedMethods(matchers source.Node) (kinds topology.Methods, listed []string) {
	for _, h := range matchers.List() {
		methods := methodsOf(h)
		if len(methods) == 0 {
			return 0, nil
		}
		listed = append(listed, methods...)
		if safeMethods[methods[0]] {
			kinds |= topology.Safe
		} else {
			kinds |= topology.Unsafe
		}
	}
	return kinds, listed
}

// tcp adds a TCP proxy, which only opens connections again.
func (o *output) tcp(filter source.Node) {
	p := o.proxy
	l := topology.Layer{Kind: p.kind, Product: "envoy", Version: p.version, At: filter.At(),
		Name: "TCP proxy " + get(filter, "stat_prefix").Text()}
	tries := envoywords.Or(read(get(filter, "max_connect_attempts"), count, &o.remarks), topology.DefaultOf(1, p.who,
		filter.At()))
	l.Repeats = []topology.Repeat{{On: []topology.Outcome{topology.Refused}, Tries: tries, Word: "max_connect_attempts",
		At: filter.At()}}
	if name := filter.Get("cluster").Text(); name != "" {
		o.add(name, l, false)
	}
	for _, w := range get(filter, "weighted_clusters", "clusters").List() {
		o.add(w.Get("name").Text(), l, false)
	}
}
