package gatewayapi

import (
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// defaultRetries are those of Istio and of Envoy Gateway where attempts or numRetries is left out.
const defaultRetries = 2

var safeWords = []string{"connect-failure", "refused-stream", "unavailable", "cancelled"}

// words returns a product's own conditions as Envoy's words, with status codes where there are any.
func words(at topology.Position, codes []source.Part) envoywords.Policy {
	var p envoywords.Policy
	for _, w := range safeWords {
		p.Words = append(p.Words, source.Part{Text: w, At: at})
	}
	if p.Codes = codes; len(codes) > 0 {
		p.Words = append(p.Words, source.Part{Text: "retriable-status-codes", At: codes[0].At})
	}
	return p
}

// retry reads the retry of a rule, or the product's own where there is none. codes are those that it repeats by itself.
func (r *reader) retry(l *topology.Layer, p parent, retry source.Node, codes []source.Part) {
	at := l.At
	tries := topology.DefaultOf(1+defaultRetries, p.who, at)
	var first value[time.Duration]
	if retry.Written() {
		at = retry.At()
		tries = envoywords.Or(r.attempts(l, retry),
			topology.DefaultOf(1+defaultRetries, p.who, at))
		first = read(r, retry.Get("backoff"), source.Duration)
		if own := retry.Get("codes").Parts(","); len(own) > 0 {
			codes = own
		}
		r.form.Remarks = append(r.form.Remarks, retry.Unknown("the Gateway API", l.Name+" retry", "attempts", "backoff",
			"codes")...)
	}
	policy := words(at, codes)
	policy.Product, policy.Subject, policy.Tries, policy.Elsewhere = p.who, l.Name+" retry", tries, true
	repeats, more := policy.Repeats()
	l.Repeats, r.form.Remarks = repeats, append(r.form.Remarks, more...)
	l.Backoff = envoywords.Backoff(first, value[time.Duration]{}, p.who, at)
}

// limits reads the timeouts of a rule. backendRequest bounds a try only where there are retries; else it is the limit
// of all.
func (r *reader) limits(l *topology.Layer, rule source.Node, retried bool) {
	timeouts := rule.Get("timeouts")
	r.form.Remarks = append(r.form.Remarks,
		timeouts.Unknown("the Gateway API", l.Name+" timeouts", "request", "backendRequest")...)
	l.Overall = read(r, timeouts.Get("request"), source.Duration)
	one := read(r, timeouts.Get("backendRequest"), source.Duration)
	switch {
	case one.IsZero():
	case retried:
		l.PerTry = one
	default:
		l.Overall = one
	}
}

// ofIstio reads a rule as Istio does: without retry there are 2, as everywhere in Istio.
func (r *reader) ofIstio(l *topology.Layer, p parent, rule source.Node) {
	retry := rule.Get("retry")
	r.limits(l, rule, retry.Written())
	l.Overall = envoywords.Or(l.Overall, topology.DefaultOf(time.Duration(0), p.who, l.At))
	l.Connect = topology.DefaultOf(10*time.Second, p.who, l.At)
	l.Budget.Concurrent = topology.DefaultOf(topology.Unbounded, p.who, l.At)
	var codes []source.Part
	if source.Before(p.version.V, "1.24") {
		codes = []source.Part{{Text: "503", At: l.At}}
	}
	r.retry(l, p, retry, codes)
}

// attempts reads how often a rule tries, the first try counted. Its number is that of retries, and at least 1.
func (r *reader) attempts(l *topology.Layer, retry source.Node) topology.Value[int] {
	n := retry.Get("attempts")
	tries := read(r, n, source.Int)
	if retries, known := tries.Get(); known && retries == 0 {
		r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F606", At: n.At(), Subject: l.Name + " retry attempts",
			Text: "attempts is at least 1 in the Gateway API: Kubernetes refuses the route",
			Fix:  "remove retry"})
	}
	return envoywords.PlusOne(tries)
}

// ofOthers reads what a rule says by itself. How often a product tries, and what, only the product says.
func (r *reader) ofOthers(l *topology.Layer, rule source.Node) {
	r.limits(l, rule, true)
	unknown := func(what string) string { return what + " depends on the product" }
	if l.Overall.IsZero() {
		l.Overall = topology.NotKnown[time.Duration](unknown("the limit"), l.At)
	}
	if l.PerTry.IsZero() {
		l.PerTry = topology.NotKnown[time.Duration](unknown("the limit of a try"), l.At)
	}
	retry := rule.Get("retry")
	at := l.At
	if retry.Written() {
		at = retry.At()
	}
	l.Repeats = []topology.Repeat{{On: topology.AllOutcomes(),
		Tries: topology.NotKnown[int](unknown("how often this is tried"), at),
		At:    at}}
	if !retry.Written() {
		return
	}
	tries := r.attempts(l, retry)
	if tries.IsZero() {
		tries = topology.NotKnown[int](unknown("the number of attempts"), at)
	}
	p := envoywords.Policy{Product: "the Gateway API", Subject: l.Name + " retry", Tries: tries,
		Codes: retry.Get("codes").Parts(",")}
	if len(p.Codes) > 0 {
		p.Words = []source.Part{{Text: "retriable-status-codes", At: at}}
	}
	repeats, more := p.Repeats()
	l.Repeats, r.form.Remarks = append(l.Repeats, repeats...), append(r.form.Remarks, more...)
	l.Backoff.First = envoywords.Or(read(r, retry.Get("backoff"), source.Duration),
		topology.NotKnown[time.Duration](unknown("the wait"), at))
	l.Backoff.Jitter = topology.NotKnown[string](unknown("the jitter"), at)
}
