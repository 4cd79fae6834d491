package expect

import "math"

// z is the 97.5% quantile of the standard normal distribution: 95% lie within ±z.
const z = 1.959963984540054

// Tally counts the runs of one expectation.
type Tally struct {
	Runs       int // all runs
	Held       int // those of which it holds; see Expectation.Holds for collapse
	Unmeasured int // those in which it could not be measured; they count as not held
}

// Add counts one run, given what was measured in it; see [Expectation.Holds].
func (t *Tally) Add(e *Expectation, value float64) {
	t.Runs++
	if e.Holds(value) {
		t.Held++
	}
	if math.IsNaN(value) {
		t.Unmeasured++
	}
}

// Verdict is what the runs say about an expectation.
type Verdict uint8

// The verdicts. The zero value claims nothing.
const (
	Undecided Verdict = iota // the interval contains the threshold: more runs may decide
	Pass                     // the whole interval is on the right side
	Fail                     // the whole interval is on the other side
)

var verdictNames = [...]string{"UNDECIDED", "PASS", "FAIL"}

// String is the verdict in capitals.
func (v Verdict) String() string { return word(verdictNames[:], int(v)) }

// Judgement is a verdict and what it rests on: the share of runs in which the expectation held and its 95% interval.
// For collapse it is the share of runs that collapsed.
type Judgement struct {
	Verdict          Verdict
	Share, Low, High float64 // 0..1, Low <= Share <= High; without runs Share is 0 and the interval 0..1
}

// Judge compares the 95% Wilson interval of the share of runs with the share that the expectation asks for. A run in
// which it could not be measured counts as one in which it does not hold. See [Checkpoints] for how often a verdict is
// wrong when it is asked for again and again.
func (e *Expectation) Judge(t Tally) Judgement {
	count, op, threshold := t.Held, AtLeast, e.share()
	if e.ofRuns() {
		op, threshold = e.Op, e.Value
		if op.upper() { // Held counts the runs that did not collapse
			count = t.Runs - t.Held
		}
	}
	var j Judgement
	j.Low, j.High = Wilson(count, t.Runs)
	if t.Runs > 0 {
		j.Share = float64(min(max(count, 0), t.Runs)) / float64(t.Runs)
	}
	worst, best := j.Low, j.High // for the expectation
	if op.upper() {
		worst, best = best, worst
	}
	switch {
	case op.compare(worst, threshold):
		j.Verdict = Pass
	case !op.compare(best, threshold):
		j.Verdict = Fail
	}
	return j
}

// Wilson returns the 95% score interval of a probability of which held of runs were seen: (h + z²/2 ± z·√(h(n−h)/n +
// z²/4)) / (n + z²), without continuity correction, with z = 1.959963984540054. Unlike the textbook interval it is
// of use when all or none held. Source: E. B. Wilson, Probable inference, the law of succession, and statistical
// inference, Journal of the American Statistical Association 22 (1927) 209–212. held is moved into 0..runs; without
// runs the interval is 0..1. The result is the same to the last bit on every machine.
func Wilson(held, runs int) (low, high float64) {
	if runs <= 0 {
		return 0, 1
	}
	held = min(max(held, 0), runs)
	const zz = z * z
	h, n := float64(held), float64(runs)
	middle := h + zz/2
	half := float64(z * math.Sqrt(float64(h*(n-h))/n+zz/4))
	low, high = (middle-half)/(n+zz), (middle+half)/(n+zz)
	if held == 0 {
		low = 0
	}
	if held == runs {
		high = 1
	}
	return low, high
}

// MaxRuns is the most runs that an expectation may need for a PASS; [Parse] refuses one that needs more.
const MaxRuns = 1_000_000

// RunsNeeded returns the fewest runs that can give PASS, if the expectation holds in all of them: 35 for 90% of runs,
// 381 for 99%. It returns 0 if more than [MaxRuns] are needed, or if no number of runs can show it, as with 100%.
func RunsNeeded(e Expectation) int {
	share := e.share()
	if e.ofRuns() {
		share = e.Value
		if e.Op.upper() {
			share = 1 - e.Value
		}
	}
	// When all of n runs hold, Wilson's low end is n/(n+z²). Rounding may move the answer by one.
	n := z * z * share / (1 - share)
	if !(n <= MaxRuns) {
		return 0
	}
	for runs := max(1, int(n)-1); runs <= min(int(n)+2, MaxRuns); runs++ {
		if e.Judge(Tally{Runs: runs, Held: runs}).Verdict == Pass {
			return runs
		}
	}
	return 0
}

// looks are the first numbers of runs after which to judge. 35 is the first that can show 90%, the share of most
// expectations, and 400 the first round one that can show 99%.
var looks = []int{8, 16, 35, 64, 128, 256, 400, 512, 1000}

// Checkpoints returns the numbers of runs after which to judge and perhaps stop: 8, 16, 35, 64, 128, 256, 400, 512,
// 1000, 2000 and so on, doubled, and most itself last; nothing for most <= 0.
//
// Every look is another chance to err. A 95% interval errs about 2.5% to each side when it is looked at once; stopped
// at the first checkpoint up to 1000 that decides, it errs more. The worst case is a true share exactly at the
// threshold (computed, not sampled; a test holds these numbers):
//
//	threshold   wrong PASS   wrong FAIL   looking after every run
//	50%         14.1%        14.1%        26% and 26%
//	90%          9.0%        17.5%        15% and 35%
//	95%          5.0%        16.9%        12% and 36%
//	99%          2.5%        23.3%         5% and 31%
//
// It falls off quickly: a true share of 80% or 95% is taken for the wrong side of 90% in 0.04% and 1.1% of cases. Most
// wrong FAILs come from one or two bad runs among the first 16. Whoever leaves out the checkpoints before [RunsNeeded]
// has 13% (threshold 90%), 9% (95%) and 7% (99%) of them, and slower FAILs. Looks after 1000 runs add to all of this.
func Checkpoints(most int) []int {
	var points []int
	for i := 0; ; i++ {
		next := 0
		switch {
		case i < len(looks):
			next = looks[i]
		case points[i-1] <= most/2:
			next = 2 * points[i-1]
		default:
			next = most
		}
		if next >= most {
			break
		}
		points = append(points, next)
	}
	if most > 0 {
		points = append(points, most)
	}
	return points
}
