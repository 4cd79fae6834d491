package report_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	command = regexp.MustCompile(`[A-Za-z][^A-Za-z]*`)
	integer = regexp.MustCompile(`-?\d+`)
)

// follow walks along a drawing and returns the height of the line at every odd place, as a share from the foot; NaN in
// gaps.
func follow(t *testing.T, d string, width, height int) []float64 {
	t.Helper()
	out := make([]float64, width/2)
	for i := range out {
		out[i] = math.NaN()
	}
	x, y := 0, 0
	to := func(nx, ny int) {
		for at := x | 1; at <= nx && at/2 < len(out); at += 2 {
			share := 1.0
			if nx != x {
				share = float64(at-x) / float64(nx-x)
			}
			out[at/2] = 1 - (float64(y)+share*float64(ny-y))/float64(height)
		}
		x, y = nx, ny
	}
	for _, c := range command.FindAllString(d, -1) {
		var n []int
		for _, text := range integer.FindAllString(c[1:], -1) {
			v, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, v)
		}
		switch c[0] {
		case 'M':
			x, y = n[0], n[1]
		case 'm':
			x, y = x+n[0], y+n[1]
		case 'h':
			to(x+n[0], y) // of no length: a dot
		case 'v':
			y += n[0]
		case 'l':
			for i := 0; i+1 < len(n); i += 2 {
				to(x+n[i], y+n[i+1])
			}
		default:
			t.Fatalf("command %q in a line", c)
		}
	}
	return out
}

func TestCurvesAreTheValues(t *testing.T) {
	r := study(wavers)
	run := &r.Variants[0].Run
	for i := 100; i < 110; i++ {
		run.Services[2].Amplification[i] = 0 // a gap
	}
	run.Services[2].Amplification[105] = 2 // with a lonely point in it
	for i := 200; i < 220; i++ {
		run.Services[1].Wait[i] = -1
	}
	run.Services[1].Wait[210] = 0 // no wait is not the same as nothing known
	root := parse(t, write(t, r))
	check := func(section string, line int, want []float64) {
		t.Helper()
		svg := root.byID("v1-"+section).all("svg", "")[0]
		box := strings.Fields(svg.attr("viewBox"))
		width, _ := strconv.Atoi(box[2])
		height, _ := strconv.Atoi(box[3])
		low, _ := strconv.ParseFloat(svg.attr("data-low"), 64)
		high, _ := strconv.ParseFloat(svg.attr("data-high"), 64)
		if width != 2*bins || !(high > low) {
			t.Fatalf("%s: viewBox %v, axis from %v to %v", section, box, low, high)
		}
		for i, share := range follow(t, svg.all("path", "l")[line].attr("d"), width, height) {
			got, off := low+(high-low)*share, (high-low)/float64(height)
			if svg.attr("data-log") == "1" {
				got = low * math.Pow(high/low, share)
				off = got * (math.Pow(high/low, 1/float64(height)) - 1)
			}
			value := want[i]
			if section == "wait" {
				value = math.Max(value, low)
			}
			if gap := section == "amplification" && value == 0 || section == "wait" && want[i] < 0; gap != math.IsNaN(got) ||
				!gap && math.Abs(got-value) > off {
				t.Errorf("%s, line %d: bin %d shows %v, want %v", section, line, i, got, value)
				return
			}
		}
	}
	check("load", 0, run.Offered)
	check("load", 1, run.Services[2].Attempts)
	check("load", 3, run.Goodput)
	check("amplification", 0, run.Services[0].Amplification)
	check("amplification", 2, run.Services[2].Amplification)
	check("wait", 0, run.Services[1].Wait)
	check("latency", 0, run.P50)
	check("latency", 1, run.P99)
	check("runs", 1, r.Variants[0].Fan.Mid)
}

func TestLabelsDoNotCoverEachOther(t *testing.T) {
	heights := map[string]float64{"tall": 260, "mid": 176, "strip": 34, "half": 110}
	for _, plot := range parse(t, write(t, study(wavers, collapses))).all("div", "plot") {
		height := heights[strings.Fields(plot.attr("class"))[1]]
		var tops []float64
		for _, key := range plot.all("ul", "key") {
			for _, li := range key.all("li", "") {
				top, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(li.attr("style"), "top:"), "%"), 64)
				if err != nil {
					t.Fatal(err)
				}
				if top < 0 || top > 100 {
					t.Errorf("a label stands at %v %% of its chart", top)
				}
				tops = append(tops, top*height/100)
			}
		}
		for i := range tops {
			for j := range i {
				if math.Abs(tops[i]-tops[j]) < 13 {
					t.Errorf("two labels of a chart stand %v px apart", math.Abs(tops[i]-tops[j]))
				}
			}
		}
	}
}
