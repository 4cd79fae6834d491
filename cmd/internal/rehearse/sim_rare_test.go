package rehearse

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const rareText = `
duration: 4s
warmUp: 0s
clients: {shop: {rate: 5, calls: [db]}}
services: {db: {workers: 1, serviceTime: exponential 100ms}}
variants: {one: {policy: {defaults: {maxRetries: 0}}}, two: {policy: {defaults: {maxRetries: 0}}}}
`

// rare runs "abate sim s.yaml --rare" with an expectation and further words.
func rare(t *testing.T, expectation string, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = SimCommand(t.Context(), append([]string{"s.yaml", "--quiet", "--rare", expectation}, more...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestARareEventHasAProbabilityAnIntervalAndAPrice(t *testing.T) {
	if testing.Short() {
		return // rare events need many runs
	}
	t.Chdir(t.TempDir())
	writeFile(t, "s.yaml", rareText)
	code, out, errs := rare(t, "queue(db) < 12", "--seeds", "30", "--variant", "two")
	if code != 0 || errs != "" || strings.Contains(out, "variant one") {
		t.Errorf("exit %d, %q", code, errs)
	}
	for _, want := range []string{"s.yaml, variant two\n", "missed     queue(db) < 12: in ", "95 % interval", ", 12\n",
		"independent estimates", "whole runs"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	_, again, _ := rare(t, "queue(db) < 12", "--seeds", "30", "--variant", "two")
	_, other, _ := rare(t, "queue(db) < 12", "--seeds", "30", "--variant", "two", "--seed", "2")
	if again != out || other == out {
		t.Errorf("the same seed prints\n%s\nthen\n%s\nanother one\n%s", out, again, other)
	}
	if code, out, _ := rare(t, "queue(db) < 8 in 99.99% of runs", "--seeds", "30"); code != 1 ||
		strings.Count(out, "  FAIL ") != 2 {
		t.Errorf("exit %d of two variants that fail:\n%s", code, out)
	}
}

// A small queue is not rare: a few runs find the way to it, in no time.
func TestTheProbabilitiesOfARareEventAreWrittenAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.yaml", rareText)
	const expectation = "queue(db) < 3 in 99% of runs"
	code, out, errs := rare(t, expectation, "--seeds", "10", "--seed", "7", "--json", "-")
	if code != 1 || errs != "" {
		t.Errorf("exit %d, %q; want 1, as every run misses it or nearly so", code, errs)
	}
	var got struct {
		Version int
		Rare    []struct {
			File, Variant, Expectation, Verdict string
			Probability, Low, High, PlainRuns   float64
			Levels                              []int
			Shares                              []float64
			Replications, StageRuns, Runs       int
			Seed                                uint64
			Events                              int64
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Version != 1 || len(got.Rare) != 2 {
		t.Fatalf("%v, version %d, %d variants in\n%s", err, got.Version, len(got.Rare), out)
	}
	for i, r := range got.Rare {
		if r.File != "s.yaml" || r.Variant != []string{"one", "two"}[i] || r.Expectation != expectation ||
			r.Verdict != "FAIL" || r.Seed != 7 || r.StageRuns != 10 || r.Replications != 20 || r.Runs < 200 || r.Events == 0 {
			t.Errorf("variant %d is %+v", i, r)
		}
		if !(0 < r.Low && r.Low <= r.Probability && r.Probability <= r.High && r.High <= 1) || len(r.Levels) == 0 ||
			r.Levels[len(r.Levels)-1] != 3 || len(r.Shares) != len(r.Levels) {
			t.Errorf("variant %d is %+v", i, r)
		}
	}
	_, text, _ := rare(t, expectation, "--seeds", "10", "--seed", "7", "--json", "r.json")
	file, err := os.ReadFile("r.json")
	if err != nil || string(file) != out || strings.Count(text, "  FAIL ") != 2 {
		t.Errorf("%v; the file is\n%s\nstandard output was\n%s\nbeside the file:\n%s", err, file, out, text)
	}
	if code, text, errs := rare(t, expectation, "--json", "none/r.json"); code != exitOutput || text != "" ||
		!strings.Contains(errs, "there is no folder none") {
		t.Errorf("exit %d, %q, %q for a folder that is missing", code, text, errs)
	}
	_, out, _ = rare(t, "queue(db) < 3", "--seeds", "10", "--json", "-", "--variant", "two")
	if !strings.Contains(out, `"verdict": "NONE"`) || strings.Contains(out, `"one"`) {
		t.Errorf("without a share of runs, of one variant:\n%s", out)
	}
}

func TestRareRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.yaml", rareText)
	for _, c := range []struct {
		expectation string
		more        []string
		want        string
	}{
		{"queue(db)", nil, "-rare"},
		{"goodput > 90%", nil, "is not about a queue"},
		{"queue(web) < 12", nil, `there is no service "web"; allowed: [db]`},
		{"queue(db) < 12", []string{"--html", "a.html", "--map"}, "has no use for --map"},
		{"queue(db) < 12", []string{"."}, "name one file"},
	} {
		code, out, errs := rare(t, c.expectation, c.more...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s %v: exit %d, %q, %q; want %q", c.expectation, c.more, code, out, errs, c.want)
		}
	}
}
