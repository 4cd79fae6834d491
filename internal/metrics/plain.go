package metrics

import (
	"slices"

	"github.com/abate-go/abate/internal/series"
)

// ShowPlainNames sets whether the metrics that once had names without the prefix abate_ are shown under those too, such
// as http_client_requests_total beside abate_http_client_requests_total. They are unless somebody switches them off:
// it makes the page smaller, and no alert or dashboard may use them then.
func (m *Metrics) ShowPlainNames(show bool) { m.prefixed.Store(!show) }

// plainDescs finds the descriptions of plain names by those of the names with a prefix.
func (m *Metrics) plainDescs() map[*series.Desc]*series.Desc {
	found := map[*series.Desc]*series.Desc{}
	add := func(d *series.Desc, name string, labels ...string) {
		found[d] = series.NewDesc(name, "Older name of abate_"+name+", which says what to do about it.", labels...)
	}
	v, a := &m.vectors, &m.arrivals
	add(breakerDesc, "circuit_breaker_state", "service")
	add(concurrentDesc, "http_client_concurrent_requests", "service")
	add(v.requests.Desc(), "http_client_requests_total", "service", "endpoint", "status")
	add(v.duration.Desc(), "http_client_request_duration_seconds", "service", "endpoint")
	add(v.endpointRetries.Desc(), "http_client_retry_attempts_total", "service", "endpoint", "attempt")
	add(a.allowed.Desc(), "rate_limit_allowed_total", "service")
	add(a.rejected.Desc(), "rate_limit_rejected_total", "service")
	add(a.shed.Desc(), "shed_total", "service", "reason", "priority")
	add(m.grpc.retries.Desc(), "grpc_client_retry_attempts_total", "method", "status")
	add(m.grpc.exhausted.Desc(), "grpc_client_retry_budget_exhausted_total", "method")
	return found
}

// doubled returns how to send metrics so that those with a plain name come under both. Of exemplars one is enough.
func (m *Metrics) doubled(send func(series.Sample)) func(series.Sample) {
	if m.prefixed.Load() {
		return send
	}
	return func(s series.Sample) {
		send(s)
		if d := m.plain[s.Desc]; d != nil {
			s.Desc, s.Distribution = d, withoutExemplars(s.Distribution)
			send(s)
		}
	}
}

func withoutExemplars(d *series.Distribution) *series.Distribution {
	if d == nil {
		return nil
	}
	copied := *d
	copied.Buckets = slices.Clone(d.Buckets)
	for i := range copied.Buckets {
		copied.Buckets[i].Exemplar = nil
	}
	return &copied
}
