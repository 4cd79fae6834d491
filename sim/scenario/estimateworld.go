package scenario

// What a cache takes in memory: the popularity of a key, and a key that is held.
const (
	keyBytes  = 12
	heldBytes = 24
)

// world adds what a service does by itself while it runs.
func (e *estimator) world(s *Service) {
	n := float64(s.Most())
	if s.IsCache() {
		held := float64(s.Cache.Keys)
		if s.Cache.Capacity > 0 {
			held = min(held, n*float64(s.Cache.Capacity))
		}
		e.bytes += float64(float64(s.Cache.Keys)*keyBytes) + float64(held*heldBytes)
	}
	for _, p := range []Probe{s.Probes.Liveness, s.Probes.Readiness} {
		if p.Period > 0 { // it is asked, answered or too late, and asked again
			e.events += float64(3 * n * (e.whole / p.Period.Seconds()))
		}
	}
	if s.Autoscale.Max > 0 {
		e.events += e.whole
	}
	if s.Lives() { // a replica dies and is back
		e.events += float64(2 * n * (1 + e.whole/max(s.Start.Takes.Mean().Seconds(), 1)))
	}
}
