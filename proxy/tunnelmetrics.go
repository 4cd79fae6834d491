package proxy

import "github.com/prometheus/client_golang/prometheus"

// The metrics of what goes past the policy by CONNECT.
var (
	byEntry     = []string{"entry"}
	tunnelsDesc = prometheus.NewDesc("abate_proxy_tunnels",
		"Tunnels that are open, by the entry of outside.connect that allows them. No policy guards what is in them.",
		byEntry, nil)
	tunnelsOpenedDesc = prometheus.NewDesc("abate_proxy_tunnels_opened_total", "Tunnels that were opened.", byEntry, nil)
	tunnelSecondsDesc = prometheus.NewDesc("abate_proxy_tunnel_seconds_total",
		"For how long those that have ended were open, together.", byEntry, nil)
	tunnelBytesDesc = prometheus.NewDesc("abate_proxy_tunnel_bytes_total",
		"Bytes through those that have ended: sent by programs, or received.", []string{"entry", "direction"}, nil)
	tunnelsRefusedDesc = prometheus.NewDesc("abate_proxy_tunnels_refused_total",
		"Tunnels that were not opened: what is not listed, what belongs to a service (guarded), the kind of an address "+
			"that the list must have itself, connections that failed, and what comes while the proxy ends "+
			"(draining).", []string{"reason"}, nil)
)

// tunnelMetrics reports what goes past the policy by CONNECT.
type tunnelMetrics struct{ tunnels *tunnels }

func (m tunnelMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		tunnelsDesc, tunnelsOpenedDesc, tunnelSecondsDesc, tunnelBytesDesc, tunnelsRefusedDesc} {
		to <- d
	}
}

func (m tunnelMetrics) Collect(to chan<- prometheus.Metric) {
	ways, _, refused := m.tunnels.report()
	counter := func(d *prometheus.Desc, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
	}
	for _, w := range ways {
		to <- prometheus.MustNewConstMetric(tunnelsDesc, prometheus.GaugeValue, float64(w.Open), w.Entry)
		counter(tunnelsOpenedDesc, float64(w.Opened), w.Entry)
		counter(tunnelSecondsDesc, w.Seconds, w.Entry)
		counter(tunnelBytesDesc, float64(w.Up), w.Entry, "sent")
		counter(tunnelBytesDesc, float64(w.Down), w.Entry, "received")
	}
	for reason, n := range refused {
		counter(tunnelsRefusedDesc, float64(n), reason)
	}
}
