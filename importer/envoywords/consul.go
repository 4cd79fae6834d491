package envoywords

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// ConsulKey returns a key of Consul as any of its formats spells it: JSON ("NumRetries"), Kubernetes ("numRetries") or
// HCL ("num_retries"), in which Consul does not ask for capitals either.
func ConsulKey(n source.Node, key string) source.Node {
	if found := n.Get(key + "|" + strings.ToLower(key[:1]) + key[1:]); found.Written() {
		return found
	}
	for _, p := range n.Pairs() {
		if strings.EqualFold(strings.ReplaceAll(p.Key, "_", ""), key) {
			return p.Value
		}
	}
	return source.Node{}
}

// ConsulRetries reads into a layer what a destination, or a filter of a route, of Consul repeats. Consul's sidecars and
// gateways are Envoy, and what Consul does not write is Envoy's default: a NumRetries of 0 is not written, so it is one
// retry, and a number of retries without a condition is none. Without one of the four keys there is no policy.
func ConsulRetries(l *topology.Layer, to source.Node, who string) []topology.Remark {
	count, on := ConsulKey(to, "NumRetries"), ConsulKey(to, "RetryOn")
	connect, codes := ConsulKey(to, "RetryOnConnectFailure"), ConsulKey(to, "RetryOnStatusCodes")
	if !count.Exists() && !on.Exists() && connect.Text() != "true" && len(codes.Items()) == 0 {
		return nil
	}
	p := Policy{Product: "Consul", Subject: l.Name, Words: on.Parts(","), Codes: codes.Parts(",")}
	if connect.Text() == "true" {
		p.Words = append(p.Words, source.Part{Text: "connect-failure", At: connect.At()})
	}
	if len(p.Codes) > 0 && !slices.ContainsFunc(p.Words, func(w source.Part) bool { return w.Text == codesWord }) {
		p.Words = append(p.Words, source.Part{Text: codesWord, At: codes.At()})
	}
	if len(p.Words) == 0 {
		return []topology.Remark{{Rule: "F602", At: count.At(), Subject: l.Name + " NumRetries",
			Text: "NumRetries alone repeats nothing: Envoy gets no condition",
			Fix:  "say what to repeat in RetryOn, RetryOnConnectFailure or RetryOnStatusCodes"}}
	}
	retries, remarks := source.Scalar(count, source.Int)
	if n, ok := retries.Get(); retries.IsZero() || ok && n == 0 {
		own := topology.DefaultOf(Retries, who, to.At())
		if ok { // somebody wrote it, and the remark says what it comes to
			own = topology.Inherit(Retries, count.At(), who)
			remarks = append(remarks, topology.Remark{Rule: "F604", At: count.At(), Subject: l.Name + " NumRetries",
				Text: "a NumRetries of 0 is not written, so Envoy's own holds: 1 retry",
				Fix:  "remove what is repeated, if nothing is to be"})
		}
		retries = own
	}
	p.Tries = PlusOne(retries)
	repeats, more := p.Repeats()
	l.Repeats = repeats
	l.Backoff = Backoff(topology.Value[time.Duration]{}, topology.Value[time.Duration]{}, who, to.At())
	return append(remarks, more...)
}

// ConsulTimeout reads a RequestTimeout of Consul: 0 is Envoy's own, and a negative one is none.
func ConsulTimeout(n source.Node, who string, at topology.Position) (topology.Value[time.Duration], []topology.Remark) {
	if strings.HasPrefix(n.Text(), "-") {
		return topology.Write(time.Duration(0), n.At()), nil
	}
	v, remarks := source.Scalar(n, source.DurationIn(time.Nanosecond))
	if d, ok := v.Get(); v.IsZero() || ok && d == 0 {
		return topology.DefaultOf(RouteTimeout, who, at), remarks
	}
	return v, remarks
}
