package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// fleets is a record of fleets called a, b and so on, with trouble from 5 s to 10 s of 30 s. A fleet is written as what
// it offers a second and how many of ten are answered before, during, and in each quarter of the time after.
func fleets(each ...[2]string) *engine.Record {
	r := &engine.Record{Scale: 1, Bin: 500 * time.Millisecond, Duration: 30 * time.Second, Begin: 5 * time.Second,
		End: 10 * time.Second, Model: scenario.Model{Recovered: 0.95, Collapsed: 0.9, Hold: time.Second}}
	for i, f := range each {
		none := make([]uint32, 60)
		rec := engine.FleetRecord{Name: string(rune('a' + i)), Bad: none, Answered: none, Failed: none, Refused: none}
		for b := range 60 {
			stretch := min(b/10, 1)
			if b >= 20 {
				stretch = 2 + (b-20)/10
			}
			offered, tenths := uint32(0), f[1][stretch]-'0'
			if f[1][stretch] == 't' {
				tenths = 10
			}
			kind := f[0]
			if kind == "thinning" { // many before the trouble, few from then on
				kind = [...]string{"many", "few"}[min(stretch, 1)]
			}
			switch kind {
			case "many":
				offered = 100
			case "few":
				offered = uint32((b + 1) % 2)
			}
			if f[1][stretch] == '-' {
				offered, tenths = 0, 0
			}
			good := offered * uint32(tenths) / 10
			if kind == "few" && offered > 0 { // tenths of them are answered, one after the other
				good = 0
				if uint32(b/2)%10 < uint32(tenths) {
					good = 1
				}
			}
			rec.Offered, rec.Good = append(rec.Offered, offered), append(rec.Good, good)
		}
		r.Fleets = append(r.Fleets, rec)
	}
	return r
}

func TestARunCollapsesIfAnyFleetDoes(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		fleets []([2]string)
		want   map[string]float64
	}{
		"one alone is as it was, however few requests it has": {
			[][2]string{{"few", "t08888"}}, map[string]float64{"collapse": 1, "collapse(a)": 1}},
		"a minority is dead": {[][2]string{{"many", "t0tttt"}, {"few", "t00000"}},
			map[string]float64{"collapse": 1, "collapse(a)": 0, "collapse(b)": 1, "recovery": inf, "recovery(a)": 0,
				"recovery(b)": inf}},
		"a minority was dead before": {[][2]string{{"many", "t0tttt"}, {"many", "000000"}},
			map[string]float64{"collapse": 1, "collapse(b)": 1, "recovery": 0, "recovery(b)": nan}},
		"the last to come back": {[][2]string{{"many", "t00ttt"}, {"many", "t000tt"}},
			map[string]float64{"collapse": 0, "recovery": 10, "recovery(a)": 5, "recovery(b)": 10}},
		"one fleet of two is a little down": {[][2]string{{"many", "t0tttt"}, {"many", "t08888"}},
			map[string]float64{"collapse": 1, "collapse(a)": 0, "collapse(b)": 1}},
		"of few requests chance may take some": {[][2]string{{"many", "t0tttt"}, {"few", "t08888"}},
			map[string]float64{"collapse": 0, "collapse(b)": 0}},
		"of few after many, too": {[][2]string{{"many", "t0tttt"}, {"thinning", "t09999"}},
			map[string]float64{"collapse": 0, "collapse(b)": 0}},
		"but not all": {[][2]string{{"many", "t0tttt"}, {"thinning", "t00000"}},
			map[string]float64{"collapse": 1, "collapse(b)": 1}},
		"nothing can be said of who offers nothing": {[][2]string{{"many", "t0tttt"}, {"none", "tttttt"}},
			map[string]float64{"collapse": 0, "collapse(a)": 0, "collapse(b)": nan, "recovery": 0, "recovery(b)": nan}},
		"who offers nothing afterwards is judged by the trouble": {[][2]string{{"many", "t0tttt"}, {"many", "t0----"}},
			map[string]float64{"collapse": 1, "collapse(b)": 1, "recovery": 0, "recovery(b)": nan}},
	} {
		r := fleets(c.fleets...)
		for text, want := range c.want {
			measure, subject, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
			got := r.Value(&expect.Expectation{Measure: measure, Subject: subject})
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %s is %v, want %v", name, text, got, want)
			}
		}
	}
}

