package rehearse

import (
	"bytes"
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
