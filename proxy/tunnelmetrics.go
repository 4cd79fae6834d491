package proxy

import "github.com/abate-go/abate/internal/series"

// The metrics of what goes past the policy by CONNECT.
var (
	tunnelsDesc = series.NewDesc("abate_proxy_tunnels",
		"Tunnels that are open, by the entry of outside.connect that allows them. No policy guards what is in them.",
		"entry")
	tunnelsOpenedDesc = series.NewDesc("abate_proxy_tunnels_opened_total", "Tunnels that were opened.", "entry")
	tunnelSecondsDesc = series.NewDesc("abate_proxy_tunnel_seconds_total",
		"For how long those that have ended were open, together.", "entry")
	tunnelBytesDesc = series.NewDesc("abate_proxy_tunnel_bytes_total",
		"Bytes through those that have ended: sent by programs, or received.", "entry", "direction")
	tunnelsRefusedDesc = series.NewDesc("abate_proxy_tunnels_refused_total",
		"Tunnels that were not opened: what is not listed, what belongs to a service (guarded), the kind of an address "+
			"that the list must have itself, connections that failed, and what comes while the proxy ends "+
			"(draining).", "reason")
)

// tunnelMetrics reports what goes past the policy by CONNECT.
type tunnelMetrics struct{ tunnels *tunnels }

func (m tunnelMetrics) Describe(send func(*series.Desc)) {
	for _, d := range []*series.Desc{
		tunnelsDesc, tunnelsOpenedDesc, tunnelSecondsDesc, tunnelBytesDesc, tunnelsRefusedDesc} {
		send(d)
	}
}

func (m tunnelMetrics) Collect(send func(series.Sample)) {
	ways, _, refused := m.tunnels.report()
	counter := func(d *series.Desc, n float64, labels ...string) {
		send(series.Count(d, n, labels...))
	}
	for _, w := range ways {
		send(series.Gauge(tunnelsDesc, float64(w.Open), w.Entry))
		counter(tunnelsOpenedDesc, float64(w.Opened), w.Entry)
		counter(tunnelSecondsDesc, w.Seconds, w.Entry)
		counter(tunnelBytesDesc, float64(w.Up), w.Entry, "sent")
		counter(tunnelBytesDesc, float64(w.Down), w.Entry, "received")
	}
	for reason, n := range refused {
		counter(tunnelsRefusedDesc, float64(n), reason)
	}
}
