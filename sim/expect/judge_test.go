package expect_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/abate-go/abate/sim/expect"
)

func parse(t *testing.T, text string) expect.Expectation {
	t.Helper()
	e, err := expect.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestHoldsOfOneRun(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		text  string
		value float64
		want  bool
	}{
		{"recovery < 10s", 9.999, true}, {"recovery < 10s", 10, false}, {"recovery < 10s", inf, false},
		{"recovery < 10s", nan, false},
		{"recovery <= 10s", 10, true}, {"recovery <= 10s", 10.001, false}, {"recovery <= 10s", nan, false},
		{"recovery > 60s", inf, true}, {"recovery > 60s", 60, false}, {"recovery > 60s", nan, false},
		{"recovery >= 60s", 60, true}, {"recovery >= 60s", 59, false}, {"recovery >= 60s", nan, false},
		{"goodput > 95%", 0.951, true}, {"goodput > 95%", 0.95, false},
		{"failures <= 7%", 0.07, true},
		{"collapse < 1%", 0, true}, {"collapse < 1%", 1, false}, {"collapse < 1%", nan, false},
		{"collapse <= 1%", 0, true}, {"collapse <= 1%", 1, false},
		{"collapse > 90%", 1, true}, {"collapse > 90%", 0, false}, {"collapse > 90%", nan, false},
		{"collapse >= 90%", 1, true}, {"collapse >= 90%", 0, false},
	}
	for _, tt := range tests {
		e := parse(t, tt.text)
		if e.Holds(tt.value) != tt.want {
			t.Errorf("%s of %v: %v", tt.text, tt.value, !tt.want)
		}
	}
}

func TestTallyCountsWhatCouldNotBeMeasuredApart(t *testing.T) {
	e := parse(t, "latency(p99) < 1s")
	var tally expect.Tally
	for _, v := range []float64{0.5, 2, math.NaN(), 0.1, 3} {
		tally.Add(&e, v)
	}
	if want := (expect.Tally{Runs: 5, Held: 2, Unmeasured: 1}); tally != want {
		t.Errorf("%+v, want %+v", tally, want)
	}
}

// The first four are the examples of R. G. Newcombe, Statistics in Medicine 17 (1998) 857–872, method 3; the next two
// stand in our notes on published simulations.
func TestWilsonMatchesPublishedIntervals(t *testing.T) {
	tests := []struct {
		held, runs int
		low, high  float64
		digits     float64
	}{
		{81, 263, 0.2553, 0.3662, 4}, {15, 148, 0.0624, 0.1605, 4}, {0, 20, 0, 0.1611, 4}, {1, 29, 0.0061, 0.1718, 4},
		{31, 64, 0.37, 0.60, 2}, {95, 200, 0.41, 0.54, 2},
		{0, 1, 0, 0.793450685622763, 12}, {0, 0, 0, 1, 9}, {5, -1, 0, 1, 9}, {-3, 20, 0, 0.1611, 4}, {25, 20, 0.8389, 1, 4},
	}
	for _, tt := range tests {
		low, high := expect.Wilson(tt.held, tt.runs)
		if half := 0.5 * math.Pow(10, -tt.digits); math.Abs(low-tt.low) > half || math.Abs(high-tt.high) > half {
			t.Errorf("%d of %d: [%v, %v], want [%v, %v]", tt.held, tt.runs, low, high, tt.low, tt.high)
		}
	}
	for runs := 1; runs <= 300; runs++ {
		lastLow, lastHigh := -1.0, -1.0
		for held := 0; held <= runs; held++ {
			low, high := expect.Wilson(held, runs)
			share := float64(held) / float64(runs)
			if !(0 <= low && low <= share && share <= high && high <= 1 && low > lastLow && high > lastHigh) {
				t.Fatalf("%d of %d: [%v, %v] does not fit its neighbours", held, runs, low, high)
			}
			if mirrorLow, mirrorHigh := expect.Wilson(runs-held, runs); math.Abs(low+mirrorHigh-1)+math.Abs(high+mirrorLow-1) >
				1e-12 {
				t.Fatalf("%d of %d is not the mirror image of %d", held, runs, runs-held)
			}
			lastLow, lastHigh = low, high
		}
	}
}

