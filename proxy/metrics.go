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
	expiryDesc = prometheus.NewDesc("abate_proxy_certificate_expiry_timestamp_seconds",
		"When the certificate in force of a file ends, or of its authorities the one that is valid for longest, "+
			"as a Unix time.", []string{"file"}, nil)
)

// ownMetrics reports how much room there is for clients.
type ownMetrics struct {
	lobby         *lobby
	upstreamSlots *upstreamSlots
	secrets       *secrets
}

func (m ownMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clientsDesc, mostDesc, waitingDesc, waitedDesc, upstreamSlotsDesc,
		expiryDesc} {
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
	for file, paper := range m.secrets.papers() {
		to <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(paper.until.Unix()), file)
	}
	if most := p.plane.config.MaxConnections; most > 0 {
		gauge(mostDesc, most)
	}
	to <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, float64(waited))
}
