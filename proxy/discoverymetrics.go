package proxy

import "github.com/abate-go/abate/internal/series"

var (
	foundDesc = series.NewDesc("abate_proxy_discovery_endpoints",
		"Endpoints of a service that discovery has found, or has kept from its last answer.", "service")
	freshDesc = series.NewDesc("abate_proxy_discovery_up",
		"1 while discovery gets answers; 0 while it gets none, and what was known last is kept.", "service")
	vainDesc = series.NewDesc("abate_proxy_discovery_failures_total",
		"Looks of discovery that brought no answer.", "service")
	changedDesc = series.NewDesc("abate_proxy_discovery_last_change_timestamp_seconds",
		"When the endpoints of a service changed last. Not shown before the first answer.", "service")
)

// discoveryMetrics reports how the looking for endpoints goes.
type discoveryMetrics struct{ services *services }

func (m discoveryMetrics) Describe(send func(*series.Desc)) {
	for _, d := range []*series.Desc{foundDesc, freshDesc, vainDesc, changedDesc} {
		send(d)
	}
}

func (m discoveryMetrics) Collect(send func(series.Sample)) {
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
		name := s.guard.Name()
		send(series.Gauge(foundDesc, float64(status.Endpoints), name))
		send(series.Gauge(freshDesc, up, name))
		send(series.Count(vainDesc, float64(status.Failures), name))
		if !status.Changed.IsZero() {
			send(series.Gauge(changedDesc, float64(status.Changed.UnixMilli())/1000, name))
		}
		return true
	})
}
