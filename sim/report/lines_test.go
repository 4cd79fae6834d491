package report_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

func TestBudgetsAreLinesInTheAmplification(t *testing.T) {
	for name, c := range map[string]struct {
		bounds [3]float64
		want   []string
	}{
		"none":         {[3]float64{}, nil},
		"all the same": {[3]float64{1.1, 1.1, 1.1}, []string{"budget 1.1 ×"}},
		"one has none": {[3]float64{0, 1.1, 1.1}, []string{"budget, payment-service 1.1 ×"}},
		"each another": {[3]float64{1.5, 1.2, 1.1}, []string{
			"budget, gateway 1.5 ×", "budget, payment-service 1.2 ×", "budget, payment-db 1.1 ×",
		}},
		"not in a good result": {[3]float64{math.NaN(), math.Inf(1), -1}, nil},
	} {
		r := study(wavers)
		for i, bound := range c.bounds {
			r.Variants[0].Run.Services[i].AmplificationBound = bound
		}
		section := parse(t, write(t, r)).byID("v1-amplification")
		var got []string
		for _, li := range section.all("li", "bound") {
			got = append(got, plain(li.words()))
		}
		if !slices.Equal(got, c.want) || len(section.all("path", "bound")) != len(c.want) {
			t.Errorf("%s: lines %q, want %q", name, got, c.want)
		}
		if said := strings.Contains(section.words(), "retry budgets allow"); said != (c.want != nil) {
			t.Errorf("%s: the meaning of the line is said: %v", name, said)
		}
		for _, line := range section.all("path", "bound") { // at the height of its value
			svg := section.all("svg", "")[0]
			box := strings.Fields(svg.attr("viewBox"))
			width, _ := strconv.Atoi(box[2])
			height, _ := strconv.Atoi(box[3])
			low, _ := strconv.ParseFloat(svg.attr("data-low"), 64)
			high, _ := strconv.ParseFloat(svg.attr("data-high"), 64)
			value := low * math.Pow(high/low, follow(t, line.attr("d"), width, height)[0])
			if !slices.ContainsFunc(c.bounds[:], func(b float64) bool { return math.Abs(value-b) < 0.01 }) {
				t.Errorf("%s: a line at %v", name, value)
			}
		}
	}
}

func TestTheMapHasALineWhereAttemptsFillTheCapacity(t *testing.T) {
	for _, c := range []struct {
		stable float64
		column int // on whose left it is; -1 for none
		label  string
		note   string
	}{
		{0, -1, "", ""},
		{math.Inf(1), -1, "", ""},
		{0.1, 0, "capacity / attempts: 0.1 ×", "Dashed: 0.1 × the load"},
		{0.6, 2, "capacity / attempts: 0.6 ×", "Dashed: 0.6 × the load"},
		{1, 4, "capacity / attempts: 1 ×", "Dashed: 1 × the load"},
		{1.9, 6, "capacity / attempts: 1.9 ×", "Dashed: 1.9 × the load"},
		{2, -1, "", "only at 2 × the load, beyond this map"},
		{30, -1, "", "only at 30 × the load, beyond this map"},
	} {
		r := study(wavers)
		r.Variants[0].Map.StableLoad = c.stable
		section := parse(t, write(t, r)).byID("v1-cliff")
		for _, row := range section.all("tbody", "")[0].all("tr", "") {
			for i, cell := range row.all("td", "") {
				if line := slices.Contains(strings.Fields(cell.attr("class")), "line"); line != (i == c.column) {
					t.Errorf("%v: cell %d has a line: %v", c.stable, i, line)
				}
			}
		}
		label, span := "", 0
		for _, foot := range section.all("tfoot", "") {
			label = plain(foot.words())
			for _, cell := range foot.all("td", "") {
				n, _ := strconv.Atoi(cell.attr("colspan"))
				span += n
			}
		}
		if text := plain(section.words()); label != c.label || !strings.Contains(text, c.note) ||
			c.note == "" && strings.Contains(text, "retries alone") {
			t.Errorf("%v: the line is called %q, want %q; the section says %q", c.stable, label, c.label, text)
		}
		if label != "" && span != 8 {
			t.Errorf("%v: the foot spans %d columns of 8", c.stable, span)
		}
	}
	if text := parse(t, write(t, study(wavers))).byID("v1-cliff").words(); !strings.Contains(
		plain(text), "40 runs a cell") {
		t.Errorf("the map says %q", text)
	}
}

