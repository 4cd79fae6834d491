package sim_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
)

// halves is a service that refuses connections for half of the run: of 100 requests, one per 100 ms, half are answered.
const halves = `
name: halves
duration: 10s
warmUp: 0s
clients: {f: {once: 100, within: 10s, calls: [s]}}
services: {s: {serviceTime: 10ms}}
faults: [{outage: s, at: 2s, for: 5s, mode: refuse}]
variants: {only: ` + plain + `}`

func TestVerdictsJustInsideAndJustOutside(t *testing.T) {
	for text, want := range map[string]string{
		"goodput > 49.9%": sim.Pass, "goodput >= 50%": sim.Pass, "goodput > 50%": sim.Fail, "goodput < 50.1%": sim.Pass,
		"goodput < 50%":          sim.Fail,
		"goodput(during) < 0.1%": sim.Pass, "goodput(after) > 99.9%": sim.Pass, "userVisible <= 5s": sim.Pass,
		"userVisible < 5s":      sim.Fail,
		"amplification(s) <= 1": sim.Pass, "amplification(s) < 1": sim.Fail, "collapse < 5%": sim.Pass,
		"collapse > 50%":    sim.Fail,
		"recovery <= 100ms": sim.Pass, "failures <= 50%": sim.Pass, "failures < 50% in 1% of runs": sim.Fail,
		"latency(p99, during) < 1s": sim.Fail,
	} {
		r := study(t, read(t, halves, "expect: ['"+text+"']"), sim.Options{})
		if r.Verdict != want || r.Variants[0].Expectations[0].Verdict != want {
			t.Errorf("%s: %s, want %s; %+v", text, r.Verdict, want, r.Variants[0].Expectations[0])
		}
		if err := r.Err(); (err == nil) != (want == sim.Pass) {
			t.Errorf("%s is %s, and Err is %v", text, want, err)
		}
	}
}

// coin is in no number of runs decided.
const coin = `
duration: 10s
clients: {f: {rate: 100, calls: [s]}}
services: {s: {}}
variants: {only: ` + plain + `}
expect: ["offered > 100/s in 50% of runs"]
`

func TestRunsThatDisagreeAreUndecided(t *testing.T) {
	r := study(t, read(t, coin), sim.Options{Runs: 40})
	equal(t, "verdict", r.Verdict, sim.Undecided)
	x := r.Variants[0].Expectations[0]
	if x.Runs != 40 || x.Held95.Low >= 0.5 || x.Held95.High <= 0.5 {
		t.Errorf("undecided after %d runs with the interval %v to %v; want 40 runs, and 0.5 within it", x.Runs, x.Held95.Low,
			x.Held95.High)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "UNDECIDED") {
		t.Errorf("Err is %v, want one that says UNDECIDED", err)
	}
}

func TestTheWorstVerdictIsTheVerdict(t *testing.T) {
	two := `
duration: 10s
clients: {f: {rate: 100, calls: [s]}}
services: {s: {}}
variants:
  good: {expect: ["goodput > 99%"], ` + plain[1:] + `
  bad: {expect: ["goodput < 99%"], ` + plain[1:] + `
  silent: ` + plain + `
`
	r := study(t, read(t, two), sim.Options{})
	var all []string
	for _, v := range r.Variants {
		all = append(all, v.Name+" "+v.Verdict)
	}
	if want := []string{"good PASS", "bad FAIL", "silent NONE"}; !slices.Equal(all, want) || r.Verdict != sim.Fail {
		t.Errorf("%v and in all %s, want %v and FAIL", all, r.Verdict, want)
	}
	err := r.Err()
	if err == nil || strings.Contains(err.Error(), "variant good") ||
		!strings.Contains(err.Error(), "variant bad: FAIL: goodput < 99%") {
		t.Errorf("Err is %v, want the failed expectation and only that", err)
	}
}

func TestRunsStopWhenEverythingIsDecided(t *testing.T) {
	s := read(t, halves, "expect: [goodput > 40%]")
	few := study(t, s, sim.Options{Runs: 400}).Variants[0]
	if few.Runs >= 100 || few.Verdict != sim.Pass {
		t.Errorf("%d runs for %s, want a PASS after few", few.Runs, few.Verdict)
	}
	equal(t, "runs, exactly", study(t, s, sim.Options{Runs: 7, Exactly: true}).Variants[0].Runs, 7)
	equal(t, "runs without expectations", study(t, read(t, halves), sim.Options{Runs: 3, Exactly: true}).Variants[0].Runs,
		3)
	rare := study(t, read(t, halves, "expect: [goodput > 40% in 99% of runs]"), sim.Options{}).Variants[0]
	if rare.Runs <= few.Runs {
		t.Errorf("%d runs show 99%% of runs, %d show 90%%", rare.Runs, few.Runs)
	}
}

