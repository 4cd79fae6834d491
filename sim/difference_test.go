//go:build !race

package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

func difference(t *testing.T, v *sim.VariantResult, measure string) sim.Difference {
	t.Helper()
	for _, d := range v.Differences {
		if d.Measure == measure {
			return d
		}
	}
	t.Fatalf("%s: no difference in %s: %+v", v.Name, measure, v.Differences)
	return sim.Difference{}
}

func mean(t *testing.T, v *sim.VariantResult, measure string) sim.Measure {
	t.Helper()
	for _, m := range v.Measures {
		if m.Name == measure {
			return m
		}
	}
	t.Fatalf("%s: no measure %s", v.Name, measure)
	return sim.Measure{}
}

func TestVariantsAreComparedSeedBySeed(t *testing.T) {
	s := read(t, storm, "variants: {first: "+plain+", same: "+plain+", naive: "+naive+"}")
	r := study(t, s, sim.Options{Runs: 8, Exactly: true})
	if r.Variants[0].Differences != nil {
		t.Errorf("the first variant differs from itself: %+v", r.Variants[0].Differences)
	}
	for _, d := range r.Variants[1].Differences {
		if d.Mean != 0 || d.Low != 0 || d.High != 0 || d.Pairs < 2 {
			t.Errorf("the same policy differs: %+v", d)
		}
	}
	first, naive := &r.Variants[0], &r.Variants[2]
	for _, measure := range []string{"amplification(pay)", "goodput(after)", "attempts(pay, during)"} {
		d, a, b := difference(t, naive, measure), mean(t, first, measure), mean(t, naive, measure)
		equal(t, measure+": pairs", d.Pairs, 8)
		equal(t, measure+": unit", d.Unit, b.Unit)
		within(t, measure+": mean", d.Mean, b.Mean-a.Mean-1e-9, b.Mean-a.Mean+1e-9)
		if !(d.Low <= d.Mean && d.Mean <= d.High) {
			t.Errorf("%+v", d)
		}
		within(t, measure+": the middle of the interval", (d.Low+d.High)/2, d.Mean-1e-9, d.Mean+1e-9)
	}
	if d := difference(t, naive, "amplification(pay)"); d.Low < 0.5 {
		t.Errorf("three retries in a storm: %+v", d)
	}
}

// The differences of independent runs have the spread of both; on the same seeds what the arrivals do cancels out.
func TestTheSameSeedsMakeTheIntervalNarrow(t *testing.T) {
	s := read(t, "duration: 20s", "clients: {f: {rate: 50, calls: [s]}}",
		"services: {s: {workers: 6, serviceTime: exponential 100ms}}",
		"variants: {one: "+plain+", two: "+strings.TrimSuffix(plain, "}")+", services: {s: {workers: 7}}}}")
	v := &study(t, s, sim.Options{Runs: 10, Exactly: true}).Variants[1]
	d, m := difference(t, v, "utilization(s)"), mean(t, v, "utilization(s)")
	if d.High >= 0 || m.SD == 0 || d.High-d.Low > m.SD/2 {
		t.Errorf("the utilization varies by %v from run to run, its difference is %+v", m.SD, d)
	}
}

// The interval is that of Student: known quantiles, from one degree of freedom on.
func TestTheIntervalIsStudents(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	quantiles := map[int]float64{1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 29: 2.045}
	s := read(t, storm, "variants: {first: "+plain+", naive: "+naive+"}")
	var alone []*sim.Result // of each seed
	for freedom, want := range quantiles {
		n := freedom + 1
		for seed := len(alone) + 1; seed <= n; seed++ {
			alone = append(alone, study(t, s, sim.Options{Seed: uint64(seed), Runs: 1}))
		}
		r := study(t, s, sim.Options{Runs: n, Exactly: true})
		d := difference(t, &r.Variants[1], "attempts(pay, after)")
		if d.Pairs != n {
			t.Fatalf("%d pairs, want %d", d.Pairs, n)
		}
		var values []float64
		for _, one := range alone[:n] {
			values = append(values, mean(t, &one.Variants[1], d.Measure).Mean-mean(t, &one.Variants[0], d.Measure).Mean)
		}
		var sum, squares float64
		for _, v := range values {
			sum += v
		}
		for _, v := range values {
			squares += (v - sum/float64(n)) * (v - sum/float64(n))
		}
		sd := math.Sqrt(squares / float64(freedom))
		if sd == 0 {
			t.Fatal("nothing varies")
		}
		within(t, fmt.Sprintf("quantile with %d degrees of freedom", freedom), (d.High-d.Low)/2/sd*math.Sqrt(float64(n)),
			want*0.997, want*1.003)
	}
}

