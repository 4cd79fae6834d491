package drill // results are made from private records

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// played makes a finished act: of 100 requests/s all are answered, but none during the outage and for a while, back, after
// it. Each request that fails has cost so many attempts.
func played(c Config, name string, back time.Duration, attempts int, failing Ending) ActResult {
	r := NewRecorder(c.Length())
	for at := time.Duration(0); at < c.Length(); at += 10 * time.Millisecond {
		r.Offered(at, at)
		down := at >= c.Before && at < c.Before+c.Outage+back
		if !down {
			r.Attempt(at)
			r.Ended(at, 50*time.Millisecond, Answered)
			continue
		}
		for range attempts {
			r.Attempt(at)
		}
		r.Ended(at, 4*time.Second, failing)
	}
	a := c.actResult(name, r, c.Length())
	a.Service = ServiceCounts{Arrived: int64(a.Attempts), Worked: 400, Abandoned: 100, LongestQueue: 80}
	if failing == RefusedEarly {
		a.BreakerRefused = a.Endings["refusedEarly"]
	}
	return a
}

func twoActs() Result {
	c := Default()
	c.Rate, c.Service.Workers = 100, 8
	c.Before, c.Outage, c.After, c.Within = 2*time.Second, 2*time.Second, 6*time.Second, 5*time.Second
	r := Result{Version: Version, Setup: c.setup(), Acts: []ActResult{
		played(c, Unguarded, time.Hour, 4, TimedOut),
		played(c, Guarded, 1500*time.Millisecond, 0, RefusedEarly),
	}}
	r.Passed, r.Verdict = r.passed(c), r.verdict()
	return r
}

func TestActResultAddsUp(t *testing.T) {
	r := twoActs()
	u, g := r.act(Unguarded), r.act(Guarded)
	if u.Offered != 1000 || u.Attempts != 200+4*800 || u.PerOffered != 3.4 {
		t.Errorf("unguarded: %d offered, %d attempts, amplification %v", u.Offered, u.Attempts, u.PerOffered)
	}
	if u.Recovered() || !u.Complete {
		t.Errorf("unguarded: recovered %v, complete %v", u.Recovered(), u.Complete)
	}
	if !g.Recovered() || *g.RecoverySeconds != 1.5 {
		t.Errorf("guarded: recovery %v, want 1.5", g.RecoverySeconds)
	}
	if g.PerSent != 1 {
		t.Errorf("guarded: %v attempts per request sent, want 1", g.PerSent)
	}
	if g.Endings["refusedEarly"] != 350 || g.Endings["answered"] != 650 {
		t.Errorf("guarded: endings %v", g.Endings)
	}
	if b := g.Phases[BeforeOutage]; b.Goodput != 1 || b.GoodputPerSecond != 100 || b.FromSeconds != 0.6 || b.ToSeconds != 2 {
		t.Errorf("guarded, before: %+v", b)
	}
	if d := g.Phases[DuringOutage]; d.GoodputPerSecond != 0 || d.OfferedPerSecond != 100 {
		t.Errorf("guarded, outage: %+v", d)
	}
	if a := g.Phases[AfterOutage]; a.Goodput != 0.75 || a.FromSeconds != 4 || a.ToSeconds != 10 {
		t.Errorf("guarded, after: %+v", a)
	}
	if u.FailedP50 != 4 || u.AnsweredP99 != 0.05 || g.FailedP50 != 0 {
		t.Errorf("latencies: %v, %v, %v", u.FailedP50, u.AnsweredP99, g.FailedP50)
	}
	if !r.Passed {
		t.Error("the guarded act recovered in time, and the drill did not pass")
	}
}

