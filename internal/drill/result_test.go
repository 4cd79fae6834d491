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
	a.Service = ServiceCounts{Arrived: int64(a.Attempts), Worked: 400, Abandoned: 100}
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
	r.Passed, r.Verdict = r.passed(c), r.verdict(c)
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
		"amplification: attempts per request                    3.40               0.65",
		"goodput after the outage                         0/s    0 %        75/s   75 %",
		"from end of outage to 95 % goodput        never, within 6 s              1.5 s",
		"answered calls took, p50 / p99                50 ms / 50 ms      50 ms / 50 ms",
		"failed calls took, p50 / p99                  4.0 s / 4.0 s              – / –",
		"refused early by the guard, not sent                      0                350",
		"failed: no answer in time                               800                  0",
		"did not end with the outage",
		"Guarded, goodput was back 1.5 s after the outage",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(text, "503") {
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
	tests := []struct {
		name      string
		change    func(r *Result)
		want, not string
	}{
		{"unguarded recovered", func(r *Result) { s := 2.0; r.Acts[0].RecoverySeconds = &s }, "recovered by itself 2 s after", "did not end"},
		{"guarded did not", func(r *Result) { r.Acts[1].RecoverySeconds = nil }, "did NOT come back within 6 s", "goodput was back"},
		{"guarded was late", func(r *Result) { s := 5.5; r.Acts[1].RecoverySeconds = &s }, "later than the 5 s it was given", ""},
		{"busy machine", func(r *Result) { r.Acts[1].LateSeconds = 0.6 }, "busy with other things", ""},
		{"ill before the outage", func(r *Result) { r.Acts[1].Phases[BeforeOutage].Goodput = 0.5 }, "busy with other things", ""},
		{"breaker and budget", func(*Result) {}, "the circuit breakers stopped sending", "on average"},
		{"nothing was refused", func(r *Result) { delete(r.Acts[1].Endings, "refusedEarly") }, "the retry budgets held all retries to 0 %", "circuit breakers"},
		{"calm machine", func(*Result) {}, "goodput was back", "busy"},
		{"interrupted", func(r *Result) { r.Interrupted = true }, "no verdict", "goodput"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := twoActs()
			tt.change(&r)
			got := r.verdict(Default())
			if !strings.Contains(got, tt.want) || tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("verdict: %s", got)
			}
		})
	}
}

func TestReportOfAnInterruptedDrillShowsWhatIsKnown(t *testing.T) {
	c := Default()
	r := Result{Setup: c.setup(), Interrupted: true, Acts: []ActResult{c.actResult(Unguarded, NewRecorder(c.Length()), 0)}}
	r.Verdict = r.verdict(c)
	var out strings.Builder
	r.Report(&out) // with no phase, no call and no bin yet
	if !strings.Contains(out.String(), "Stopped before the end") || !strings.Contains(out.String(), "not known") {
		t.Errorf("report:\n%s", out.String())
	}
}
