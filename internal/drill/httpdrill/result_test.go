package httpdrill // results are made from private records

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
)

func twoActs() Result {
	r := Result{Version: Version, Setup: Default().setup(), Acts: []ActResult{
		recorded("unguarded", time.Hour, 5, engine.TimedOut),
		recorded("guarded", 1500*time.Millisecond, 0, engine.CircuitOpen),
	}}
	r.Passed, r.Verdict = r.passed(), r.verdict()
	return r
}

func TestPassedNeedsEveryActAsExpectedButThoseThatShowAStorm(t *testing.T) {
	healthy, ill := []PhaseResult{{Goodput: 0.98}}, []PhaseResult{{Goodput: 0.5}}
	held, not := []drill.Expected{{Held: true}, {Held: true}}, []drill.Expected{{Held: true}, {Held: false}}
	tests := []struct {
		name        string
		acts        []ActResult
		interrupted bool
		want        bool
	}{
		{"as expected", []ActResult{{Phases: healthy, Expectations: held}}, false, true},
		{"nothing expected", []ActResult{{Phases: healthy}}, false, true},
		{"one not", []ActResult{{Phases: healthy, Expectations: not}}, false, false},
		{"the second act not", []ActResult{{Phases: healthy, Expectations: held}, {Phases: healthy, Expectations: not}},
			false, false},
		{"interrupted", []ActResult{{Phases: healthy, Expectations: held}}, true, false},
		{"ill before", []ActResult{{Phases: ill, Expectations: held}}, false, false},
		{"a storm does not matter", []ActResult{
			{ShowsStorm: true, Phases: ill, Expectations: not}, {Phases: healthy, Expectations: held},
		}, false, true},
	}
	for _, tt := range tests {
		r := Result{Acts: tt.acts, Interrupted: tt.interrupted}
		if got := r.passed(); got != tt.want {
			t.Errorf("%s: passed = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestJSONKeepsEveryNumber(t *testing.T) {
	before := twoActs()
	before.Comparison = &Comparison{
		Runs: 3, Acts: []ActComparison{compare("guarded", before.Acts[1].numbers, []Numbers{before.Acts[1].numbers})},
	}
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"version":2`, `"recoverySeconds":null`, `"recoverySeconds":1.5`, `"notes":[]`,
		`"circuit-open":650`, `"comparison":{"runs":3`, `"agrees":false`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the JSON %s", want, text)
		}
	}
	var after Result
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(after)
	if string(again) != string(text) {
		t.Error("a decoded result encodes to something else")
	}
}

func TestReportIsForPeople(t *testing.T) {
	r := twoActs()
	var out strings.Builder
	r.Report(&out)
	text := out.String()
	for _, want := range []string{
		"unguarded            guarded",
		"amplification: attempts per request sent               4.30               1.00",
		"  … counting those not sent, too                       4.30               0.72",
		"longest queue in the service                             80                 80",
		"goodput after the outage                         0/s    0 %        89/s   89 %",
		"from end of outage to 95 % goodput       never, within 14 s              1.5 s",
		"answered calls took, p50 / p99",
		"refused by the guard, not sent                            0                650",
		"work done for callers that had left                1 (25 %)           1 (25 %)",
		"failed: no answer in time                             1,900                  0",
		"unguarded collapse > 90%",
		"guarded   recovery < 3.5s",
		"did not end with the outage",
		"goodput was back 1.5 s after the outage",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(text, "503") || strings.Contains(text, "not held") {
		t.Error("the report has a line for what did not occur")
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if t.Failed() {
		t.Log("\n" + text)
	}
}

func TestVerdictSaysOnlyWhatWasShown(t *testing.T) {
	ill := func(r *Result, act int) { r.Acts[act].Phases[engine.Before].Goodput = 0.5 }
	tests := []struct {
		name      string
		change    func(u, g *ActResult, r *Result)
		want, not string
	}{
		{"a storm", func(u, _ *ActResult, _ *Result) {
			u.Service.Refused = 7
		}, "the 5 s outage did not end with the outage: every failed request came back up to 3 times, 500 attempts/s met a " +
			"capacity of 400/s, the queue overflowed, and 25 % of all work", "held up to"},
		{"a storm in a long queue", func(*ActResult, *ActResult, *Result) {}, "the queue held up to 80 requests",
			"overflowed"},
		{"down without a storm", func(u, _ *ActResult, _ *Result) {
			u.Phases[engine.After].AttemptsPerSecond = 100
		}, "did not come back within 14 s of the end of the outage, with 100 attempts/s against a capacity of 400/s",
			"did not end"},
		{"unguarded recovered", func(u, _ *ActResult, _ *Result) {
			s := 2.0
			u.RecoverySeconds = &s
		}, "recovered by itself 2 s after the outage: this setup shows no lasting storm (250/s × 4 attempts against 400/s)",
			"did not end"},
		{"another kind of trouble", func(_, _ *ActResult, r *Result) {
			r.Setup.Word = "trouble"
		}, "the 5 s trouble did not end with the trouble", "outage"},

		{"guarded did not recover", func(_, g *ActResult, _ *Result) {
			g.RecoverySeconds = nil
		}, "Guarded, goodput did NOT come back within 14 s", "goodput was back"},
		{"guarded was late", func(_, g *ActResult, _ *Result) {
			s := 5.5
			g.RecoverySeconds = &s
		}, "5.5 s after the outage, later than the 3.5 s it was given: ", "NOT"},
		{"no time was given", func(_, g *ActResult, _ *Result) {
			s := 5.5
			g.RecoverySeconds, g.Setting.WithinSeconds = &s, 0
		}, "5.5 s after the outage: ", "later"},
		{"the breakers refused", func(*ActResult, *ActResult, *Result) {}, "goodput was back 1.5 s after the outage: the " +
			"circuit breakers refused 650 requests instead of sending them, and repeats added 0 %", "budget"},
		{"something else refused", func(_, g *ActResult, _ *Result) {
			g.BreakerRefused = 0
		}, "after the outage: repeats added 0 % to the requests that were sent.", "breakers"},
		{"the budgets refused", func(_, g *ActResult, _ *Result) {
			g.BudgetRefused, g.PerSent = 12, 1.03
		}, "repeats added 3 % to the requests that were sent (the retry budgets refused 12 more).", ""},
		{"a short queue", func(*ActResult, *ActResult, *Result) {}, "The queue stayed short enough: at most 80 of the 900 " +
			"places in the service's queue were taken, 0.2 s of work.", "overflowed"},
		{"a short queue that did not help", func(_, g *ActResult, _ *Result) {
			g.RecoverySeconds = nil
		}, "here. At most 80 of the 900 places", "short enough"},
		{"an empty queue", func(_, g *ActResult, _ *Result) {
			g.Service.LongestQueue = 0
		}, "that were sent. No request ever waited in the service's queue.", "short enough"},
		{"a gate refused", func(_, g *ActResult, _ *Result) {
			g.Service.TurnedAway = 1300
		}, "that were sent. The gate in front of the service refused 1,300 attempts. The queue stayed short", "overflowed"},
		{"a full queue", func(_, g *ActResult, _ *Result) {
			g.Service.Refused = 1200
		}, "The service's queue of 900 overflowed: 1,200 attempts were turned away.", "short enough"},

		{"a busy machine", func(_, g *ActResult, _ *Result) {
			g.LateSeconds = 0.6
		}, "busy with other things, and in the guarded act the drill fell up to 0.6 s behind", ""},
		{"a calm machine", func(*ActResult, *ActResult, *Result) {}, "", "busy"},
		{"ill before the outage", func(u, _ *ActResult, r *Result) {
			ill(r, 0)
			u.LateSeconds = 0.002
		}, "Unguarded, only 50 % of the requests were answered before the outage, so what came after it tells nothing. The " +
			"drill kept to its schedule (at most 2 ms late). A request takes the service 50 ms. Guarded,", "did not end"},
		{"ill under the policy", func(_, _ *ActResult, r *Result) {
			ill(r, 1)
		}, "The policy (guarded in quickstart.yaml) refused 650 requests", "goodput was back"},
		{"ill under the policy, not the machine", func(_, _ *ActResult, r *Result) {
			ill(r, 1)
		}, "Guarded, only 50 %", "busy"},
		{"ill on a busy machine", func(u, _ *ActResult, r *Result) {
			ill(r, 0)
			u.LateSeconds = 0.6
		}, "in the unguarded act the drill fell up to 0.6 s", "kept to its schedule"},

		{"interrupted", func(_, _ *ActResult, r *Result) { r.Interrupted = true }, "no verdict", "goodput"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := twoActs()
			tt.change(&r.Acts[0], &r.Acts[1], &r)
			got := r.verdict()
			if !strings.Contains(got, tt.want) || tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("verdict: %s", got)
			}
		})
	}
}

func TestReportOfAnInterruptedDrillShowsWhatIsKnown(t *testing.T) {
	c, by, record := quiet()
	r := Result{Setup: c.setup(), Interrupted: true, Acts: []ActResult{c.actResult(by, record, 0)}}
	r.Verdict = r.verdict()
	var out strings.Builder
	r.Report(&out) // with no phase, no call and no bin yet
	if !strings.Contains(out.String(), "Stopped before the end") || !strings.Contains(out.String(), "not known") ||
		strings.Contains(out.String(), "NaN") {
		t.Errorf("report:\n%s", out.String())
	}
}