// What shows that a fleet with one request a second is back is a quarter of the time there is, not one second.
func TestAFleetAmongSeveralIsBackWhenEnoughRequestsSaySo(t *testing.T) {
	r := fleets([2]string{"many", "t0tttt"}, [2]string{"few", "t0tttt"})
	r.Fleets[1].Good[24], r.Fleets[1].Good[28] = 0, 0 // 2 s and 4 s after the trouble
	if got := r.Value(&expect.Expectation{Measure: "recovery", Subject: "b"}); got != 4.5 {
		t.Errorf("recovery after %v s, want 4.5 s: a second without failure between two says nothing", got)
	}
	for b := 32; b < 60; b += 8 {
		r.Fleets[1].Good[b] = 0
	}
	if got := r.Value(&expect.Expectation{Measure: "recovery", Subject: "b"}); !math.IsNaN(got) {
		t.Errorf("recovery after %v s, though so few requests can tell neither that it is back nor that it is not", got)
	}
}

func TestHowManyRequestsAVerdictRestsOn(t *testing.T) {
	r := fleets([2]string{"many", "t0tttt"}, [2]string{"few", "t0tttt"}, [2]string{"none", "tttttt"})
	for fleet, want := range []int{1000, 5, 0} {
		if got := r.Judged(fleet); got != want {
			t.Errorf("the verdict on fleet %d rests on %d requests, want %d", fleet, got, want)
		}
	}
}

// A service has collapsed when its useful work stays down, also when a guard upstream keeps its callers away, and has
// not when it does all that it can.
func TestAServiceCollapsesWhenItsUsefulWorkStaysDown(t *testing.T) {
	inf := math.Inf(1)
	type six = [6]uint32
	for name, c := range map[string]struct {
		arrived, served six     // per bin: before, during, quarters of after
		capacity        float64 // per second
		collapse, back  float64
	}{
		"it comes back":                     {six{10, 40, 20, 10, 10, 10}, six{10, 0, 5, 10, 10, 10}, 40, 0, 5},
		"it works for callers that left":    {six{10, 40, 40, 40, 40, 40}, six{10, 0, 0, 0, 0, 0}, 40, 1, inf},
		"it does what it can":               {six{10, 40, 40, 40, 40, 40}, six{10, 0, 20, 20, 20, 20}, 40, 0, 0},
		"breakers keep everybody away":      {six{10, 1, 0, 0, 0, 0}, six{10, 0, 0, 0, 0, 0}, 40, 1, inf},
		"breakers let a probe through":      {six{10, 1, 1, 1, 1, 1}, six{10, 0, 1, 1, 1, 1}, 40, 1, inf},
		"it had nothing to do, and has now": {six{10, 10, 10, 10, 10, 10}, six{10, 0, 0, 0, 10, 10}, 0, 0, 10},
	} {
		r := fleets([2]string{"many", "t0tttt"})
		s := engine.ServiceRecord{Name: "s", Visits: []float64{0.1}, Capacity: c.capacity}
		if c.capacity == 0 {
			s.Capacity = math.Inf(1)
		}
		for b := range 60 {
			stretch := min(b/10, 1)
			if b >= 20 {
				stretch = 2 + (b-20)/10
			}
			s.Arrived, s.Served = append(s.Arrived, c.arrived[stretch]), append(s.Served, c.served[stretch])
		}
		r.Services = []engine.ServiceRecord{s}
		if got := r.Value(&expect.Expectation{Measure: "collapse", Subject: "s"}); got != c.collapse {
			t.Errorf("%s: collapse is %v, want %v", name, got, c.collapse)
		}
		if got := r.Value(&expect.Expectation{Measure: "recovery", Subject: "s"}); got != c.back {
			t.Errorf("%s: recovery is %v, want %v", name, got, c.back)
		}
	}
}
