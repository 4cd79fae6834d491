package sim

import (
	"fmt"
	"math"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// edit is one way to make a scenario harder (a factor above 1) or easier.
type edit func(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant)

// dimension is a direction in which the cliff is looked for.
type dimension struct {
	name, unit string
	change     edit
	harder     float64 // the furthest factor that is tried on the hard side
	here       func(s *scenario.Scenario, v *scenario.Variant) float64
	say        func(value float64) string
}

const (
	mostRuns  = 20 // of one search
	perStep   = 3  // runs that vote on one factor
	precision = 1.05
)

// dimensionsOf are the directions that make sense for a scenario.
func dimensionsOf(s *scenario.Scenario) []dimension {
	all := []dimension{{
		name: "load", unit: "requests/s", change: withLoad, harder: 16, here: loadOf,
		say: func(v float64) string { return number(v) + " requests/s" },
	}}
	if begin, end := s.Trouble(); end > begin {
		all = append(all, dimension{
			name: "trouble", unit: "s", change: withTrouble, harder: 16,
			here: func(s *scenario.Scenario, _ *scenario.Variant) float64 {
				begin, end := s.Trouble()
				return (end - begin).Seconds()
			},
			say: func(v float64) string { return fmt.Sprintf("trouble of %.3g s", v) },
		})
	}
	for _, x := range s.Services {
		if x.Workers > 0 {
			return append(all, dimension{
				name:   "capacity",
				unit:   "share",
				change: less,
				harder: 16,
				here:   func(*scenario.Scenario, *scenario.Variant) float64 { return 1 },
				say:    func(v float64) string { return percent(math.Round(v*1000)/1000) + " of the capacity" },
			})
		}
	}
	return all
}

// less divides the capacity, so that a factor above 1 is harder.
func less(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant) {
	return withCapacity(s, v, 1/factor)
}

// lessComesTo is by how much the capacity is really divided: by the least of all services, because there are whole
// workers only. Nobody may say of a scenario that it stands with a capacity that it was not tried with.
func lessComesTo(s *scenario.Scenario, v *scenario.Variant, factor float64) float64 {
	_, w := less(s, v, factor)
	least := math.Inf(1)
	for i, x := range s.ServicesOf(v) {
		if x.Workers > 0 {
			y := &w.Overrides[i]
			is := float64(max(x.Replicas, 1)*x.Workers) / float64(max(y.Replicas, 1)*y.Workers)
			if factor < 1 { // more capacity: the one that gets the most
				is = 1 / is
			}
			least = math.Min(least, is)
		}
	}
	if factor < 1 {
		return 1 / least
	}
	return least
}

// loadOf is what all fleets offer per second before anything goes wrong, in full size; for users and once, their
// number.
func loadOf(s *scenario.Scenario, _ *scenario.Variant) float64 {
	var sum float64
	for i := range s.Clients {
		f := &s.Clients[i]
		rate := f.Rate
		if len(f.Curve) > 0 {
			rate = f.Curve[0].Rate
		}
		sum += rate + float64(f.Users+f.Once)
	}
	return sum * float64(max(s.Scale, 1))
}

// margins finds the distance to the cliff in each direction.
func (st *study) margins(s *scenario.Scenario, v *scenario.Variant) ([]Margin, error) {
	var all []Margin
	dimensions := dimensionsOf(s)
	st.begin(v.Name, "margin", len(dimensions)*mostRuns)
	for i := range dimensions {
		m, err := st.margin(s, v, &dimensions[i])
		if err != nil || st.ctx.Err() != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// margin looks for the cliff by doubling, then by halving the gap on a logarithmic scale. At each factor up to three
// runs vote whether goodput collapses.
func (st *study) margin(s *scenario.Scenario, v *scenario.Variant, d *dimension) (Margin, error) {
	m := Margin{Dimension: d.name, Unit: d.unit, Here: d.here(s, v)}
	real := func(factor float64) float64 { // what it comes to in whole workers
		if d.name == "capacity" {
			return lessComesTo(s, v, factor)
		}
		return factor
	}
	var normal float64 // goodput before the trouble, of the scenario as it is
	collapses := func(factor float64) (bool, error) {
		votes, err := st.vote(s, v, d.change, factor, &normal)
		m.Runs += votes.Runs
		return 2*votes.Held > votes.Runs, err
	}
	falls, err := collapses(1)
	if err != nil {
		return m, err
	}
	m.Stands = !falls
	good, bad, onward := 1.0, 1.0, 2.0 // good is on the safe side
	if falls {
		onward = 0.5
	}
	next := onward
	for found := false; !found && m.Runs < mostRuns && st.ctx.Err() == nil; {
		harder, w := d.change(s, v, next)
		if next > d.harder || next < 1/d.harder || harder.TooLarge(w) || real(next) == real(next/onward) {
			m.Beyond = true
			break
		}
		now, err := collapses(next)
		if err != nil {
			return m, err
		}
		if now {
			bad = next
		} else {
			good = next
		}
		found = now == m.Stands
		next *= onward
	}
	for !m.Beyond && m.Runs+perStep <= mostRuns && bad/good > precision && st.ctx.Err() == nil {
		middle := math.Sqrt(good * bad)
		if r := real(middle); r == real(good) || r == real(bad) { // workers are whole
			break
		}
		falls, err := collapses(middle)
		if err != nil {
			return m, err
		}
		if falls {
			bad = middle
		} else {
			good = middle
		}
	}
	m.describe(d, real(good), real(bad))
	return m, nil
}

// describe turns factors into values: capacity falls as the factor rises.
func (m *Margin) describe(d *dimension, good, bad float64) {
	value := func(factor float64) float64 {
		if d.name == "capacity" {
			return m.Here / factor
		}
		return m.Here * factor
	}
	a, b := value(good), value(bad)
	m.Low, m.High, m.Cliff = min(a, b), max(a, b), value(math.Sqrt(good*bad))
	switch {
	case m.Beyond && m.Stands:
		m.Text = "stands even with " + d.say(a) + ", as far as was tried"
	case m.Beyond:
		m.Text = "collapses even with " + d.say(b) + ", as far as was tried"
	case m.Stands:
		m.Text = fmt.Sprintf("stands up to %s; collapses from %s on (%s × what is there)", d.say(a), d.say(b), short(bad))
	default:
		m.Text = fmt.Sprintf("collapses; would stand with %s (1/%s of what is there)", d.say(a), short(1/good))
	}
	if d.name == "capacity" && !m.Beyond {
		if m.Stands {
			m.Text = fmt.Sprintf("stands down to %s; collapses with %s", d.say(a), d.say(b))
		} else {
			m.Text = fmt.Sprintf("collapses; would stand with %s (%s × what is there)", d.say(a), short(1/good))
		}
	}
}

// vote makes up to three runs at a factor; the majority may be clear after two. A run in which goodput is down even
// before the trouble, against normal, counts as collapsed; the first vote sets normal.
func (st *study) vote(s *scenario.Scenario, v *scenario.Variant, change edit, factor float64, normal *float64) (
	expect.Tally, error) {
	s, v = change(s, v, factor)
	var votes expect.Tally
	for votes.Runs < perStep {
		more := 2
		if votes.Runs > 0 {
			more = 1
		}
		outcomes, err := st.batch(s, v, votes.Runs, more, false, func(_ int, r *engine.Record) outcome {
			before := r.Value(&expect.Expectation{Measure: "goodput", Window: expect.Before})
			return outcome{collapsed: r.Value(&expect.Expectation{Measure: "collapse"}) > 0, before: before, events: r.Events}
		})
		if err != nil || len(outcomes) < more {
			return votes, err
		}
		if *normal == 0 {
			*normal = outcomes[0].before
		}
		for _, o := range outcomes {
			if votes.Runs++; o.collapsed || o.before < s.Model.Collapsed*(*normal) {
				votes.Held++
			}
		}
		if votes.Held == 0 || votes.Held == votes.Runs && votes.Runs > 1 {
			break
		}
	}
	return votes, nil
}

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
	var normal float64 // as margin has it: of the scenario as it is
	if _, err := st.vote(s, v, withLoad, 1, &normal); err != nil {
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
				before := r.Value(&expect.Expectation{Measure: "goodput", Window: expect.Before})
				fell := before < s.Model.Collapsed*normal
				return outcome{collapsed: fell || r.Value(&expect.Expectation{Measure: "collapse"}) > 0, events: r.Events}
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
		one := scenario.Scenario{Clients: []scenario.Fleet{*f}}
		attempts[f.Name] = loadOf(&one, v)
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