func TestJudgeIsSureOnlyWhenTheWholeIntervalIs(t *testing.T) {
	tests := []struct {
		text    string
		tally   expect.Tally
		verdict expect.Verdict
		share   float64
	}{
		{"recovery < 10s in 99% of runs", expect.Tally{Runs: 381, Held: 381}, expect.Pass, 1},
		{"recovery < 10s in 99% of runs", expect.Tally{Runs: 380, Held: 380}, expect.Undecided, 1},
		{"recovery < 10s", expect.Tally{Runs: 35, Held: 35}, expect.Pass, 1},
		{"recovery < 10s", expect.Tally{Runs: 34, Held: 34}, expect.Undecided, 1},
		{"recovery < 10s", expect.Tally{Runs: 100, Held: 90}, expect.Undecided, 0.9},
		{"recovery < 10s", expect.Tally{Runs: 100, Held: 84}, expect.Fail, 0.84},
		{"recovery < 10s", expect.Tally{Runs: 100, Held: 85}, expect.Undecided, 0.85},
		{"recovery < 10s", expect.Tally{}, expect.Undecided, 0},
		{"recovery < 10s", expect.Tally{Runs: 1, Held: 1}, expect.Undecided, 1},
		{"recovery < 10s", expect.Tally{Runs: 100, Unmeasured: 100}, expect.Fail, 0},
		// Wilson of 0/381 is [0, 0.00998], of 0/380 [0, 0.010008].
		{"collapse < 1%", expect.Tally{Runs: 381, Held: 381}, expect.Pass, 0},
		{"collapse < 1%", expect.Tally{Runs: 380, Held: 380}, expect.Undecided, 0},
		{"collapse < 1%", expect.Tally{Runs: 100, Held: 93}, expect.Fail, 0.07},
		{"collapse <= 1%", expect.Tally{Runs: 381, Held: 381}, expect.Pass, 0},
		{"collapse < 1%", expect.Tally{Runs: 400, Held: 0}, expect.Fail, 1},
		{"collapse < 1%", expect.Tally{}, expect.Undecided, 0},
		{"collapse > 90%", expect.Tally{Runs: 35, Held: 35}, expect.Pass, 1},
		{"collapse > 90%", expect.Tally{Runs: 34, Held: 34}, expect.Undecided, 1},
		{"collapse > 90%", expect.Tally{Runs: 35, Held: 0}, expect.Fail, 0},
		{"collapse >= 90%", expect.Tally{Runs: 100, Held: 83}, expect.Fail, 0.83},
		{"collapse >= 90%", expect.Tally{}, expect.Undecided, 0},
	}
	for _, tt := range tests {
		e := parse(t, tt.text)
		j := e.Judge(tt.tally)
		if j.Verdict != tt.verdict || math.Abs(j.Share-tt.share) > 1e-12 {
			t.Errorf("%s with %+v: %+v, want %v at %v", tt.text, tt.tally, j, tt.verdict, tt.share)
		}
		if !(0 <= j.Low && j.Low <= j.Share && j.Share <= j.High && j.High <= 1) && tt.tally.Runs > 0 {
			t.Errorf("%s with %+v: %v is not within [%v, %v]", tt.text, tt.tally, j.Share, j.Low, j.High)
		}
		count := int(math.Round(j.Share * float64(tt.tally.Runs)))
		if low, high := expect.Wilson(count, tt.tally.Runs); j.Low != low || j.High != high {
			t.Errorf("%s with %+v: interval [%v, %v], want [%v, %v]", tt.text, tt.tally, j.Low, j.High, low, high)
		}
	}
}

// No round threshold is the end of an interval, so here the threshold is put there.
func TestThresholdItselfBelongsToOneSide(t *testing.T) {
	low, high := expect.Wilson(90, 100)
	tally := expect.Tally{Runs: 100, Held: 90}
	tests := []struct {
		e    expect.Expectation
		want expect.Verdict
	}{
		{expect.Expectation{Measure: "goodput", Share: low}, expect.Pass},
		{expect.Expectation{Measure: "goodput", Share: math.Nextafter(low, 1)}, expect.Undecided},
		{expect.Expectation{Measure: "goodput", Share: high}, expect.Undecided},
		{expect.Expectation{Measure: "goodput", Share: math.Nextafter(high, 1)}, expect.Fail},
		{expect.Expectation{Measure: "collapse", Op: expect.Above, Value: low}, expect.Undecided},
		{expect.Expectation{Measure: "collapse", Op: expect.AtLeast, Value: low}, expect.Pass},
		{expect.Expectation{Measure: "collapse", Op: expect.Above, Value: high}, expect.Fail},
		{expect.Expectation{Measure: "collapse", Op: expect.AtLeast, Value: high}, expect.Undecided},
	}
	for _, tt := range tests {
		if got := tt.e.Judge(tally).Verdict; got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.e, got, tt.want)
		}
	}
	collapsedLow, collapsedHigh := expect.Wilson(10, 100)
	for op, want := range map[expect.Op][2]expect.Verdict{
		expect.Below:  {expect.Undecided, expect.Fail}, // at the high end, at the low end
		expect.AtMost: {expect.Pass, expect.Undecided},
	} {
		for i, end := range []float64{collapsedHigh, collapsedLow} {
			e := expect.Expectation{Measure: "collapse", Op: op, Value: end}
			if got := e.Judge(tally).Verdict; got != want[i] {
				t.Errorf("collapse %v with the threshold at end %d: %v, want %v", op, i, got, want[i])
			}
		}
	}
}