func TestDifferencesStandInTheTableWhereChanceDoesNotExplainThem(t *testing.T) {
	for _, c := range []struct {
		d    sim.Difference
		want string
	}{
		{sim.Difference{Unit: "share", Mean: -0.0409, Low: -0.0419, High: -0.0398, Pairs: 40},
			"Δ −4.09 pt (−4.19 pt to −3.98 pt)"},
		{sim.Difference{Unit: "s", Mean: 0.25, Low: 0.2, High: 1.3, Pairs: 40}, "Δ +250 ms (+200 ms to +1.3 s)"},
		{sim.Difference{Unit: "1/s", Mean: -26_695, Low: -26_796, High: -26_594, Pairs: 40},
			"Δ −26,695/s (−26,796/s to −26,594/s)"},
		{sim.Difference{Mean: 3, Low: 3, High: 3, Pairs: 2}, "Δ +3"},
		{sim.Difference{Mean: 3, Low: -0.1, High: 6.1, Pairs: 2}, ""},
		{sim.Difference{Mean: 3, Low: 0, High: 6, Pairs: 2}, ""},
		{sim.Difference{Unit: "count", Mean: 0.1, Low: 0.05, High: 0.15, Pairs: 2}, ""}, // rounds to nothing
		{sim.Difference{Mean: math.Inf(1), Low: math.Inf(1), High: math.Inf(1), Pairs: 2}, ""},
		{sim.Difference{Mean: math.NaN(), Low: math.NaN(), High: math.NaN(), Pairs: 2}, ""},
	} {
		r := study(collapses, recovers)
		c.d.Measure = "peak(payment-db)"
		r.Variants[1].Differences = []sim.Difference{c.d, {Measure: "unheard of", Mean: 1, Low: 1, High: 1}}
		measured := parse(t, write(t, r)).all("details", "measured")[0]
		var got []string
		for _, row := range measured.all("tbody", "")[0].all("tr", "") {
			for i, cell := range row.all("td", "") {
				for _, d := range cell.all("small", "difference") {
					got = append(got, plain(d.words()))
					if i != 1 || !strings.HasPrefix(plain(row.words()), "peak") {
						t.Errorf("%q stands in column %d of %q", d.words(), i, row.words())
					}
				}
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: the table says %q, want %q", c.d, got, c.want)
		}
		if said := strings.Contains(measured.words(), "mean difference from “fixed delay”"); said != (c.want != "") {
			t.Errorf("%+v: what Δ means is said: %v", c.d, said)
		}
	}
}

// Where a page is drawn coarsely, what is not known is still a gap.
func TestGapsStayGapsInCoarseCurves(t *testing.T) {
	r := study(slices.Repeat([]kind{wavers}, 12)...)
	for i := range r.Variants {
		r.Variants[i].Name += strconv.Itoa(i)
		for bin := 120; bin < 180; bin++ {
			r.Variants[i].Run.Services[1].Wait[bin] = -1
		}
	}
	page := write(t, r)
	if !strings.Contains(page, "each point of a curve is the mean of") {
		t.Fatal("the page is not coarse")
	}
	svg := parse(t, page).byID("v1-wait").all("svg", "")[0]
	for _, line := range svg.all("path", "l") {
		if !slices.Contains(strings.Fields(line.attr("class")), "timeout") {
			if n := strings.Count(strings.ToLower(line.attr("d")), "m"); n != 2 {
				t.Errorf("the line has %d pieces, want 2", n)
			}
			return
		}
	}
}

func TestFewArrivalsAreCountedInWholeNumbers(t *testing.T) {
	r := study(recovers)
	for _, counts := range r.Variants[0].Run.Detail.Fine.Services {
		for i := range counts {
			counts[i] = uint16(i % 2)
		}
	}
	for _, plot := range parse(t, write(t, r)).byID("v1-arrivals").all("div", "y")[:2] { // the third has a capacity of 12
		var marks []string
		for _, tick := range plot.all("span", "") {
			marks = append(marks, tick.Text)
		}
		if strings.Join(marks, " ") != "0 1 2 3 4" {
			t.Errorf("the axis has the marks %q", marks)
		}
	}
}

// TestSeveralFleetsAreNamed looks for who it was that collapsed, and for what a PASS does not cover, beside it.
func TestSeveralFleetsAreNamed(t *testing.T) {
	r := study(recovers)
	v := &r.Variants[0]
	v.Fleets = []sim.FleetResult{
		{Name: "shop", Judged: 400, Recovery: []float64{0}, NoRecovery: 400},
		{Name: "batch", Collapse: sim.Share{Share: 1, Low: 0.99, High: 1}, Judged: 400},
	}
	v.Expectations[0].Where = "batch was the last in 400 of 400 runs"
	v.NotCovered = []string{"shop in trouble: no fault reaches it or what it calls"}
	v.Margins = append(v.Margins, sim.Margin{Dimension: "load", Fleet: "shop", Here: 100, Low: 170, High: 190,
		Stands: true, Text: "shop stands up to 170 requests/s"})
	page := parse(t, write(t, r))
	card := plain(page.all("article", "card")[0].words())
	for _, want := range []string{"shop 0 %, batch 100 %", "shop –, batch never", "batch was the last in 400 of 400 runs",
		"Not covered: shop in trouble: no fault reaches it or what it calls", "load of shop 1.7 ×"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card does not say %q: %s", want, card)
		}
	}
	if text := plain(page.words()); !strings.Contains(text, "shop stands up to 170 requests/s") {
		t.Error("the margin of the fleet is not in the section about the cliff")
	}
}
