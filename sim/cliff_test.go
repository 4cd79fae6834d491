//go:build !race

package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

// hanging is a service of so many requests per second that hangs for 10 s under 100 requests per second with four
// attempts each and an unbounded queue.
func hanging(perSecond int, more string) string {
	return fmt.Sprintf(`
name: hanging
duration: 60s
clients: {shop: {rate: 100, instances: 5, calls: [pay]}}
services: {pay: {workers: %d, serviceTime: exponential 100ms%s}}
faults: [{outage: pay, at: 5s, for: 10s}]
variants: {naive: `+naive+`}
`, perSecond/10, more)
}

func margin(t *testing.T, v *sim.VariantResult, dimension string) sim.Margin {
	t.Helper()
	for _, m := range v.Margins {
		if m.Dimension == dimension {
			if m.Runs == 0 || m.Text == "" || !(m.Low <= m.Cliff && m.Cliff <= m.High) {
				t.Errorf("margin %+v", m)
			}
			return m
		}
	}
	t.Fatalf("no margin in %s", dimension)
	return sim.Margin{}
}

// A system with retries is stable while the load is below capacity / amplification (OSDI '22, theorem 2): here a
// quarter. At its full size the cliff of this storm is between 3.9 and 4.4 times the load; a hundredth of it has more
// chance in it.
func TestTheCliffIsWhereTheTheoryPutsIt(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, c := range []struct {
		capacity int
		stands   bool
	}{{800, true}, {200, false}} {
		v := &study(t, read(t, hanging(c.capacity, "")), sim.Options{Runs: 2, Margin: true}).Variants[0]
		load := margin(t, v, "load")
		if load.Stands != c.stands || load.Beyond || load.Here != 100 {
			t.Errorf("capacity %d: %+v", c.capacity, load)
		}
		within(t, fmt.Sprintf("capacity / load at the cliff, from %d", c.capacity), float64(c.capacity)/load.Cliff, 3.8, 4.7)
		capacity := margin(t, v, "capacity")
		within(t, fmt.Sprintf("capacity at the cliff / load, from %d", c.capacity),
			capacity.Cliff*float64(c.capacity)/100, 3.8, 4.7)
		if high := load.High / load.Low; high > 1.15 {
			t.Errorf("the bracket from %v to %v is too wide", load.Low, load.High)
		}
	}
}

func TestTheCliffMovesWithTheTrouble(t *testing.T) {
	bounded := hanging(150, "")
	bounded = strings.Replace(bounded, "maxRetries: 3", "maxRetries: 0", 1)
	v := &study(t, read(t, bounded), sim.Options{Runs: 2, Margin: true}).Variants[0]
	trouble := margin(t, v, "trouble")
	equal(t, "trouble here", trouble.Here, 10)
	if !trouble.Stands {
		t.Errorf("one attempt at a service with half of its capacity to spare: %+v", trouble)
	}
	if m := margin(t, v, "load"); !m.Stands || m.Cliff < 100 || m.Cliff > 155 {
		t.Errorf("the cliff of the load is its capacity of 150: %+v", m)
	}
}

func TestTheMapShowsTheCliff(t *testing.T) {
	m := study(t, read(t, strings.Replace(hanging(600, ""), "duration: 60s", "duration: 40s", 1)),
		sim.Options{Runs: 1, Map: true}).Variants[0].Map
	if m == nil || len(m.Collapse) != len(m.Lengths) || len(m.Collapse[0]) != len(m.Loads) {
		t.Fatalf("map %+v", m)
	}
	for i, row := range m.Collapse {
		equal(t, fmt.Sprintf("collapse at a quarter of the load, length %v", m.Lengths[i]), row[0], 0)
		if m.Lengths[i] >= 10 {
			equal(t, fmt.Sprintf("collapse at twice the load, length %v", m.Lengths[i]), row[len(row)-1], 1)
		}
		for _, share := range row {
			within(t, "share", share, 0, 1)
		}
	}
	equal(t, "load here", m.HereLoad, 1)
	equal(t, "length here", m.HereLen, 10)
}
