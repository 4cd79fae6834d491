//go:build !race

package httpdrill // comparisons are made of private numbers

import (
	"reflect"
	"testing"
)

func TestSimulationOfTheBuiltInDrillStormsAndRecovers(t *testing.T) {
	c := Default()
	var acts []ActResult
	for _, name := range c.Acts {
		runs, err := c.simulate(t.Context(), c.variant(name), 4)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := c.simulate(t.Context(), c.variant(name), 4)
		// NaN and infinities are not equal to themselves
		if !reflect.DeepEqual(again, runs) && !c.showsStorm(c.variant(name)) {
			t.Errorf("%s: another simulation gives other numbers", name)
		}
		acts = append(acts, ActResult{Act: name, numbers: runs[0]})
		for _, n := range runs {
			if n.Recovered() == c.showsStorm(c.variant(name)) || n.Collapsed != c.showsStorm(c.variant(name)) {
				t.Errorf("%s: %+v", name, n)
			}
		}
	}
	r := Result{Acts: acts}
	if err := c.Compare(t.Context(), &r); err != nil || !r.Comparison.Agrees || r.Comparison.Runs != CompareRuns ||
		len(r.Comparison.Acts) != 2 {
		t.Errorf("%v, a run of the simulator does not agree with it: %+v", err, r.Comparison)
	}
}
