package proxy

import "github.com/prometheus/client_golang/prometheus"

var (
	unhealthyDesc = prometheus.NewDesc("abate_proxy_endpoints_unhealthy",
		"Endpoints of a service whose health check says that they are not well. Only for services with healthCheck.",
		[]string{"service"}, nil)
	questionsDesc = prometheus.NewDesc("abate_proxy_health_checks_total",
		"Questions to endpoints how they are, by what they came to: passing, refusing (an answer that says no), silent.",
		[]string{"service", "result"}, nil)
)

// checkupMetrics reports what health checks say.
type checkupMetrics struct{ services *services }

func (m checkupMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- unhealthyDesc
	to <- questionsDesc
}

func (m checkupMetrics) Collect(to chan<- prometheus.Metric) {
	m.services.guards.Range(func(_, kept any) bool {
		s := kept.(*service)
		unhealthy, asked, on := s.checkup.count()
		if !on {
			return true
		}
		name := s.guard.Name()
		to <- prometheus.MustNewConstMetric(unhealthyDesc, prometheus.GaugeValue, float64(unhealthy), name)
		for r, result := range [...]string{"passing", "refusing", "silent"} {
			to <- prometheus.MustNewConstMetric(questionsDesc, prometheus.CounterValue, float64(asked[r]), name, result)
		}
		return true
	})
}