// Runs after a checkpoint begin before it only if they are needed whatever it shows.
func TestNoRunIsMadeThatAPassDoesNotNeed(t *testing.T) {
	looks := expect.Checkpoints(400)
	for share, least := range map[string]int{"60%": 6, "90%": 35} {
		made, want := 0, looks[slices.IndexFunc(looks, func(n int) bool { return n >= least })]
		r := study(t, read(t, halves, "expect: [goodput > 40% in "+share+" of runs]"), sim.Options{Runs: 400, Parallel: 8,
			Progress: func(p sim.Progress) { made = p.Done }})
		if runs := r.Variants[0].Runs; runs != want || made != want {
			t.Errorf("%s: %d runs made, %d in the result; want %d", share, made, runs, want)
		}
	}
}

// Before the first checkpoint there is work for few: whoever can make more runs at once does so from the next one on.
func TestLaterCheckpointsHaveWorkForMore(t *testing.T) {
	const parallel = 20
	before, most := runtime.NumGoroutine(), 0
	study(t, read(t, coin), sim.Options{Runs: 100, Parallel: parallel,
		Progress: func(sim.Progress) { most = max(most, runtime.NumGoroutine()-before) }})
	if most < parallel {
		t.Errorf("at most %d goroutines made runs, want %d", most, parallel)
	}
}

func TestOnlyTheVariantsAskedFor(t *testing.T) {
	const two = "duration: 1s\nclients: {f: {once: 1, calls: [s]}}\nservices: {s: {}}\nvariants: {a: " + plain + ", b: " +
		plain + "}"
	r := study(t, read(t, two), sim.Options{Variants: []string{"b"}, Runs: 1})
	if len(r.Variants) != 1 || r.Variants[0].Name != "b" {
		t.Errorf("asked for b, got %d variants", len(r.Variants))
	}
	_, err := sim.Run(context.Background(), read(t, two), sim.Options{Variants: []string{"c", "a", "d"}})
	if err == nil || !strings.Contains(err.Error(), `"c"`) || !strings.Contains(err.Error(), `"d"`) ||
		!strings.Contains(err.Error(), "a, b") {
		t.Errorf("asked for c and d, got the error %v; want both named, and a, b as what there is", err)
	}
}

// slow takes about a second, so that there is something to interrupt.
const slow = `
duration: 20s
clients: {f: {rate: 500, calls: [s]}}
services: {s: {workers: 100, serviceTime: exponential 100ms}}
variants: {a: ` + plain + `, b: ` + plain + `}
expect: ["offered > 500/s in 50% of runs"]
`

func TestAnInterruptedStudyTellsWhatIsKnown(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := sim.Run(ctx, read(t, slow), sim.Options{Runs: 100_000, Progress: func(p sim.Progress) {
		if p.Done >= 10 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Variants) != 1 || r.Variants[0].Runs < 8 {
		t.Errorf("interrupted %v, %d variants, %d runs of the first; want the first, with what it had", r.Interrupted,
			len(r.Variants), r.Variants[0].Runs)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("Err is %v, want one that says that the study was stopped", err)
	}
	nobodyLeft(t, before)
}

func TestAStudyThatNeverBeganIsAnError(t *testing.T) {
	cause := errors.New("no time")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if r, err := sim.Run(ctx, read(t, slow), sim.Options{}); r != nil || !errors.Is(err, cause) {
		t.Errorf("got %v and %v, want the cause of the end", r, err)
	}
}

func TestProgressIsToldAndOnlyGrows(t *testing.T) {
	last := sim.Progress{}
	told := 0
	study(t, read(t, halves, "expect: [goodput > 40%]"),
		sim.Options{Runs: 50, Margin: true, Advice: true, Map: true, Progress: func(p sim.Progress) {
			told++
			if p.Events < last.Events || p.Done > p.Of || p.Variant != "only" || p.Stage == last.Stage && p.Done < last.Done {
				t.Errorf("%+v after %+v", p, last)
			}
			last = p
		}})
	if told < 3 || last.Events == 0 {
		t.Errorf("told %d times, the last time %+v", told, last)
	}
}
