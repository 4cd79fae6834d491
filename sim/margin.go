package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

const (
	mostRuns   = 20 // of one search
	perStep    = 3  // runs that vote on one factor
	precision  = 1.05
	mostFleets = 6 // whose own margin is looked for
)

// margins finds the distance to the cliff in each direction: how far all that is expected holds. Where there are
// several fleets it also says of each, if it differs, at which load it is the fleet's turn.
func (st *study) margins(s *scenario.Scenario, v *scenario.Variant) ([]Margin, error) {
	var all []Margin
	dimensions := dimensionsOf(s)
	fleets := 0
	if n := len(s.Clients); n > 1 && n <= mostFleets {
		fleets = n
	}
	st.begin(v.Name, "margin", (2*len(dimensions)+fleets)*(mostRuns+perStep))
	search := newSearch(st, s, v, expectations(s, v))
	for i := range dimensions {
		d := &dimensions[i]
		search.turn()
		m, err := search.margin(d, search.every())
		if err != nil || st.ctx.Err() != nil {
			return all, err
		}
		all = append(all, m.Margin)
		if !m.Stands && m.Beyond && !m.down { // it is not collapse that never ends
			only, err := search.margin(d, search.standing())
			if err != nil || st.ctx.Err() != nil {
				return all, err
			}
			if !only.likeness(&m) {
				all = append(all, only.Margin)
			}
		}
		for k := 0; k < fleets && d.name == "load"; k++ {
			if len(search.of(k)) == 0 {
				continue
			}
			own := loadDimension(s.Clients[k].Name, loadOf(s, k))
			one, err := search.margin(&own, search.of(k))
			if err != nil || st.ctx.Err() != nil {
				return all, err
			}
			if !one.likeness(&m) {
				all = append(all, one.Margin)
			}
		}
	}
	return all, nil
}

// found is a margin and its bracket, as factors; good is on the safe side.
type found struct {
	Margin
	good, bad float64
	down      bool // something collapses, where it was last seen to fail
}

// likeness reports whether a margin says the same as another one, in the same or another unit.
func (m *found) likeness(other *found) bool {
	return m.Stands == other.Stands && m.Beyond == other.Beyond && m.good == other.good && m.bad == other.bad
}

// margin looks for the cliff by doubling, then by halving the gap on a logarithmic scale. At each factor up to three
// runs vote whether the rules hold.
func (x *cliffSearch) margin(d *dimension, rules []int) (found, error) {
	m := found{Margin: Margin{Dimension: d.name, Fleet: d.fleet, Unit: d.unit, Here: d.here}}
	falls := func(factor float64) (bool, error) {
		t, err := x.trial(d.change, factor)
		if err != nil {
			return false, err
		}
		m.Runs += t.runs
		broken := t.broken(x.rules, rules)
		if broken != nil {
			m.down = slices.ContainsFunc(broken, func(i int) bool { return x.rules[i].stands() })
			m.Breaks = x.breaks(broken, d.fleet != "")
		}
		return broken != nil, nil
	}
	down, err := falls(1)
	if err != nil {
		return m, err
	}
	m.Stands = !down
	here := m.Breaks
	if m.good, m.bad, err = x.bracket(d, &m.Margin, falls); err != nil {
		return m, err
	}
	switch {
	case !m.Stands && !m.Beyond:
		m.Breaks = here
	case m.Stands && m.Beyond:
		m.Breaks = ""
	}
	m.describe(d, x.comesTo(d, m.good), x.comesTo(d, m.bad))
	return m, nil
}

// comesTo is what a factor comes to in whole workers.
func (x *cliffSearch) comesTo(d *dimension, factor float64) float64 {
	if d.name == "capacity" {
		return lessComesTo(x.s, x.v, factor)
	}
	return factor
}

// bracket finds two factors between which the cliff is; good is on the safe side.
func (x *cliffSearch) bracket(d *dimension, m *Margin, falls func(float64) (bool, error)) (
	good, bad float64, err error) {
	real := func(factor float64) float64 { return x.comesTo(d, factor) }
	good, bad = 1, 1
	onward := 2.0
	if !m.Stands {
		onward = 0.5
	}
	next := onward
	for done := false; !done && m.Runs < mostRuns && x.st.ctx.Err() == nil; {
		harder, w := d.change(x.s, x.v, next)
		if next > d.harder || next < 1/d.harder || harder.TooLarge(w) || real(next) == real(next/onward) {
			m.Beyond = true
			break
		}
		now, err := falls(next)
		if err != nil {
			return good, bad, err
		}
		if now {
			bad = next
		} else {
			good = next
		}
		done = now == m.Stands
		next *= onward
	}
	for !m.Beyond && m.Runs+perStep <= mostRuns && bad/good > precision && x.st.ctx.Err() == nil {
		middle := math.Sqrt(good * bad)
		if r := real(middle); r == real(good) || r == real(bad) { // workers are whole
			break
		}
		now, err := falls(middle)
		if err != nil {
			return good, bad, err
		}
		if now {
			bad = middle
		} else {
			good = middle
		}
	}
	return good, bad, nil
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
	switch capacity := d.name == "capacity"; {
	case m.Beyond && m.Stands:
		m.Text = "stands even with " + d.say(a) + ", as far as was tried"
	case m.Beyond:
		m.Text = m.Breaks + " even with " + d.say(b) + ", as far as was tried"
	case m.Stands && capacity:
		m.Text = fmt.Sprintf("stands down to %s; %s with %s", d.say(a), m.Breaks, d.say(b))
	case m.Stands:
		m.Text = fmt.Sprintf("stands up to %s; %s from %s on (%s × what is there)", d.say(a), m.Breaks, d.say(b), short(bad))
	case capacity:
		m.Text = fmt.Sprintf("%s; would stand with %s (%s × what is there)", m.Breaks, d.say(a), short(1/good))
	default:
		m.Text = fmt.Sprintf("%s; would stand with %s (1/%s of what is there)", m.Breaks, d.say(a), short(1/good))
	}
	if m.Fleet != "" {
		m.Text = m.Fleet + " " + m.Text
	}
}

// protecting are the expectations that a margin is about. A scenario that is there to show a storm has none: of it the
// margin says how far it is from standing.
func protecting(expected []expect.Expectation) []expect.Expectation {
	if wantsCollapse(expected) {
		return nil
	}
	var list []expect.Expectation
	for i := range expected {
		if expected[i].Protects() {
			list = append(list, expected[i])
		}
	}
	return list
}
