//go:build !race

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestAdviceForAFailingSystemHoldsOnOtherSeeds(t *testing.T) {
	if testing.Short() {
		return // it searches for several seconds
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"-systems", "1", "-first", "64"}, &out, io.Discard); code != 0 {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	for _, want := range []string{"partial hang", "1 failing systems: advice for 1", "it is found in 100.0 %",
		", 0 fail"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestTheTableCountsWhatWasMissed(t *testing.T) {
	var out bytes.Buffer
	table(&out, []row{
		{system: 1, kind: "hang", advice: 4, holding: 3, failing: 1, remedies: -1},
		{system: 2, kind: "surge", remedies: 2, changes: 90},
		{system: 3, kind: "refuse", changes: 90},
	})
	for _, want := range []string{"none exists",
		"advice for 1; for 1 there is a single change that was missed; for 1 there is none",
		"found in 50.0 %; 3 of 4 pieces of advice (75.0 %) hold on other seeds, 1 fail"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestMistakesOfTheCommandLine(t *testing.T) {
	if code := run(t.Context(), []string{"-nothing"}, io.Discard, io.Discard); code != 2 {
		t.Errorf("exit code %d", code)
	}
}
