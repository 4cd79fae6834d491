package proxy

import "github.com/prometheus/client_golang/prometheus"

// The metrics of the proxy itself. Those of services and gates are abateprom's.
var (
	clientsDesc = prometheus.NewDesc("abate_proxy_connections", "Clients that are connected and have a slot.", nil, nil)
	mostDesc    = prometheus.NewDesc("abate_proxy_connections_limit",
		"How many clients may have one at once: --max-connections, "+
			"or what follows from the number of files that the process may have open. Not shown without a limit.", nil, nil)
	waitingDesc = prometheus.NewDesc("abate_proxy_connections_waiting",
		"Clients that wait for a slot, those in the queue of the kernel included where it tells (Linux).", nil, nil)
	waitedDesc = prometheus.NewDesc("abate_proxy_connections_waited_total",
		"Clients that had to wait for a slot before they were served.", nil, nil)
	upstreamSlotsDesc = prometheus.NewDesc("abate_proxy_upstream_waiting",
		"Attempts that wait for a connection to a service, "+
			"because one client has taken what there is for more than one request of a client at a time.", nil, nil)

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
			"that the list must have itself, and connections that failed.", []string{"reason"}, nil)
)

// ownMetrics reports how much room there is for clients.
type ownMetrics struct {
	lobby         *lobby
	upstreamSlots *upstreamSlots
	tunnels       *tunnels
}

func (m ownMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clientsDesc, mostDesc, waitingDesc, waitedDesc, upstreamSlotsDesc,
		tunnelsDesc, tunnelsOpenedDesc, tunnelSecondsDesc, tunnelBytesDesc, tunnelsRefusedDesc} {
		to <- d
	}
}

func (m ownMetrics) Collect(to chan<- prometheus.Metric) {
	p := m.lobby
	p.mu.Lock()
	connected, waiting, waited := p.connected, p.standing, p.stood
	for d := range p.doors {
		waiting += backlog(d.l)
	}
	p.mu.Unlock()
	gauge := func(d *prometheus.Desc, n int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	gauge(clientsDesc, connected)
	gauge(waitingDesc, waiting)
	gauge(upstreamSlotsDesc, int(m.upstreamSlots.waiting.Load()))
	if most := p.plane.config.MaxConnections; most > 0 {
		gauge(mostDesc, most)
	}
	to <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, float64(waited))
	m.collectTunnels(to)
}

// collectTunnels reports what goes past the policy by CONNECT.
func (m ownMetrics) collectTunnels(to chan<- prometheus.Metric) {
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
