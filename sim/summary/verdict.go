package summary

import (
	"math"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
)

// The exit codes of "abate sim" that results decide.
const (
	ExitPass        = 0   // every expectation passed, or there was none
	ExitFail        = 1   // at least one failed
	ExitUndecided   = 2   // none failed, but the runs did not decide at least one
	ExitInterrupted = 130 // stopped before the end
)

// ExitCode returns the exit code that stands for all results together: the worst one.
func ExitCode(results []*sim.Result) int {
	code := ExitPass
	for _, r := range results {
		switch {
		case r.Interrupted:
			return ExitInterrupted
		case r.Verdict == sim.Fail:
			code = ExitFail
		case r.Verdict == sim.Undecided && code == ExitPass:
			code = ExitUndecided
		}
	}
	return code
}

// overall is the verdict on all results together.
func overall(results []*sim.Result) string {
	worst := sim.None
	for _, r := range results {
		if rank(r.Verdict) > rank(worst) {
			worst = r.Verdict
		}
	}
	return worst
}

func rank(verdict string) int {
	switch verdict {
	case sim.Fail:
		return 3
	case sim.Undecided:
		return 2
	case sim.Pass:
		return 1
	}
	return 0
}

// tally counts verdicts.
type tally struct{ pass, fail, undecided, none int }

func (t *tally) add(verdict string) {
	switch verdict {
	case sim.Pass:
		t.pass++
	case sim.Fail:
		t.fail++
	case sim.Undecided:
		t.undecided++
	default:
		t.none++
	}
}

// tallyOf counts the verdicts on single expectations.
func tallyOf(variants []sim.VariantResult) tally {
	var t tally
	for i := range variants {
		for j := range variants[i].Expectations {
			t.add(variants[i].Expectations[j].Verdict)
		}
	}
	return t
}

// String reads "1 failed, 2 passed", the worst first.
func (t tally) String() string {
	text := ""
	for _, part := range []struct {
		n    int
		word string
	}{{t.fail, "failed"}, {t.undecided, "undecided"}, {t.pass, "passed"}, {t.none, "without expectations"}} {
		if part.n > 0 {
			if text != "" {
				text += ", "
			}
			text += figures.Thousands(float64(part.n)) + " " + part.word
		}
	}
	return text
}

// moreRuns says how many further runs would decide an expectation if it went on to hold in the same share of them; 0
// if that cannot be said, or would take more than expect.MaxRuns in all.
func moreRuns(e *sim.ExpectationResult) int {
	x, err := expect.Parse(e.Text)
	if err != nil || e.Runs <= 0 || e.Verdict != sim.Undecided {
		return 0
	}
	decided := func(runs int) bool {
		held := int(math.Round(float64(runs) * float64(e.Held) / float64(e.Runs)))
		return x.Judge(expect.Tally{Runs: runs, Held: held}).Verdict != expect.Undecided
	}
	low, high := e.Runs, e.Runs // low does not decide
	for !decided(high) {
		if low, high = high, 2*high; low >= expect.MaxRuns {
			return 0
		}
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; decided(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	if high = roundRuns(high); high > expect.MaxRuns {
		return 0
	}
	return high - e.Runs
}

// roundRuns rounds up to two digits from a hundred on: more would pretend to know the share of runs to come.
func roundRuns(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}