func TestRunsNeeded(t *testing.T) {
	for text, want := range map[string]int{
		"recovery < 1s": 35, "recovery < 1s in 99% of runs": 381, "recovery < 1s in 95% of runs": 73,
		"recovery < 1s in 50% of runs":   4,
		"recovery < 1s in 99.9% of runs": 3838, "recovery < 1s in 1% of runs": 1,
		"collapse < 1%": 381, "collapse <= 1%": 381, "collapse > 90%": 35, "collapse >= 90%": 35, "collapse > 0%": 1,
		"collapse < 0.1%": 3838,
	} {
		e := parse(t, text)
		n := expect.RunsNeeded(e)
		if n != want {
			t.Errorf("%s needs %d runs, want %d", text, n, want)
		}
		if n > 1 && e.Judge(expect.Tally{Runs: n - 1, Held: n - 1}).Verdict == expect.Pass {
			t.Errorf("%s passes with %d runs already", text, n-1)
		}
	}
	for _, e := range []expect.Expectation{
		{Measure: "goodput", Share: 1}, {Measure: "goodput", Share: 2}, {Measure: "goodput", Share: math.NaN()},
		{Measure: "collapse"}, {Measure: "collapse", Op: expect.AtLeast, Value: 1}, {Measure: "goodput", Share: 0.9999999},
	} {
		if n := expect.RunsNeeded(e); n != 0 {
			t.Errorf("%+v needs %d runs, want 0: never", e, n)
		}
	}
	if n := expect.RunsNeeded(expect.Expectation{Measure: "goodput"}); n != 35 {
		t.Errorf("without a share %d runs, want the 35 of the default", n)
	}
}

func TestCheckpoints(t *testing.T) {
	for most, want := range map[int][]int{
		-1: nil, 0: nil, 1: {1}, 8: {8}, 9: {8, 9}, 400: {8, 16, 35, 64, 128, 256, 400},
		1000: {8, 16, 35, 64, 128, 256, 400, 512, 1000}, 1001: {8, 16, 35, 64, 128, 256, 400, 512, 1000, 1001},
		5000: {8, 16, 35, 64, 128, 256, 400, 512, 1000, 2000, 4000, 5000},
	} {
		if got := expect.Checkpoints(most); !slices.Equal(got, want) {
			t.Errorf("Checkpoints(%d) = %v, want %v", most, got, want)
		}
	}
	if n := len(expect.Checkpoints(math.MaxInt)); n > 80 {
		t.Errorf("%d checkpoints", n)
	}
}

// ends are the probabilities that a series of looks ends with each verdict.
type ends struct{ pass, fail, runs float64 }

// exactly computes the ends for a true share of runs: it follows the distribution of Held from look to look, and takes
// out what is decided there. No sampling, no error bar.
func exactly(e expect.Expectation, share float64, looks []int) ends {
	var r ends
	weights := []float64{1} // by number of runs held, of those still undecided
	for i, look := range looks {
		for len(weights) <= look {
			next := make([]float64, len(weights)+1)
			for held, w := range weights {
				next[held] += w * (1 - share)
				next[held+1] += w * share
			}
			weights = next
		}
		for held, w := range weights {
			verdict := e.Judge(expect.Tally{Runs: look, Held: held}).Verdict
			switch verdict {
			case expect.Pass:
				r.pass += w
			case expect.Fail:
				r.fail += w
			}
			if verdict != expect.Undecided || i == len(looks)-1 {
				r.runs += w * float64(look)
				weights[held] = 0
			}
		}
	}
	return r
}

