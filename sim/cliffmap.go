package sim

import (
	"math"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// The cliff map's grid, as factors of the scenario's.
var (
	mapLoads   = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2}
	mapLengths = []float64{0.1, 0.25, 0.5, 1, 2, 4}
)

const runsPerCell = 2

// cliffMap draws where runs collapse over load and length of the trouble.
func (st *study) cliffMap(s *scenario.Scenario, v *scenario.Variant) (*CliffMap, error) {
	begin, end := s.Trouble()
	if end == begin {
		return nil, nil
	}
	m := &CliffMap{Loads: mapLoads, Runs: runsPerCell, HereLoad: 1, HereLen: (end - begin).Seconds(),
		StableLoad: stableLoad(s, v)}
	search := newSearch(st, s, v, nil) // whether a fleet collapses, whatever is expected
	if _, err := search.trial(withLoad, 1); err != nil {
		return nil, err
	}
	st.begin(v.Name, "map", len(mapLoads)*len(mapLengths)*runsPerCell)
	for _, length := range mapLengths {
		m.Lengths = append(m.Lengths, length*(end-begin).Seconds())
		row := make([]float64, len(mapLoads))
		for k, load := range mapLoads {
			longer, w := withTrouble(s, v, length)
			longer, w = withLoad(longer, w, load)
			row[k] = -1
			if longer.TooLarge(w) {
				continue
			}
			outcomes, err := st.batch(longer, w, 0, runsPerCell, false, func(_ int, r *engine.Record) outcome {
				return outcome{collapsed: search.misses(r) != nil, events: r.Events}
			})
			if err != nil {
				return nil, err
			}
			if len(outcomes) < runsPerCell {
				continue
			}
			row[k] = 0
			for _, o := range outcomes {
				if o.collapsed {
					row[k] += 1.0 / runsPerCell
				}
			}
		}
		m.Collapse = append(m.Collapse, row)
	}
	return m, nil
}

// stableLoad is the factor of the load at which the first service is full if every call takes all attempts that its
// policy allows: below it retries alone cannot keep a system down (L. Huang and others, Metastable failures in the
// wild, OSDI 2022). It is 0 where that is not known.
func stableLoad(s *scenario.Scenario, v *scenario.Variant) float64 {
	attempts := map[string]float64{} // per second that arrive at a node, all tries of all layers above it included
	for i := range s.Clients {
		f := &s.Clients[i]
		if !f.Open() {
			return 0
		}
		attempts[f.Name] = loadOf(s, i).rate
	}
	var arriving func(service string) float64
	arriving = func(service string) float64 { // there are no cycles
		sum, known := attempts[service]
		if known {
			return sum
		}
		edges(s, v, func(caller string, c *scenario.Call) {
			if c.To == service {
				p := v.PolicyOf(caller, c.To).WithDefaults()
				sum += float64(arriving(caller) * c.Often() * attemptsPerCall(&p))
			}
		})
		attempts[service] = sum
		return sum
	}
	least := math.Inf(1)
	for _, x := range s.ServicesOf(v) {
		if load := arriving(x.Name); load > 0 {
			least = min(least, x.Capacity()/load)
		}
	}
	if math.IsInf(least, 0) {
		return 0
	}
	return least
}
