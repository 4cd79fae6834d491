package proxy

import "github.com/prometheus/client_golang/prometheus"

var (
	foundDesc = prometheus.NewDesc("abate_proxy_discovery_endpoints",
		"Endpoints of a service that discovery has found, or has kept from its last answer.", []string{"service"}, nil)
	freshDesc = prometheus.NewDesc("abate_proxy_discovery_up",
		"1 while discovery gets answers; 0 while it gets none, and what was known last is kept.", []string{"service"}, nil)
	vainDesc = prometheus.NewDesc("abate_proxy_discovery_failures_total",
		"Looks of discovery that brought no answer.", []string{"service"}, nil)
	changedDesc = prometheus.NewDesc("abate_proxy_discovery_last_change_timestamp_seconds",
		"When the endpoints of a service changed last. Not shown before the first answer.", []string{"service"}, nil)
)

// discoveryMetrics reports how the looking for endpoints goes.
type discoveryMetrics struct{ services *services }

func (m discoveryMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{foundDesc, freshDesc, vainDesc, changedDesc} {
		to <- d
	}
}

func (m discoveryMetrics) Collect(to chan<- prometheus.Metric) {
	m.services.guards.Range(func(_, kept any) bool {
		s := kept.(*service)
		w := s.watcher.Load()
		if w == nil {
			return true
		}
		status, up := w.Status(), 1.0
		if status.Err != nil {
			up = 0
		}
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, kind, v, s.guard.Name())
		}
		send(foundDesc, prometheus.GaugeValue, float64(status.Endpoints))
		send(freshDesc, prometheus.GaugeValue, up)
		send(vainDesc, prometheus.CounterValue, float64(status.Failures))
		if !status.Changed.IsZero() {
			send(changedDesc, prometheus.GaugeValue, float64(status.Changed.UnixMilli())/1000)
		}
		return true
	})
}
