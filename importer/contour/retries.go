package contour

import (
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// retries reads a retryPolicy.
func (r *reader) retries(l *topology.Layer, n source.Node) {
	subject := l.Name + " retryPolicy"
	r.form.Remarks = append(r.form.Remarks,
		n.Unknown("Contour", subject, "count", "perTryTimeout", "retryOn", "retriableStatusCodes")...)
	l.PerTry = r.timeout(n.Get("perTryTimeout"), subject+" perTryTimeout")
	tries := r.tries(n, subject)
	if tries.Or(2) == 1 {
		l.Repeats = []topology.Repeat{envoywords.Off(tries, "count: -1", tries.At)}
		return
	}
	p := envoywords.Policy{Product: "Contour", Subject: subject, Tries: tries, Words: n.Get("retryOn").Parts(","),
		Codes: n.Get("retriableStatusCodes").Parts(",")}
	if len(p.Words) == 0 {
		p.Words = []source.Part{{Text: "5xx", At: n.At()}}
	}
	repeats, more := p.Repeats()
	l.Repeats, r.form.Remarks = repeats, append(r.form.Remarks, more...)
	l.Backoff = envoywords.Backoff(value[time.Duration]{}, value[time.Duration]{}, r.who, n.At())
}

// tries reads count: 0 is the default of 1, and -1 is none, which until 1.33 was not heard.
func (r *reader) tries(n source.Node, subject string) value[int] {
	count := n.Get("count")
	byDefault := topology.DefaultOf(1+envoywords.Retries, r.who, n.At())
	switch count.Text() {
	case "":
		return byDefault
	case "0":
		r.remark("F604", count.At(), subject+" count", "a count of 0 counts as nothing written, so there is 1 retry",
			"write -1 for no retries")
		return ignored(count)
	case "-1":
		if source.Before(r.version.V, "1.33") {
			r.remark("F604", count.At(), subject+" count", "until Contour 1.33 a count of -1 leaves 1 retry",
				"remove the retryPolicy, or update Contour")
			return ignored(count)
		}
		return topology.Write(1, count.At())
	}
	return envoywords.PlusOne(read(r, count, source.Int))
}

// ignored is the number of tries where Contour takes a count for none.
func ignored(count source.Node) value[int] {
	v := topology.Assume(1+envoywords.Retries, "Contour takes a count of "+count.Text()+" for none written")
	v.At = count.At()
	return v
}

// limits adds the caps of a back end: its annotations', or Envoy's own.
func (r *reader) limits(l *topology.Layer, name, namespace string) {
	var service source.Resource
	at := l.At
	for _, s := range r.services[name] {
		if s.Namespace == namespace || s.Namespace == "" || namespace == "" {
			service, at = s, s.At
			break
		}
	}
	limit := func(key string, byDefault int) value[int] {
		return envoywords.Or(read(r, service.Annotation(prefix+key), source.Int), topology.DefaultOf(byDefault, r.who, at))
	}
	l.Limits = topology.Limits{Requests: limit("max-requests", envoywords.ClusterLimit),
		Pending:     limit("max-pending-requests", envoywords.ClusterLimit),
		Connections: limit("max-connections", envoywords.ClusterLimit)}
	l.Budget.Concurrent = limit("max-retries", envoywords.ClusterRetry)
}
