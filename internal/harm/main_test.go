package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATableAndTheWorstSystems(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "worst")
	var out bytes.Buffer
	err := run(t.Context(), []string{"-systems", "27,33", "-seeds", "1", "-policies", "both", "-guard", "maxRetries: 1",
		"-gate", "{shed: {concurrency: fixed, maxConcurrency: 1, noQueue: true}}", "-out", folder}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 systems, 1 runs", "harm ÷ nothing", "yours", "both", "brown-out",
		"The worst systems"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "tuned") {
		t.Errorf("a policy that was not chosen:\n%s", out.String())
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) == 0 {
		t.Errorf("worst systems: %v, %v", files, err)
	}
}

func TestPartsOfTheSystems(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-systems", "17-26", "-part", "test", "-seeds", "1", "-policies", "guard", "-out", ""}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "7 systems, 1 runs") || strings.Contains(got, "for tuning") {
		t.Errorf("systems 17 to 26 for judging:\n%s", got)
	}
}

func TestOneSystemAlone(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-timeline", "26", "-policies", "gate"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "name: system 26 (capacity loss)") || !strings.Contains(out.String(), "offered") {
		t.Errorf("no scenario or no timeline:\n%s", out.String())
	}
}

func TestMistakesOfTheCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"-systems", "9-3"}, {"-systems", "x"}, {"-systems", ""}, {"-policies", "gaurd"}, {"-nothing"}, {"-part", "tset"},
		{"-timeline", "1", "-guard", "maxRetires: 3"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