func TestPassedNeedsTheGuardedActBackInTime(t *testing.T) {
	in := func(s float64) *float64 { return &s }
	healthy := []PhaseResult{{Goodput: 0.98}}
	tests := []struct {
		name        string
		acts        []string
		result      []ActResult
		interrupted bool
		want        bool
	}{
		{"in time", []string{Guarded}, []ActResult{{Act: Guarded, RecoverySeconds: in(2), Phases: healthy}}, false, true},
		{"at the last moment", []string{Guarded}, []ActResult{{Act: Guarded, RecoverySeconds: in(5), Phases: healthy}}, false, true},
		{"late", []string{Guarded}, []ActResult{{Act: Guarded, RecoverySeconds: in(5.1), Phases: healthy}}, false, false},
		{"never", []string{Guarded}, []ActResult{{Act: Guarded, Phases: healthy}}, false, false},
		{"interrupted", []string{Guarded}, []ActResult{{Act: Guarded, RecoverySeconds: in(2), Phases: healthy}}, true, false},
		{"ill before the outage", []string{Guarded}, []ActResult{{Act: Guarded, RecoverySeconds: in(2), Phases: []PhaseResult{{Goodput: 0.5}}}}, false, false},
		{"unguarded only", []string{Unguarded}, []ActResult{{Act: Unguarded, Phases: healthy}}, false, true},
		{"the unguarded act does not matter", []string{Unguarded, Guarded}, []ActResult{{Act: Unguarded, RecoverySeconds: in(1), Phases: healthy}, {Act: Guarded, Phases: healthy}}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Default()
			c.Acts = tt.acts
			r := Result{Acts: tt.result, Interrupted: tt.interrupted}
			if got := r.passed(c); got != tt.want {
				t.Errorf("passed = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestJSONKeepsEveryNumber(t *testing.T) {
	before := twoActs()
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"version":1`, `"recoverySeconds":null`, `"recoverySeconds":1.5`, `"notes":[]`, `"refusedEarly":350`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the JSON", want)
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
		"amplification: attempts per request sent               3.40               1.00",
		"  … counting those refused early, too                  3.40               0.65",
		"longest queue in the service                             80                 80",
		"goodput after the outage                         0/s    0 %        75/s   75 %",
		"from end of outage to 95 % goodput        never, within 6 s              1.5 s",
		"answered calls took, p50 / p99                50 ms / 50 ms      50 ms / 50 ms",
		"failed calls took, p50 / p99                  4.0 s / 4.0 s              – / –",
		"refused early by the guard, not sent                      0                350",
		"failed: no answer in time                               800                  0",
		"did not end with the outage",
		"goodput was back 1.5 s after the outage",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(text, "503") || strings.Contains(text, "too late,") {
		t.Error("the report has a line for a kind of failure that did not occur")
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
	ill := func(r *Result, act int) { r.Acts[act].Phases[BeforeOutage].Goodput = 0.5 }
	tests := []struct {
		name      string
		change    func(u, g *ActResult, r *Result)
		want, not string
	}{
		{"a storm", func(u, _ *ActResult, _ *Result) { u.Service.Refused = 7 }, "did not end with the outage: every failed request came back up to 3 times, 400 attempts/s met a capacity of 160/s, the queue overflowed, and 25 % of all work", "held up to"},
		{"a storm in a long queue", func(*ActResult, *ActResult, *Result) {}, "the queue held up to 80 requests", "overflowed"},
		{"down without a storm", func(u, _ *ActResult, _ *Result) { u.Phases[AfterOutage].AttemptsPerSecond = 100 }, "did not come back within 6 s of the end of the outage, with 100 attempts/s against a capacity of 160/s", "did not end"},
		{"unguarded recovered", func(u, _ *ActResult, _ *Result) { s := 2.0; u.RecoverySeconds = &s }, "recovered by itself 2 s after", "did not end"},

		{"guarded did not recover", func(_, g *ActResult, _ *Result) { g.RecoverySeconds = nil }, "did NOT come back within 6 s", "goodput was back"},
		{"guarded was late", func(_, g *ActResult, _ *Result) { s := 5.5; g.RecoverySeconds = &s }, "5.5 s after the outage, later than the 5 s it was given: ", "NOT"},
		{"the breakers refused", func(*ActResult, *ActResult, *Result) {}, "goodput was back 1.5 s after the outage: the circuit breakers refused 350 requests at once instead of sending them, and repeats added 0 %", "budget"},
		{"something else refused", func(_, g *ActResult, _ *Result) { g.BreakerRefused = 0 }, "after the outage: repeats added 0 % to the requests that were sent.", "breakers"},
		{"the budgets refused", func(_, g *ActResult, _ *Result) { g.BudgetRefused, g.PerSent = 12, 1.03 }, "repeats added 3 % to the requests that were sent (the retry budgets refused 12 more).", ""},
		{"a short queue", func(*ActResult, *ActResult, *Result) {}, "The queue stayed short enough: at most 80 of the 900 places in the service's queue were taken, 0.5 s of work.", "overflowed"},
		{"a short queue that did not help", func(_, g *ActResult, _ *Result) { g.RecoverySeconds = nil }, "here. At most 80 of the 900 places", "short enough"},
		{"an empty queue", func(_, g *ActResult, _ *Result) { g.Service.LongestQueue = 0 }, "that were sent. No request ever waited in the service's queue.", "short enough"},
		{"a full queue", func(_, g *ActResult, _ *Result) { g.Service.Refused = 1200 }, "The service's queue of 900 overflowed: 1,200 attempts were turned away.", "short enough"},
		{"late answers", func(_, g *ActResult, _ *Result) { g.Endings["answeredTooLate"] = 33 }, "33 answers came more than 1 s after their attempt was sent, too late to count.", ""},
		{"no late answers", func(*ActResult, *ActResult, *Result) {}, "", "too late to count"},

		{"a busy machine", func(_, g *ActResult, _ *Result) { g.LateSeconds = 0.6 }, "busy with other things, and in the guarded act the drill fell up to 0.6 s behind", ""},
		{"a calm machine", func(*ActResult, *ActResult, *Result) {}, "", "busy"},
		{"ill before the outage", func(u, _ *ActResult, r *Result) { ill(r, 0); u.LateSeconds = 0.002 }, "Unguarded, only 50 % of the requests were answered in time before the outage, so what came after it tells nothing. The drill kept to its schedule (at most 2 ms late). A request takes the service 50 ms, and after 1 s an answer is too late. Guarded,", "did not end"},
		{"ill under the policy", func(_, _ *ActResult, r *Result) { ill(r, 1) }, "(the built-in policy file (--print-policy)) refused 350 requests early", "goodput was back"},
		{"ill under the policy, not the machine", func(_, _ *ActResult, r *Result) { ill(r, 1) }, "Guarded, only 50 %", "busy"},
		{"ill on a busy machine", func(u, _ *ActResult, r *Result) { ill(r, 0); u.LateSeconds = 0.6 }, "in the unguarded act the drill fell up to 0.6 s", "kept to its schedule"},

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

func TestLateAnswersAreNoGoodput(t *testing.T) {
	c := Default()
	r := NewRecorder(c.Length())
	for at := time.Duration(0); at < c.Length(); at += 10 * time.Millisecond {
		r.Offered(at, at)
		r.Attempt(at)
		r.Ended(at, 1500*time.Millisecond, AnsweredLate)
	}
	c.Acts = []string{Guarded}
	result := Result{Setup: c.setup(), Acts: []ActResult{c.actResult(Guarded, r, c.Length())}}
	a := &result.Acts[0]
	if a.healthy() || a.Recovered() || result.passed(c) || a.Phases[AfterOutage].Goodput != 0 {
		t.Errorf("healthy %v, recovered %v, passed %v, after the outage %+v", a.healthy(), a.Recovered(), result.passed(c), a.Phases[AfterOutage])
	}
	if a.Endings["answeredTooLate"] != 2300 || a.Series[0].Late != 50 || a.Series[0].Failed != 0 || a.AnsweredP50 != 0 || a.FailedP50 != 0 {
		t.Errorf("endings %v, first column %+v, p50 %v and %v", a.Endings, a.Series[0], a.AnsweredP50, a.FailedP50)
	}
	var out strings.Builder
	result.Report(&out)
	if want := "answered too late, after more than 1 s                2,300\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the report lacks %q:\n%s", want, out.String())
	}
}

func TestReportOfAnInterruptedDrillShowsWhatIsKnown(t *testing.T) {
	c := Default()
	r := Result{Setup: c.setup(), Interrupted: true, Acts: []ActResult{c.actResult(Unguarded, NewRecorder(c.Length()), 0)}}
	r.Verdict = r.verdict()
	var out strings.Builder
	r.Report(&out) // with no phase, no call and no bin yet
	if !strings.Contains(out.String(), "Stopped before the end") || !strings.Contains(out.String(), "not known") {
		t.Errorf("report:\n%s", out.String())
	}
}
