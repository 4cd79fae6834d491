package engine

// WorldRecord is what a service did that changes while it runs. Slices have one member per bin, or are nil.
type WorldRecord struct {
	Hits   []uint32 // of a cache: calls that found what they asked for
	Misses []uint32 // calls that did not
	Held   []uint32 // keys that it holds, at the end of the bin
}

// World returns what the service did as one that changes while it runs; nil for others.
func (s *ServiceRecord) World() *WorldRecord { return s.world }

func newWorldRecord(node *node, bins int) *WorldRecord {
	if !node.service.IsCache() {
		return nil
	}
	s := series{bins, make([]uint32, 3*bins)}
	return &WorldRecord{Hits: s.next(), Misses: s.next(), Held: s.next()}
}

func (r *WorldRecord) cut() {
	for _, p := range []*[]uint32{&r.Hits, &r.Misses, &r.Held} {
		if *p != nil {
			*p = (*p)[:len(*p)-1]
		}
	}
}