func TestOneRunHasNoDifference(t *testing.T) {
	s := read(t, storm, "variants: {first: "+plain+", naive: "+naive+"}")
	if d := study(t, s, sim.Options{Runs: 1}).Variants[1].Differences; d != nil {
		t.Errorf("an interval from one pair: %+v", d)
	}
}

// layers is a fleet, a front and a back; the policies of the calls are the two given.
func layers(front, back string) string {
	return `
duration: 5s
clients: {shop: {rate: 10, calls: [front]}, %s}
services: {front: {calls: [{to: back, times: 2}]}, back: {workers: 40, serviceTime: 100ms}}
faults: [{outage: back, at: 1s, for: 1s}]
variants: {only: {policy: {defaults: {circuitBreaker: {disabled: true}}, services: {front: {` + front + `}, back: {` + back + `}}}}}
`
}

func TestBoundsAndLinesComeFromThePolicies(t *testing.T) {
	const off = "retryBudget: {disabled: true}"
	for name, c := range map[string]struct {
		front, back, more string
		boundFront, bound float64
		stable            float64
	}{
		"no budgets": {
			front: "maxRetries: 3, " + off, back: "maxRetries: 1, " + off, stable: 400.0 / (10 * 4 * 2 * 2),
		},
		"budgets": {front: "retryBudget: {ratio: 0.5}", back: "retryBudget: {ratio: 0.25}", boundFront: 1.5,
			bound: 1.25, stable: 400 / (10 * 1.5 * 2 * 1.25)},
		"defaults": {boundFront: 1.1, bound: 1.1, stable: 400 / (20 * 1.21)},
		"adaptive": {
			front: "maxRetries: 0", back: "retryBudget: {kind: adaptive, maxRatio: 0.4}", bound: 1.4, stable: 400 / (20 * 1.4),
		},
		"tokens": {
			front: "maxRetries: 0", back: "maxRetries: 2, retryBudget: {kind: tokens}", stable: 400.0 / (20 * 3),
		},
		"hedges": {front: "maxRetries: 0", back: "maxRetries: 1, hedge: {delay: 1s, maxHedges: 2}, " + off,
			stable: 400.0 / (20 * 2 * 3)},
		"no retries, no bound": {front: "maxRetries: 0", back: "maxRetries: 0", stable: 400.0 / 20},
		"another caller": {front: "maxRetries: 0", back: "retryBudget: {ratio: 0.5}",
			more: "b: {rate: 20, calls: [back]}", bound: 1.5, stable: 400 / (40 * 1.5)},
		"users offer no rate": {
			front: "maxRetries: 0", back: "maxRetries: 0", more: "u: {users: 2, think: 1s, calls: [back]}",
		},
	} {
		text := fmt.Sprintf(layers(c.front, c.back), c.more)
		text = strings.Replace(text, ", }", "}", 1)
		r := study(t, read(t, text), sim.Options{Runs: 1, Map: true})
		services := r.Variants[0].Run.Services
		within(t, name+": bound of front", services[0].AmplificationBound, c.boundFront-1e-9, c.boundFront+1e-9)
		within(t, name+": bound of back", services[1].AmplificationBound, c.bound-1e-9, c.bound+1e-9)
		within(t, name+": stable load", r.Variants[0].Map.StableLoad, c.stable-1e-9, c.stable+1e-9)
	}
}

func TestOneCallerWithoutABudgetLeavesNoBound(t *testing.T) {
	s := read(t, "duration: 2s", "clients: {a: {rate: 10, calls: [s]}, b: {rate: 10, calls: [s]}}", "services: {s: {}}",
		"variants: {only: {policy: {services: {a -> s: {retryBudget: {ratio: 0.5}}, b -> s: {retryBudget: {disabled: "+
			"true}}}}}}")
	r := study(t, s, sim.Options{Runs: 1})
	equal(t, "bound", r.Variants[0].Run.Services[0].AmplificationBound, 0)
}

func TestAServiceThatBeginsNoWorkHasNoWait(t *testing.T) {
	s := read(t, "duration: 10s", "warmUp: 0s", "clients: {f: {rate: 50, calls: [s]}}",
		"services: {s: {workers: 20, serviceTime: 10ms}}",
		"faults: [{outage: s, at: 4s, for: 3s, mode: refuse}]", "variants: {only: "+plain+"}")
	run := study(t, s, sim.Options{Runs: 1}).Variants[0].Run
	for i, w := range run.Services[0].Wait {
		at := (float64(i) + 0.5) * run.BinSeconds
		if down := at > 4.1 && at < 6.9; down && w != -1 || (at < 3.9 || at > 7.1) && !(w >= 0 && w < 0.01) {
			if served := run.Services[0].Served[i]; down || served > 0 {
				t.Errorf("at %.2f s the wait is %v", at, w)
			}
		}
	}
}
