package httpdrill // comparisons are made of private numbers

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// ran is a run that came back, with so many attempts per request.
func ran(perOffered float64) Numbers {
	return Numbers{Offered: 1000, Attempts: 1000 * perOffered, Refused: 100, PerOffered: perOffered,
		PerSent: perOffered / 0.9,
		Goodput: [3]float64{1, 0.1, 0.9}, Recovery: 2, Queue: 300, Waste: 0.2}
}

// stormed is a run that did not.
func stormed() Numbers {
	n := ran(3)
	n.Recovery, n.Collapsed, n.Goodput[2] = math.Inf(1), true, 0
	return n
}

func TestComparisonNeedsTheSameAttemptsAndTheSameVerdict(t *testing.T) {
	three := func(a, b, c Numbers) []Numbers { return []Numbers{a, b, c} }
	tests := []struct {
		name              string
		drill             Numbers
		runs              []Numbers
		attempts, verdict bool
	}{
		{"the same", ran(1), three(ran(1), ran(1), ran(1)), true, true},
		{"2 % more", ran(1.019), three(ran(0.5), ran(1), ran(2)), true, true},
		{"2 % less", ran(0.981), three(ran(0.5), ran(1), ran(2)), true, true},
		{"too many", ran(1.021), three(ran(1), ran(1), ran(1)), false, true},
		{"too few", ran(0.979), three(ran(1), ran(1), ran(1)), false, true},
		{"both storm", stormed(), three(stormed(), stormed(), stormed()), true, true},
		{"most storm", stormed(), three(ran(3), stormed(), stormed()), true, true},
		{"few storm", stormed(), three(ran(3), ran(3), stormed()), true, false},
		{"only the simulator storms", ran(3), three(stormed(), stormed(), stormed()), true, false},
		{"only the drill storms", stormed(), three(ran(3), ran(3), ran(3)), true, false},
		{"nothing was offered", Numbers{PerOffered: math.NaN(), Recovery: math.NaN()}, three(ran(1), ran(1), ran(1)),
			false, false},
	}
	for _, tt := range tests {
		c := compare("act", tt.drill, tt.runs)
		if c.SameAttempts != tt.attempts || c.SameVerdict != tt.verdict {
			t.Errorf("%s: same attempts %v, same verdict %v (%s, %s); want %v and %v", tt.name, c.SameAttempts, c.SameVerdict,
				c.Drill, c.Simulation, tt.attempts, tt.verdict)
		}
	}
}

func TestComparisonOfOneNumber(t *testing.T) {
	c := compare("act", ran(1.1), []Numbers{ran(1), ran(0.9), stormed(), ran(1)})
	value := func(v *float64) float64 {
		if v == nil {
			return -1
		}
		return math.Round(*v*1000) / 1000
	}
	want := map[string][5]float64{ // drill, median, 5 %, 95 %, difference
		"attempts per request": {1.1, 1, 0.9, 3, 0.1},
		"requests offered":     {1000, 1000, 1000, 1000, 0},
		"goodput after":        {0.9, 0.9, 0, 0.9, 0},
		"recovery":             {2, 2, 2, -1, 0},
		"collapsed":            {0, 0.25, -1, -1, -0.25},
		"refused, of requests": {0.1, 0.1, 0.1, 0.1, 0},
	}
	for _, r := range c.Rows {
		if w, ok := want[r.Name]; ok {
			if got := [5]float64{value(r.Drill), value(r.Median), value(r.P05), value(r.P95), value(r.Difference)}; got != w {
				t.Errorf("%s: %v, want %v", r.Name, got, w)
			}
			delete(want, r.Name)
		}
	}
	if len(want) > 0 || c.Recovered != 0.75 || c.Simulation != "recovers" {
		t.Errorf("not compared: %v; recovered %v, %s", want, c.Recovered, c.Simulation)
	}
}

func TestComparisonIsForPeople(t *testing.T) {
	c := Comparison{Runs: 40, Acts: []ActComparison{
		compare("unguarded", stormed(), []Numbers{stormed()}), compare("guarded", ran(1), []Numbers{ran(0.995)}),
	}}
	var out strings.Builder
	c.report(&out)
	for _, want := range []string{
		"unguarded, beside the simulator    drill   40 runs, median (5–95 %)   difference\n",
		"recovery                          never   never                               –\n",
		"attempts per request              1.000   0.995 (0.995–0.995)            +0.5 %\n",
		"collapsed                       100.0 %   100.0 %                      +0.0 pts\n",
		"Attempts per request are within 2 % of the simulation (unguarded +0.0 %;\nguarded +0.5 %), and the verdicts are " +
			"the same (unguarded never / never;\nguarded recovers / recovers).\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	c.Acts[1] = compare("guarded", ran(1.1), []Numbers{stormed()})
	if text := c.verdict(); !strings.Contains(text, "NOT within 2 % of the simulation (unguarded +0.0 %; guarded -63.3 "+
		"%)") || !strings.Contains(text, "NOT the same (unguarded never / never; guarded recovers / never)") {
		t.Errorf("verdict: %s", text)
	}
	c.Acts[1] = compare("guarded", ran(1.1), []Numbers{ran(0.9), ran(1), ran(1.2)})
	if text := c.verdict(); !strings.Contains(text, "NOT within 2 % of the simulation (unguarded +0.0 %; guarded +10.0 "+
		"%, as far as simulated runs differ among themselves)") {
		t.Errorf("verdict: %s", text)
	}
}

func TestComparisonStopsWhenItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	c := Default()
	r := Result{Acts: []ActResult{{Act: "guarded"}}}
	if err := c.Compare(ctx, &r); !errors.Is(err, context.Canceled) || r.Comparison != nil {
		t.Errorf("%v, %+v", err, r.Comparison)
	}
}
