package abateprom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// ShowPlainNames sets whether the metrics that once had names without the prefix abate_ are shown under those too, such
// as http_client_requests_total beside abate_http_client_requests_total. They are unless somebody switches them off:
// it makes the page smaller, and no alert or dashboard may use them then.
func (m *Metrics) ShowPlainNames(show bool) { m.prefixed.Store(!show) }

// plain is a metric under its plain name.
type plain struct {
	prometheus.Metric
	desc *prometheus.Desc
}

// Desc is that of the plain name.
func (p plain) Desc() *prometheus.Desc { return p.desc }

// Write writes what the metric has, without exemplars: one is enough.
func (p plain) Write(out *dto.Metric) error {
	err := p.Metric.Write(out)
	for _, b := range out.GetHistogram().GetBucket() {
		b.Exemplar = nil
	}
	return err
}

// plainDescs finds the descriptions of plain names by those of the names with a prefix.
func (m *Metrics) plainDescs() map[*prometheus.Desc]*prometheus.Desc {
	found := map[*prometheus.Desc]*prometheus.Desc{}
	add := func(d *prometheus.Desc, name string, labels ...string) {
		found[d] = prometheus.NewDesc(name, "Older name of abate_"+name+", which says what to do about it.", labels, nil)
	}
	of := func(c prometheus.Collector) *prometheus.Desc {
		to := make(chan *prometheus.Desc, 1)
		c.Describe(to)
		return <-to
	}
	v, a := &m.vectors, &m.arrivals
	add(breakerDesc, "circuit_breaker_state", "service")
	add(concurrentDesc, "http_client_concurrent_requests", "service")
	add(of(v.requests), "http_client_requests_total", "service", "endpoint", "status")
	add(of(v.duration), "http_client_request_duration_seconds", "service", "endpoint")
	add(of(v.endpointRetries), "http_client_retry_attempts_total", "service", "endpoint", "attempt")
	add(of(a.allowed), "rate_limit_allowed_total", "service")
	add(of(a.rejected), "rate_limit_rejected_total", "service")
	add(of(a.shed), "shed_total", "service", "reason", "priority")
	add(of(m.grpc.retries), "grpc_client_retry_attempts_total", "method", "status")
	add(of(m.grpc.exhausted), "grpc_client_retry_budget_exhausted_total", "method")
	return found
}

// doubled returns where to send metrics so that those with a plain name come under both, and what ends it.
func (m *Metrics) doubled(to chan<- prometheus.Metric) (in chan<- prometheus.Metric, end func()) {
	if m.prefixed.Load() {
		return to, func() {}
	}
	c, done := make(chan prometheus.Metric, 64), make(chan struct{})
	go func() {
		defer close(done)
		for metric := range c {
			to <- metric
			if d := m.plain[metric.Desc()]; d != nil {
				to <- plain{metric, d}
			}
		}
	}()
	return c, func() { close(c); <-done }
}
