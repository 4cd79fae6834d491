package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate/core"
)

var (
	unhealthyDesc = prometheus.NewDesc("abate_proxy_endpoints_unhealthy",
		"Endpoints of a service whose health check says that they are not well. Only for services with healthCheck.",
		[]string{"service"}, nil)
	noneWellDesc = prometheus.NewDesc("abate_proxy_endpoints_none_well",
		"1 while a service has no endpoint that is neither ejected nor unhealthy by its check; not shown otherwise. Calls "+
			"fail, or go where they will fail: look at /guards for what each endpoint says.", []string{"service"}, nil)
	questionsDesc = prometheus.NewDesc("abate_proxy_health_checks_total",
		"Questions to endpoints how they are, by what they came to: passing, refusing (an answer that says no), silent.",
		[]string{"service", "result"}, nil)
)

// checkupMetrics reports what health checks say.
type checkupMetrics struct{ services *services }

func (m checkupMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- unhealthyDesc
	to <- noneWellDesc
	to <- questionsDesc
}

func (m checkupMetrics) Collect(to chan<- prometheus.Metric) {
	now := core.Now()
	m.services.guards.Range(func(_, kept any) bool {
		s := kept.(*service)
		name := s.guard.Name()
		if f := s.fleet.Load(); f != nil && s.listed() && !f.anyWell(now) { // nothing changes one that is not listed
			to <- prometheus.MustNewConstMetric(noneWellDesc, prometheus.GaugeValue, 1, name)
		}
		unhealthy, asked, on := s.checkup.count()
		if !on {
			return true
		}
		to <- prometheus.MustNewConstMetric(unhealthyDesc, prometheus.GaugeValue, float64(unhealthy), name)
		for r, result := range [...]string{"passing", "refusing", "silent"} {
			to <- prometheus.MustNewConstMetric(questionsDesc, prometheus.CounterValue, float64(asked[r]), name, result)
		}
		return true
	})
}

// anyWell reports whether an endpoint is neither ejected nor unhealthy.
func (f *fleet) anyWell(now time.Duration) bool {
	for i := range f.endpoints {
		if e := f.balancer.Endpoint(i, now); !e.Ejected && !e.Unhealthy {
			return true
		}
	}
	return false
}
