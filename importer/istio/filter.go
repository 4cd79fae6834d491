package istio

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// filter remarks an EnvoyFilter that changes what the other resources say.
func (r *reader) filter(res resource) {
	if what, at := mentions(res.Spec, 0, false); what != "" {
		r.remark("F702", at, res.String(), "this EnvoyFilter changes "+what+
			" of Envoy by a patch, which is not applied here", "say the result in a topology file, or audit a config_dump")
	}
}

// retryHeaders are the beginnings of headers by which a request says how often and for how long Envoy tries it.
var retryHeaders = []string{"x-envoy-max-retries", "x-envoy-retry-", "x-envoy-retriable-", "x-envoy-upstream-rq-"}

// mentions returns a key below n that is about retries or their limits, or a header that is, also where a script sets
// it. The timeout of a filter that is put in is for calls of its own, such as those to a limiter of rates.
func mentions(n source.Node, depth int, ofFilter bool) (what string, at topology.Position) {
	const deepest = 30
	if depth > deepest {
		return "", at
	}
	ofFilter = ofFilter || n.Get("applyTo").Text() == "HTTP_FILTER"
	for _, p := range n.Pairs() {
		switch strings.ReplaceAll(strings.ToLower(p.Key), "_", "") {
		case "timeout":
			if !ofFilter {
				return p.Name.Text(), p.Name.At()
			}
		case "retrypolicy", "circuitbreakers", "outlierdetection", "numretries", "maxretries", "hedgepolicy",
			"maxconnectattempts":
			return p.Name.Text(), p.Name.At()
		}
		if found, at := mentions(p.Value, depth+1, ofFilter); found != "" {
			return found, at
		}
	}
	for _, item := range n.Items() {
		if found, at := mentions(item, depth+1, ofFilter); found != "" {
			return found, at
		}
	}
	text := strings.ToLower(n.Text())
	for _, h := range retryHeaders {
		if strings.Contains(text, h) {
			return "the header " + strings.TrimSuffix(h, "-"), n.At()
		}
	}
	return "", at
}

// sidecar remarks what a Sidecar says without effect. Which services it lets a workload call changes no retry; how many
// connections it lets in bounds what retries reach, but not their number.
func (r *reader) sidecar(res resource) {
	subject := res.String()
	r.form.Remarks = append(r.form.Remarks, res.Spec.Unknown("Istio", subject, "workloadSelector", "ingress", "egress",
		"inboundConnectionPool", "outboundTrafficPolicy")...)
	r.checkPool(subject+" inboundConnectionPool", res.Spec.Get("inboundConnectionPool"))
	for _, listener := range res.Spec.Get("ingress").Items() {
		r.checkPool(subject+" ingress", listener.Get("connectionPool"))
	}
}