// simulated is exactly, by running: the check of the computation.
func simulated(e expect.Expectation, share float64, looks []int, times int) ends {
	r := rand.New(rand.NewPCG(7, 11))
	var sum ends
	for range times {
		tally := expect.Tally{}
		for _, look := range looks {
			for ; tally.Runs < look; tally.Runs++ {
				if r.Float64() < share {
					tally.Held++
				}
			}
			verdict := e.Judge(tally).Verdict
			if verdict == expect.Pass {
				sum.pass++
			} else if verdict == expect.Fail {
				sum.fail++
			}
			if verdict != expect.Undecided {
				break
			}
		}
		sum.runs += float64(tally.Runs)
	}
	n := float64(times)
	return ends{sum.pass / n, sum.fail / n, sum.runs / n}
}

// The comment on Checkpoints gives these numbers.
func TestRepeatedLooksErrAsDocumented(t *testing.T) {
	everyRun := make([]int, 1000)
	for i := range everyRun {
		everyRun[i] = i + 1
	}
	looks := expect.Checkpoints(1000)
	for _, tt := range []struct{ share, pass, fail, everyPass, everyFail, lateFail float64 }{
		{0.5, 0.141, 0.141, 0.26, 0.26, 0.141}, {0.9, 0.090, 0.175, 0.15, 0.35, 0.13},
		{0.95, 0.050, 0.169, 0.12, 0.36, 0.09}, {0.99, 0.025, 0.233, 0.05, 0.31, 0.07},
	} {
		e := expect.Expectation{Measure: "goodput", Share: tt.share}
		late := slices.DeleteFunc(slices.Clone(looks), func(n int) bool { return n < expect.RunsNeeded(e) })
		once, at := exactly(e, tt.share, []int{1000}), exactly(e, tt.share, looks)
		every, patient := exactly(e, tt.share, everyRun), exactly(e, tt.share, late)
		t.Logf("true share = threshold = %v: once %+v, checkpoints %+v, late ones %+v, every run %+v", tt.share, once, at,
			patient, every)
		for _, c := range []struct {
			name                string
			got, want, rounding float64
		}{
			{"PASS at checkpoints", at.pass, tt.pass, 0.0006}, {"FAIL at checkpoints", at.fail, tt.fail, 0.0006},
			{"PASS after every run", every.pass, tt.everyPass, 0.005},
			{"FAIL after every run", every.fail, tt.everyFail, 0.0051},
			{"FAIL at late checkpoints", patient.fail, tt.lateFail, 0.005},
		} {
			if math.Abs(c.got-c.want) > c.rounding {
				t.Errorf("threshold %v: %s in %.4f of cases, documented %v", tt.share, c.name, c.got, c.want)
			}
		}
		if once.pass > 0.03 || once.fail > 0.03 {
			t.Errorf("threshold %v: one look errs in %+v", tt.share, once)
		}
	}
	ninety := expect.Expectation{Measure: "goodput", Share: 0.9}
	if below := exactly(ninety, 0.8, looks); below.pass > 0.00045 {
		t.Errorf("a true share of 80%% passes for 90%% in %.5f of cases", below.pass)
	}
	if above := exactly(ninety, 0.95, looks); above.fail > 0.0115 {
		t.Errorf("a true share of 95%% fails for 90%% in %.4f of cases", above.fail)
	}
}

func TestComputedErrorsAgreeWithSimulatedOnes(t *testing.T) {
	const times = 4000
	looks := expect.Checkpoints(1000)
	for _, share := range []float64{0.5, 0.9, 0.99} {
		e := expect.Expectation{Measure: "goodput", Share: share}
		want, got := exactly(e, share, looks), simulated(e, share, looks, times)
		t.Logf("%v: computed %+v, simulated %+v", share, want, got)
		for _, p := range [][2]float64{{got.pass, want.pass}, {got.fail, want.fail}} {
			if !within(p[0], math.Sqrt(p[1]*(1-p[1])), times, p[1]) {
				t.Errorf("threshold %v: simulated %v, computed %v", share, p[0], p[1])
			}
		}
	}
}

func ExampleExpectation_Judge() {
	e, err := expect.Parse("recovery < 10s in 90% of runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	var tally expect.Tally
	for run := range 40 {
		tally.Add(&e, 4+float64(run)/100) // seconds
	}
	j := e.Judge(tally)
	fmt.Printf("%s: %v, in %.0f%% of runs (95%% interval %.1f%% to %.1f%%)\n", e.Text, j.Verdict, 100*j.Share, 100*j.Low,
		100*j.High)
	// Output: recovery < 10s in 90% of runs: PASS, in 100% of runs (95% interval 91.2% to 100.0%)
}
