package engine

// WorldRecord is what a service did that changes while it runs. Slices have one member per bin, or are nil.
type WorldRecord struct {
	Hits   []uint32 // of a cache: calls that found what they asked for
	Misses []uint32 // calls that did not
	Held   []uint32 // keys that it holds, at the end of the bin

	Ready    []uint32 // replicas that requests are sent to, at the end of the bin
	Restarts []uint32 // replicas that died of their load, or failed their liveness probe
}

// World returns what the service did as one that changes while it runs; nil for others.
func (s *ServiceRecord) World() *WorldRecord { return s.world }

func newWorldRecord(node *node, bins int) *WorldRecord {
	r := &WorldRecord{}
	if node.service.IsCache() {
		s := series{bins, make([]uint32, 3*bins)}
		r.Hits, r.Misses, r.Held = s.next(), s.next(), s.next()
	}
	if node.lives {
		s := series{bins, make([]uint32, 2*bins)}
		r.Ready, r.Restarts = s.next(), s.next()
	}
	if r.Hits == nil && r.Ready == nil {
		return nil
	}
	return r
}

func (r *WorldRecord) cut() {
	for _, p := range []*[]uint32{&r.Hits, &r.Misses, &r.Held, &r.Ready, &r.Restarts} {
		if *p != nil {
			*p = (*p)[:len(*p)-1]
		}
	}
}
