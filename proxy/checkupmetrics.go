package proxy

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/series"
)

var (
	unhealthyDesc = series.NewDesc("abate_proxy_endpoints_unhealthy",
		"Endpoints of a service whose health check says that they are not well. Only for services with healthCheck.",
		"service")
	noneWellDesc = series.NewDesc("abate_proxy_endpoints_none_well",
		"1 while a service has no endpoint that is neither ejected nor unhealthy by its check; not shown otherwise. Calls "+
			"fail, or go where they will fail: look at /guards for what each endpoint says.", "service")
	questionsDesc = series.NewDesc("abate_proxy_health_checks_total",
		"Questions to endpoints how they are, by what they came to: passing, refusing (an answer that says no), silent.",
		"service", "result")
)

// checkupMetrics reports what health checks say.
type checkupMetrics struct{ services *services }

func (m checkupMetrics) Describe(send func(*series.Desc)) {
	send(unhealthyDesc)
	send(noneWellDesc)
	send(questionsDesc)
}

func (m checkupMetrics) Collect(send func(series.Sample)) {
	now := core.Now()
	m.services.guards.Range(func(_, kept any) bool {
		s := kept.(*service)
		name := s.guard.Name()
		if f := s.fleet.Load(); f != nil && s.listed() && !f.anyWell(now) { // nothing changes one that is not listed
			send(series.Gauge(noneWellDesc, 1, name))
		}
		unhealthy, asked, on := s.checkup.count()
		if !on {
			return true
		}
		send(series.Gauge(unhealthyDesc, float64(unhealthy), name))
		for r, result := range [...]string{"passing", "refusing", "silent"} {
			send(series.Count(questionsDesc, float64(asked[r]), name, result))
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
